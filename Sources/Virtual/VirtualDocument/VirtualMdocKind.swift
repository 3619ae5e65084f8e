// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import ReadersVirtual
import Synchronization
package import Text

/// What is wrong with a wallet, or odd. docs/protocol/mdoc.md, Virtual phone.
package enum Quirk: String, CaseIterable, Sendable {
    /// The phone refuses the handover.
    case locked
    case refusesService
    /// The length of the NDEF message is 5 too great.
    case wrongLength
    /// Another object than 53 comes.
    case wrongObject
    /// The file of the NDEF message has another number than that of all known phones, E104.
    case otherFile
    /// The status with which more bytes are announced has a wrong number of them.
    case wrongRest
    case endsAfterRequest, sessionStatus10, sessionStatus20, endsWithData, notCBOR, wrongTag
    case responseStatus10, responseStatus11, documentErrors, bytesAfterResponse
    /// A value that its hash does not fit.
    case changedItem
    case itemTwice
    /// A proof with another key, or for another session.
    case clone, replayed
    case expired
    /// An issuer whom nobody trusts.
    case unknownIssuer
    case deviceItems
    /// One signature of the reader is enough for all documents, which the engagement says.
    case readerAuthAll
}

/// What a virtual phone is made of.
package struct VirtualMdocDescription: VirtualCardDescription {
    package enum Consent: String, CaseIterable, Sendable { case yes, no, never }
    package enum Way: String, CaseIterable, Sendable { case bleCentral, blePeripheral, nfc }

    /// A document with its elements.
    struct Document: Sendable {
        let docType: String
        var namespaces: [(name: String, elements: [(String, CBORValue)])]
    }

    var documents: [Document] = []
    package var consent = Consent.yes
    /// How long the holder takes, in milliseconds.
    package var consentMilliseconds = 0
    package var withheld: Set<String> = []
    package var isNegotiated = false
    package var ways: Set<Way> = [.nfc]
    package var usesMAC = false
    /// 2: the wallet takes the request with one tap, and answers with the next one.
    package var taps = 1
    /// How often an answer of a negotiated handover is not ready yet.
    package var waits = 0
    package var longestRead = 0x7FFF
    package var longestWrite = 0x7FFF
    package var limits = (command: 65_535, response: 65_536)
    package var quirks: Set<Quirk> = []
    package var options = VirtualCardOptions()
    private let issuer: VirtualMdocIssuer

    init(_ issuer: VirtualMdocIssuer, card: JSON?) throws(Malformed) {
        self.issuer = issuer
        options = try VirtualCardOptions(card: card)
        documents = StandardMdocs.docTypes.compactMap { type in
            StandardMdocs.namespaces(of: type).map { Document(docType: type, namespaces: $0) }
        }
        for (key, entry) in CardEntry("card", card).members { try set(key, entry) }
    }

    private mutating func set(_ key: String, _ entry: CardEntry) throws(Malformed) {
        switch key {
        case "documents": documents = try entry.objects().map(Self.document)
        case "consent": consent = try entry.word()
        case "consentMs": consentMilliseconds = try entry.int(0...600_000)
        case "withheld": withheld = Set(try entry.texts())
        case "handover":
            let words = ["static", "negotiated"]
            guard let word = entry.json?.string, words.contains(word) else {
                throw entry.wrong("is not static or negotiated")
            }
            isNegotiated = word == "negotiated"
        case "transports": ways = Set(try entry.words())
        case "proof":
            guard let word = entry.json?.string, ["signature", "mac"].contains(word) else {
                throw entry.wrong("is not signature or mac")
            }
            usesMAC = word == "mac"
        case "taps": taps = try entry.int(1...2)
        case "waits": waits = try entry.int(0...1_000_000)
        case "longestRead": longestRead = try entry.int(15...0x7FFF)
        case "longestWrite": longestWrite = try entry.int(13...0x7FFF)
        case "longestCommand": limits.command = try entry.int(255...65_535)
        case "longestResponse": limits.response = try entry.int(256...65_536)
        case "quirks": quirks = Set(try entry.words())
        default: break
        }
    }

    /// A document with elements of its own, or else those of the invented person.
    private static func document(_ entry: CardEntry) throws(Malformed) -> Document {
        guard let docType = entry["docType"].json?.string else { throw entry["docType"].wrong("is not a string") }
        guard entry["items"].json != nil else {
            guard let namespaces = StandardMdocs.namespaces(of: docType) else {
                throw entry["items"].wrong("is missing: the document is not one of \(StandardMdocs.docTypes)")
            }
            return Document(docType: docType, namespaces: namespaces)
        }
        let namespaces = try entry["items"].members.map { name, entry throws(Malformed) in
            (
                name: name,
                elements: try entry.members.map { name, entry throws(Malformed) in
                    (name, try value(entry.json ?? .null, entry))
                }
            )
        }
        return Document(docType: docType, namespaces: namespaces)
    }

    /// A value. A text with the form of a day is a date.
    private static func value(_ json: JSON, _ entry: CardEntry) throws(Malformed) -> CBORValue {
        switch json {
        case .null: return .null
        case .bool(let bool): return .bool(bool)
        case .number:
            guard let number = json.int else { throw entry.wrong("is not a whole number") }
            return .integer(Int64(number))
        case .string(let text): return isDay(text) ? StandardMdocs.date(text) : .text(text)
        case .array(let items):
            return .array(try items.map { item throws(Malformed) in try value(item, entry) })
        case .object(let members):
            return .map(
                try members.map { member throws(Malformed) in (.text(member.key), try value(member.value, entry)) }
            )
        }
    }

    private static func isDay(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count == 10
            && bytes.indices.allSatisfy { [4, 7].contains($0) ? bytes[$0] == 0x2D : (0x30...0x39).contains(bytes[$0]) }
    }

    package func makeCard() throws(Malformed) -> VirtualCard {
        try VirtualCard(VirtualPhone(try makeWallet()), options)
    }

    func makeWallet() throws(Malformed) -> VirtualWallet {
        do throws(CryptoError) {
            let issuer = quirks.contains(.unknownIssuer) ? try VirtualMdocIssuer() : issuer
            let isExpired = quirks.contains(.expired)
            let issued = try documents.map { document throws(CryptoError) in
                try issuer.issue(document.docType, document.namespaces, isExpired: isExpired)
            }
            return try VirtualWallet(self, issued)
        } catch {
            throw Malformed("card: the keys of the phone cannot be made")
        }
    }
}

/// The kind of the virtual phone.
package final class VirtualMdocKind: VirtualCardKind {
    package let name = "mdoc"
    /// Made with the first phone, because it takes milliseconds.
    private let made = Mutex<VirtualMdocIssuer?>(nil)

    package init() {}

    /// The authority of all phones of this kind.
    package func issuer() throws(Malformed) -> VirtualMdocIssuer {
        let result = made.withLock { made -> VirtualMdocIssuer? in
            if made == nil { made = try? VirtualMdocIssuer() }
            return made
        }
        guard let result else { throw Malformed("card: the keys of the authority cannot be made") }
        return result
    }

    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        guard simulator == nil else { throw Malformed("simulator is only for eID cards") }
        return try VirtualMdocDescription(try issuer(), card: card)
    }
}

extension CardEntry {
    fileprivate func texts() throws(Malformed) -> [String] {
        let texts = json?.array?.compactMap(\.string)
        guard let texts, texts.count == json?.array?.count else { throw wrong("is not a list of texts") }
        return texts
    }

    fileprivate func word<Word: CaseIterable & RawRepresentable<String>>() throws(Malformed) -> Word {
        guard let word = json?.string.flatMap(Word.init(rawValue:)) else { throw Self.unknown(Word.self, self) }
        return word
    }

    fileprivate func words<Word: CaseIterable & RawRepresentable<String>>() throws(Malformed) -> [Word] {
        let words = try texts()
        let known = words.compactMap(Word.init(rawValue:))
        guard known.count == words.count else { throw Self.unknown(Word.self, self) }
        return known
    }

    private static func unknown<Word: CaseIterable & RawRepresentable<String>>(
        _ type: Word.Type,
        _ entry: CardEntry
    ) -> Malformed {
        entry.wrong("is not of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
    }
}
