// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
import Crypto
package import ISO7816
import Taps
import Text

/// Reads what a card or phone shows to the reader that it is held to, such as a credential for doors.
///
/// A reader keeps no state of a card: it gets a channel, and its result goes to the clients that wait for it.
package protocol TapReader: Sendable {
    /// The kind of cards that badged recognises only for this reader; nil: a feature recognises them anyway.
    var cardKind: (any CardKind)? { get }

    /// The kinds of cards, as READER names them, that are read. Readers of the same kind are tried in their order.
    var kinds: [String] { get }

    /// Whether the settings accept any card.
    var acceptsCards: Bool { get }

    /// Called when a client begins to wait for taps, so that the first one is not slower.
    func prepare() async

    /// Reads a card, from SELECT on. It is called once for each time that a card is to be read, whatever the result.
    /// - Returns: nil if the card does not have the application of this reader.
    /// - Throws: `CardError` if the card does not answer. Clients then receive nothing about the card.
    func read(_ channel: any CardChannel, _ tap: TapRequest) async throws(CardError) -> TapReport?
}

/// What a `TapReader` may know of a reading.
package struct TapRequest: Sendable {
    /// The answer to reset of the card, as in PC/SC part 3.
    package var answerToReset: [UInt8] = []
    /// What somebody else has seen of the NDEF application in this insertion.
    package var ndef: NDEFContent?
    /// Whether a client wants the NDEF message of a tag.
    package var readsNDEF = false
}

extension TapReader {
    package func prepare() async {}
}

/// A card or phone that no workflow uses, in READER. The key and its numbers are only in CREDENTIAL, which needs
/// another permission.
struct TapProfile: CardProfile {
    static let (pkoc, aliro, tag) = ("pkoc", "aliro", "tag")
    /// A phone that offers to go on over another radio.
    static let handover = "handover"

    let kind: String
    /// The versions of the protocol that the card supports; nil: it has none.
    let versions: [UInt16]?
    let isUsable = false
    /// A card that takes APDUs may be a phone, which shows other applications, too.
    var mayBePhone = true

    var members: [JSON.Member] {
        guard let versions else { return [] }
        return [JSON.Member("versions", .array(versions.map { .string("\($0 >> 8).\($0 & 0xFF)") }))]
    }
}

/// The result of a tap, for every protocol.
package struct TapReport: Sendable {
    /// A key that the card has proven.
    struct Proven: Sendable {
        /// On P-256.
        let key: ECPublicKey
        /// The random bytes of this tap.
        let transaction: [UInt8]
        /// The certificate, and why it is not valid; nil: it is valid.
        var certificate: (content: PKOCCertificate, problem: PKOCProblem?)?
        /// How the key was proven, if the protocol has several ways.
        var phase: String?
    }

    enum Result: Sendable {
        case proven(Proven)
        /// The card has shown no credential, for this reason.
        case failed(String)
        /// The card does not know the readers. The next `TapReader` may read it.
        case refused
        /// A number that anybody can copy.
        case tag(Tag, NDEF)
        /// Bits of a reader in the wall, which anybody can copy as well.
        case raw(RawRead)
    }

    /// What a reader in the wall has read.
    struct RawRead: Sendable {
        let bits: Int
        let data: [UInt8]
        /// `unspecified` or `wiegand`, as the reader says.
        let format: String
        /// When it was read at the earliest, in milliseconds of CLOCK_BOOTTIME; nil: now.
        let uptime: Int64?
    }

    /// The content of a tag.
    enum NDEF: Sendable {
        case notRead
        /// The tag has no memory that badged can read, or a malformed message.
        case unreadable
        case message(NDEFMessage)
    }

    /// `protocol` in CREDENTIAL.
    let technology: String
    let result: Result

    /// Why the card has shown no credential; nil: it has shown one.
    var reason: String? {
        switch result {
        case .proven: nil
        case .failed(let reason): reason
        case .refused: "refused"
        case .tag, .raw: "noProof"
        }
    }

    /// The same without the content of a tag.
    var withoutNDEF: TapReport {
        guard case .tag(let tag, _) = result else { return self }
        return TapReport(technology: technology, result: .tag(tag, .notRead))
    }
}
