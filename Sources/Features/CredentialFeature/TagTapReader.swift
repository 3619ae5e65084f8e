// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import ISO7816
import Taps

/// Reads the number of a card or tag of no other kind, and its NDEF message if a client wants it.
package struct TagTapReader: TapReader {
    package let cardKind: (any CardKind)? = TagCardKind()
    package let kinds = [TapProfile.tag]
    /// A number proves nothing, so the settings for credentials do not depend on it.
    package let acceptsCards = false

    package init() {}

    package func read(_ channel: any CardChannel, _ tap: TapRequest) async throws(CardError) -> TapReport? {
        guard let reader = try await TagReader.identify(on: channel, answerToReset: tap.answerToReset) else {
            return nil
        }
        var ndef = TapReport.NDEF.notRead
        if tap.readsNDEF {
            do throws(CardError) {
                let message = try await reader.message()
                // The content is for a workflow that reads the phone, and the number is another one at each tap.
                if message?.isHandover == true {
                    return TapReport(technology: TapProfile.handover, result: .failed(TapProfile.handover))
                }
                ndef = message.map { .message($0) } ?? .unreadable
            } catch {
                // The number is known, also if the tag has left since then.
                guard error != .cancelled else { throw error }
                return TapReport(technology: TapProfile.tag, result: .tag(reader.tag, .unreadable))
            }
        }
        return TapReport(technology: TapProfile.tag, result: .tag(try await named(reader), ndef))
    }

    private func named(_ reader: TagReader) async throws(CardError) -> Tag {
        do throws(CardError) {
            return try await reader.named()
        } catch {
            guard error != .cancelled else { throw error }
            return reader.tag
        }
    }
}

/// Recognises a contactless card of no other kind.
struct TagCardKind: CardKind {
    /// A card that takes no APDUs is of no other kind, and some readers fail when they are to send it one.
    func claims(answerToReset: [UInt8]) -> Bool { TagType(answerToReset: answerToReset)?.isStorage == true }

    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        try await TagReader.identify(on: channel, answerToReset: answerToReset).map { _ in
            TapProfile(kind: TapProfile.tag, versions: nil)
        }
    }
}
