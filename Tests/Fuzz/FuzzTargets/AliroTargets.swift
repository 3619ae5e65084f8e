// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
import ReadersVirtual
import Taps
import Text
import VirtualTaps

/// The keys of Tests/Vectors/aliro.json, so that the seeds reach the end.
private enum AliroKeys {
    static func key(_ name: String) throws(CryptoError) -> ECPrivateKey {
        let scalar = try DigestAlgorithm.sha256.hash(Array("badged Aliro vectors: \(name)".utf8))
        return try ECPrivateKey(Secret(scalar), on: try Curve.secp256r1.group)
    }

    static func half(_ name: String) throws(CryptoError) -> [UInt8] {
        Array(try DigestAlgorithm.sha256.hash(Array(name.utf8)).prefix(16))
    }

    /// What is new in the tap of this number.
    static func tap(_ number: UInt8) throws(CryptoError) -> AliroTap {
        let transaction = try DigestAlgorithm.sha256.hash(Array("transaction".utf8) + [number])
        return AliroTap(key: try key("reader \(number)"), transaction: Array(transaction.prefix(16)))
    }

    static func site() throws(CryptoError) -> AliroSite {
        AliroSite(key: try key("reader"), group: try half("group"), subgroup: try half("subgroup"))
    }

    /// The bond of the first tap.
    static let persistent: [UInt8] = [
        0x1C, 0xBD, 0x81, 0xA3, 0x95, 0xF0, 0xED, 0x8D, 0xCF, 0x28, 0x13, 0x2C, 0x59, 0x34, 0xA3, 0x59,
        0x88, 0xC6, 0x48, 0xE6, 0xD0, 0x4B, 0x07, 0x07, 0xFE, 0x99, 0xC3, 0xC1, 0x1D, 0xBE, 0x2C, 0x20,
    ]
}

/// Everything that a card may answer, and what a card reads. What is read has bounded parts.
@Sendable func aliroAnswer(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    if let application = AliroApplication(selectAnswer: bytes) {
        require(application.proprietary.count <= bytes.count, "an object longer than the answer")
        require(!application.versions.isEmpty && application.versions.count <= 16, "no version, or too many")
    }
    if let answer = try? AliroOpeningAnswer(bytes) {
        require(answer.point.count == 65 && answer.vendor.count <= 130, "a part of a wrong length")
        require(answer.cryptogram.map { $0.count == 64 } ?? true, "a cryptogram of a wrong length")
    }
    if let proof = try? AliroProof(Secret(bytes)) {
        require(proof.signature.count == 64 && proof.point?.count ?? 65 == 65, "a part of a wrong length")
    }
    if let opening = AliroOpening(data: bytes) {
        let again = CommandAPDU(bytes: AliroCommand.auth0(opening).bytes).flatMap { AliroOpening(data: $0.data) }
        require(again == opening, "AUTH0 changes when it is written and read")
    }
    _ = AliroBond(Secret(bytes))
}

/// A reading. The first byte chooses the phase. Behind it are the answers of the card, each after two bytes of length.
@Sendable func aliroDialogue(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first, let site = try? AliroKeys.site(),
        let card = try? AliroKeys.key("card").publicKey,
        let bond = AliroBond(Secret(card.uncompressed + AliroKeys.persistent))
    else { return }
    let isFast = first & 1 == 1
    runDialogue(UnsafeRawBufferPointer(rebasing: input.dropFirst())) { channel in
        if let reader = try? await AliroReader.select(on: channel) {
            let reading = try? await reader.read(for: site, bonds: isFast ? [bond] : []) { () throws(CryptoError) in
                try AliroKeys.tap(isFast ? 4 : 1)
            }
            if case .credential(let credential)? = reading {
                require(credential.key == card, "a key counts that nobody has proven")
            }
        }
        require(await channel.sent.count < 1000, "the dialogue does not end")
    }
}

/// Commands to a virtual card, each after one byte of length. Every answer has a status word.
@Sendable func virtualAliro(_ input: UnsafeRawBufferPointer) {
    var description = VirtualAliroDescription()
    description.reader = try? AliroKeys.key("reader").publicKey.compressedPoint
    if let first = input.first, first & 1 == 1 { description.hasPKOC = true }
    guard let card = try? description.makeCard() else { return require(false, "no card") }
    runCommands(UnsafeRawBufferPointer(rebasing: input.dropFirst()), card)
}
