// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Taps
import TestSupport
import Text

/// Tests/Vectors/aliro.json, one tap for each name.
struct Vector {
    struct Missing: Error {}
    typealias Step = (command: [UInt8]?, answer: [UInt8])

    let tap: JSON
    let steps: [Step]

    init(_ name: String) throws {
        tap = try Self.all().object(name)
        steps = try (tap["steps"]?.array ?? []).map { (try $0.bytes("command"), try $0.bytes("answer")) }
    }

    static func all() throws -> JSON { try vectorFile("aliro.json") }

    static var card: ECPublicKey {
        get throws { try ECPublicKey(try all().object("card").bytes("public"), on: .secp256r1) }
    }

    static func privateKey(_ scalar: [UInt8]) throws(CryptoError) -> ECPrivateKey {
        try ECPrivateKey(Secret(scalar), on: try Curve.secp256r1.group)
    }

    static func site(
        credentials: [ECPublicKey] = [],
        isValidated: Bool = false,
        allowsFast: Bool = true
    ) throws -> AliroSite {
        let identifier = try all().bytes("identifier")
        return AliroSite(
            key: try privateKey(try all().object("reader").bytes("private")),
            group: Array(identifier.prefix(16)),
            subgroup: Array(identifier.suffix(16)),
            credentials: credentials,
            isValidated: isValidated,
            allowsFast: allowsFast
        )
    }

    /// The bond of the tap `standard`.
    static func bond() throws -> AliroBond {
        let persistent = try Vector("standard").tap.bytes("persistent")
        guard let bond = AliroBond(Secret(try card.uncompressed + persistent)) else {
            throw Missing()
        }
        return bond
    }

    /// Reads a card that answers so, with the ephemeral key and the transaction of this vector.
    func read(
        _ steps: [Step],
        _ site: AliroSite? = nil,
        bonds: [AliroBond] = []
    ) async throws -> (reading: AliroReading, sent: [[UInt8]]) {
        let card = ScriptedCard(steps)
        let (ephemeral, transaction) = (try tap.bytes("readerEphemeral"), try tap.bytes("transaction"))
        guard let reader = try await AliroReader.select(on: card) else { throw Missing() }
        let reading = try await reader.read(for: try site ?? Self.site(), bonds: bonds) { () throws(CryptoError) in
            AliroTap(key: try Self.privateKey(ephemeral), transaction: transaction)
        }
        return (reading, await card.commands)
    }
}

extension AliroReading {
    var credential: AliroCredential? {
        if case .credential(let credential) = self { credential } else { nil }
    }

    var problem: AliroProblem? {
        if case .failed(let problem) = self { problem } else { nil }
    }
}
