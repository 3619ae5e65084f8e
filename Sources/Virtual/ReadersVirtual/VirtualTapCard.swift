// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
package import Text

/// The entries of `card` that all virtual cards for door readers have.
package struct VirtualTapOptions: Sendable {
    /// What the card signs.
    package enum Signature: String, Sendable {
        case right
        /// Other bytes than those that the protocol requires.
        case wrong
        /// Nothing new: the card repeats its first signature.
        case replayed
    }

    /// The private key; nil: one that is the same for all such cards.
    package var key: SecretBox?
    /// Two bytes for each version in the answer to SELECT.
    package var versions: [UInt8] = [0x01, 0x00]
    /// The maximum number of bytes of an answer; the rest is fetched by GET RESPONSE. nil: 256.
    package var partLength: Int?
    package var signature = Signature.right

    package init() {}

    /// Parses an entry if it is one of these; ignores other entries.
    package mutating func set(_ name: String, _ entry: CardEntry) throws(Malformed) {
        switch name {
        case "key": key = SecretBox(Secret(try entry.bytes(32)))
        case "versions":
            versions = try entry.bytes()
            guard (2...16).contains(versions.count), versions.count.isMultiple(of: 2)
            else { throw entry.wrong("is not one to eight versions of two bytes") }
        case "partLength": partLength = try entry.int(1...256)
        case "signature":
            guard let text = entry.json?.string, let signature = Signature(rawValue: text)
            else { throw entry.wrong("is not right, wrong or replayed") }
            self.signature = signature
        default: break
        }
    }

    package func has(version: [UInt8]) -> Bool {
        stride(from: 0, to: versions.count, by: 2).contains { Array(versions[$0..<$0 + 2]) == version }
    }

    /// The key of the card. Without the entry `key`, all cards with the same label have the same key.
    package func makeKey(label: String) throws(Malformed) -> ECPrivateKey {
        do throws(CryptoError) {
            let group = try Curve.secp256r1.group
            if let key = key?.take() { return try ECPrivateKey(key, on: group) }
            let standard = try DigestAlgorithm.sha256.hash(Array(label.utf8))
            return try ECPrivateKey(Secret(standard), on: group)
        } catch {
            throw Malformed("card.key is not a private key of P-256")
        }
    }
}

/// What a virtual card for door readers is made of.
package protocol VirtualTapDescription: VirtualCardDescription {
    static var kind: String { get }
    var tap: VirtualTapOptions { get set }
    var options: VirtualCardOptions { get set }

    init()

    /// Parses an entry that only this kind has; false for other entries.
    mutating func set(_ name: String, _ entry: CardEntry) throws(Malformed) -> Bool
}

/// A kind of virtual cards for door readers. docs/protocol/credentials.md.
package struct VirtualTapKind<Description: VirtualTapDescription>: VirtualCardKind {
    package let name = Description.kind

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        guard simulator == nil else { throw Malformed("simulator is only for eID cards") }
        var description = Description()
        description.options = try VirtualCardOptions(card: card)
        for (key, entry) in CardEntry("card", card).members where try !description.set(key, entry) {
            try description.tap.set(key, entry)
        }
        return description
    }
}

/// Runs a cryptographic step; the card answers 6F00 when libcrypto fails.
package func crypto<T: ~Copyable>(_ body: () throws(CryptoError) -> T) throws(RefusedCommand) -> T {
    try translating({ (_: CryptoError) in RefusedCommand.failure }, body)
}

package func crypto<T: ~Copyable>(_ value: @autoclosure () throws(CryptoError) -> T) throws(RefusedCommand) -> T {
    try translating({ (_: CryptoError) in RefusedCommand.failure }, value())
}

/// The answers of a virtual card, in parts that GET RESPONSE fetches. ISO/IEC 7816-4
package struct VirtualTapAnswers {
    private static let getResponse: UInt8 = 0xC0

    private let partLength: Int
    /// The rest of the answer, for GET RESPONSE.
    private var rest: [UInt8] = []

    package init(_ options: VirtualTapOptions) { partLength = options.partLength ?? 256 }

    /// Returns the first part of the answer to a command, or the status word of the refusal.
    package mutating func process(
        _ command: [UInt8],
        _ answer: (CommandAPDU) throws(RefusedCommand) -> [UInt8]
    ) -> [UInt8] {
        do throws(RefusedCommand) {
            guard let command = CommandAPDU(bytes: command) else { throw .wrongLength }
            // Readers in Java repeat the class of the command before.
            let wantsRest = command.ins == Self.getResponse && command.data.isEmpty && !rest.isEmpty
            return part(of: wantsRest ? rest : try answer(command))
        } catch {
            rest = []
            return [error.status.sw1, error.status.sw2]
        }
    }

    private mutating func part(of answer: [UInt8]) -> [UInt8] {
        let count = min(answer.count, partLength)
        rest = Array(answer.dropFirst(count))
        let status: [UInt8] = rest.isEmpty ? [0x90, 0x00] : [0x61, UInt8(min(rest.count, 256) & 0xFF)]
        return answer.prefix(count) + status
    }

    package mutating func reset() { rest = [] }
}
