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
                let message = try await message(reader, tap)
                // The content is for a workflow that reads the phone, and the number is another one at each tap.
                if tap.ndef == .handover || message?.isHandover == true {
                    return TapReport(technology: TapProfile.handover, result: .failed(TapProfile.handover))
                }
                ndef = message.map { .message($0) } ?? .unreadable
            } catch {
                // The number is known, also if the tag has left since then.
                guard error != .cancelled else { throw error }
                return TapReport(technology: TapProfile.tag, result: .tag(reader.tag, .unreadable))
            }
        }
        // Nothing more is sent to a phone that goes on over another radio.
        let named = tap.ndef == .handover ? reader.tag : try await named(reader)
        return TapReport(technology: TapProfile.tag, result: .tag(named, ndef))
    }

    /// The message of the tag, which is read unless somebody else has tried.
    private func message(_ reader: TagReader, _ tap: TapRequest) async throws(CardError) -> NDEFMessage? {
        switch tap.ndef {
        case nil: try await reader.message()
        case .message(let bytes): try? NDEFMessage(bytes)
        case .handover, .unreadable, .some(.none): nil
        }
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
    /// Most readers know a number of each card.
    let isForOthers = true

    /// A card that takes no APDUs is of no other kind, and some readers fail when they are to send it one.
    func claims(answerToReset: [UInt8]) -> Bool { TagType(answerToReset: answerToReset)?.isStorage == true }

    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        try await TagReader.identify(on: channel, answerToReset: answerToReset).map { _ in
            TapProfile(kind: TapProfile.tag, versions: nil, mayBePhone: !claims(answerToReset: answerToReset))
        }
    }
}
