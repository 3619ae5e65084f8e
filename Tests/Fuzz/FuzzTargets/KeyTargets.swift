// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text
import Vault

/// The key of an issuer that every input is signed with.
private let scalar = [UInt8](repeating: 1, count: 32)

/// An enrolment file: as it is, and as a payload that is signed.
@Sendable func enrolment(_ input: UnsafeRawBufferPointer) {
    _ = try? Enrolment(input)
    guard let payload = try? JSON(input), payload.members != nil,
        let key = try? ECPrivateKey(Secret(scalar), on: Curve.secp256r1.group)
    else { return }
    let text = SignedText.unsigned(type: Enrolment.type, payload, publicKey: key.publicKey.uncompressed)
    guard let signature = try? ECDSA.sign(Array(text.utf8), with: key, digest: .sha256),
        let file = try? Enrolment("\(text).\(Base64.url.encode(signature))".utf8)
    else { return }
    require(file.issuerKey == key.publicKey.uncompressed, "the key of another issuer")
    require(file.serial > 0 && !file.issuer.isEmpty, "a file without serial or issuer")
    require(file.sites.allSatisfy { $0.id.count == Site.idCount }, "a site of a wrong length")
    var record = KeyRecord(id: "0", kind: .pkoc(publicKey: file.issuerKey), origin: .created)
    file.apply(to: &record)
    require(record.isRevoked == file.isRevoked, "a revoked key that can be used")
}

/// The QR code of a reader.
@Sendable func readerCode(_ input: UnsafeRawBufferPointer) {
    guard let code = ReaderCode(input) else { return }
    require(code.site.count == 16 && code.reader.count == 16, "an identifier of a wrong length")
    require((try? ECPublicKey(code.publicKey, on: .secp256r1)) != nil, "a key that is not on the curve")
    require(CredentialNumber.views(of: code.publicKey).count == CredentialNumber.lengths.count, "too few numbers")
}

/// A record of the store, texts of keys, and dates.
@Sendable func vaultRecord(_ input: UnsafeRawBufferPointer) {
    _ = KeyRecord(input)
    let text = String(decoding: input, as: UTF8.self)
    if let bytes = Base64.url.decode(text) { require(Base64.url.encode(bytes) == text, "another base64url") }
    if let time = DateText.seconds(text) { require(DateText.text(time) == text, "another time") }
    _ = SecretText.base32(Secret(input))
    if let bytes = SecretText.hex(Secret(input)) { require(bytes.count * 2 == input.count, "bytes of a wrong length") }
}
