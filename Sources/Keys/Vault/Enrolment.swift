// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Text

/// The statement of an issuer about a key: sites, validity and name. A format of badged: docs/protocol/keys.md.
///
/// It is a compact JWS with ES256 (RFC 7515, 7518), whose header has the public key of the issuer.
package struct Enrolment: Sendable, Equatable {
    /// The public key of the issuer: 65 bytes. The caller decides whether it is trusted.
    package let issuerKey: [UInt8]
    package let issuer: String
    /// The thumbprint of the key that is enrolled; nil: a key that is made for this invitation.
    package let key: String?
    /// The code of the invitation; nil if there is none.
    package let invitation: String?
    /// A later file has a higher number.
    package let serial: Int
    package let isRevoked: Bool
    package let label: String
    package let cardNumber: String
    /// In seconds since 1970.
    package let beginDate: Int?
    package let endDate: Int?
    package let sites: [Site]
    package let certificate: [UInt8]

    package static let maximumCount = 65_536
    package static let type = "badged-enrolment"

    package var issuerFingerprint: [UInt8] { PublicKeyText.fingerprint(issuerKey) }

    /// Reads a file and checks its signature with the key in its header. No failure contains a part of the file.
    package init(_ text: some Sequence<UInt8>) throws(Failure) {
        let bytes = Array(Array(text).trimmed { $0 == 0x20 || (0x09...0x0D).contains($0) })
        guard bytes.count <= Self.maximumCount else { throw .malformedEnrolment }
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.json(parts[0]), let signature = Self.decode(parts[2]),
            header["alg"]?.string == "ES256", header["typ"]?.string == Self.type, header["crit"] == nil,
            let jwk = header["jwk"], jwk["kty"]?.string == "EC", jwk["crv"]?.string == "P-256",
            let x = jwk["x"]?.string.flatMap({ Base64.url.decode($0) }), x.count == 32,
            let y = jwk["y"]?.string.flatMap({ Base64.url.decode($0) }), y.count == 32,
            let key = try? ECPublicKey([4] + x + y, on: .secp256r1)
        else { throw .malformedEnrolment }
        let signed = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
        guard (try? ECDSA.verify(signature, of: signed, with: key, digest: .sha256)) == true else {
            throw .enrolment("the signature of the enrolment file is wrong")
        }
        guard let json = Self.json(parts[1]) else { throw .malformedEnrolment }
        guard json["version"]?.int == 1 else { throw .enrolment(member: "version") }
        issuerKey = key.uncompressed
        guard let issuer = try Self.text(json, "iss", limit: 128), !issuer.isEmpty else {
            throw .enrolment(member: "iss")
        }
        self.issuer = issuer
        self.key = try Self.text(json, "key", limit: 64)
        invitation = try Self.text(json, "invitation", limit: 64)
        guard let serial = json["serial"]?.int, serial > 0 else { throw .enrolment(member: "serial") }
        self.serial = serial
        label = try Self.text(json, "label", limit: KeyRecord.maximumLabel) ?? ""
        cardNumber = try Self.text(json, "cardNumber", limit: 128) ?? ""
        beginDate = try Self.date(json, "beginDate")
        endDate = try Self.date(json, "endDate")
        switch json["revoked"] {
        case nil: isRevoked = false
        case .bool(let flag): isRevoked = flag
        default: throw .enrolment(member: "revoked")
        }
        guard let sites = json["sites"].map({ Site.list($0) }) ?? [] else { throw .enrolment(member: "sites") }
        self.sites = sites
        guard let text = try Self.text(json, "certificate", limit: 8192), !text.isEmpty else {
            certificate = []
            return
        }
        guard let bytes = Hex.decode(text) else { throw .enrolment(member: "certificate") }
        certificate = bytes
    }

    private static func decode(_ part: ArraySlice<UInt8>) -> [UInt8]? {
        Base64.url.decode(String(decoding: part, as: UTF8.self))
    }

    private static func json(_ part: ArraySlice<UInt8>) -> JSON? {
        guard let bytes = decode(part), let json = try? JSON(bytes), json.members != nil else { return nil }
        return json
    }

    private static func text(_ json: JSON, _ name: String, limit: Int) throws(Failure) -> String? {
        guard let value = json[name], value != .null else { return nil }
        guard let text = value.string, text.utf8.count <= limit else { throw .enrolment(member: name) }
        return text
    }

    private static func date(_ json: JSON, _ name: String) throws(Failure) -> Int? {
        guard let text = try text(json, name, limit: 32) else { return nil }
        guard let seconds = DateText.seconds(text) else { throw .enrolment(member: name) }
        return seconds
    }

    /// Copies the content of the file into the record of its key.
    package func apply(to key: inout KeyRecord) {
        key.issuer = issuer
        key.issuerFingerprint = issuerFingerprint
        key.serial = serial
        key.beginDate = beginDate
        key.endDate = endDate
        // A list of revoked readers is only replaced by a newer one.
        key.sites = sites.map { $0.keepingNewerList(of: key.sites) }
        key.certificate = certificate
        if !label.isEmpty { key.label = label }
        if !cardNumber.isEmpty { key.cardNumber = cardNumber }
        if isRevoked { (key.isRevoked, key.isActive) = (true, false) }
    }
}

/// Compact JWS with ES256. RFC 7515, 3.1; RFC 7518, 3.4.
package enum SignedText {
    /// Returns what is signed: the header with the public key, and the payload.
    package static func unsigned(type: String, _ payload: JSON, publicKey: [UInt8]) -> String {
        let header = JSON.object([
            .init("alg", .string("ES256")), .init("typ", .string(type)), .init("jwk", jwk(publicKey)),
        ])
        return Base64.url.encode(header.bytes) + "." + Base64.url.encode(payload.bytes)
    }

    /// A public key as JWK. RFC 7518, 6.2.
    private static func jwk(_ key: [UInt8]) -> JSON {
        .object([
            .init("kty", .string("EC")), .init("crv", .string("P-256")),
            .init("x", .string(Base64.url.encode(key.dropFirst().prefix(32)))),
            .init("y", .string(Base64.url.encode(key.suffix(32)))),
        ])
    }

    /// Signs a payload.
    package static func make(
        type: String,
        _ payload: JSON,
        key: any CredentialKey
    ) async throws(Failure) -> String {
        let text = unsigned(type: type, payload, publicKey: key.publicKey)
        let digest = try cryptography(DigestAlgorithm.sha256.hash(Array(text.utf8)))
        return text + "." + Base64.url.encode(try await key.sign(digest: digest))
    }
}
