// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import DoorOpening
import Taps
import Text
import Vault

/// A key whose signature is never asked for: the handshake gives only the digest.
private struct NoKey: CredentialKey {
    let publicKey = [UInt8](repeating: 4, count: 65)
    func sign(digest: [UInt8]) async -> [UInt8] { [] }
}

/// The site of Tests/Vectors/pkoc-ble.json.
private let siteIdentifier: [UInt8] = [
    0x36, 0xCD, 0xB1, 0xB2, 0xB9, 0xEA, 0xCC, 0x47, 0x7E, 0x7F, 0x21, 0xE5, 0xFE, 0x1E, 0x14, 0xC3,
]

/// Notifications of a reader, each after its length. Nothing is sent before a reader has proved a site that is not legacy.
@Sendable func pkocOpening(_ input: UnsafeRawBufferPointer) {
    guard let group = try? Curve.secp256r1.group else { return }
    let bytes = Array(input)
    for isLegacy in [false, true] {
        guard let ephemeral = try? ECPrivateKey(Secret([UInt8](repeating: 7, count: 32)), on: group),
            let signer = try? ECPrivateKey(Secret([UInt8](repeating: 5, count: 32)), on: group),
            let site = try? DoorSite(
                identifier: siteIdentifier,
                siteKey: signer.publicKey.uncompressed,
                issuerKey: signer.publicKey.uncompressed,
                isLegacy: isLegacy
            )
        else { return }
        let credential = DoorCredential(id: "k", key: NoKey(), sites: [site], lastUpdate: 1)
        var handshake = PKOCHandshake([credential], ephemeral: ephemeral, now: 1_752_000_000)
        var framing = PKOCFraming()
        var position = 0
        do throws(PKOCFailure) {
            while position < bytes.count {
                let end = min(position + 1 + Int(bytes[position]), bytes.count)
                defer { position = end }
                guard let message = try framing.receive(Array(bytes[position + 1..<max(end, position + 1)])),
                    let dialect = framing.dialect
                else { continue }
                require(message.count <= PKOCMessage.longest || dialect == .whole, "a message too long")
                switch try handshake.receive(message, dialect) {
                case .send(let answer): require(answer.first == 0x07, "more than an ephemeral key was sent")
                case .sign(let digest):
                    require(digest.count == 32, "no digest")
                    let sealed = try handshake.signed([UInt8](repeating: 1, count: 64))
                    require(isLegacy || sealed.first == 0x40, "the credential was sent in clear")
                case .finished: return
                }
            }
        } catch {
            require(!error.text.description.isEmpty, "a failure without a reason")
        }
    }
}

@Sendable func pkocReaderCertificate(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    guard let group = try? Curve.secp256r1.group,
        let issuer = try? ECPrivateKey(Secret([UInt8](repeating: 5, count: 32)), on: group)
    else { return }
    if let certificate = try? ReaderCertificate(bytes) {
        require(bytes.count == ReaderCertificate.count, "a certificate of another length")
        _ = certificate.isSigned(by: issuer.publicKey)
    }
    if let list = try? ReaderRevocations(bytes, issuerKey: issuer.publicKey) {
        require(list.site.count == DoorSite.identifierCount, "a list without a site")
    }
}
