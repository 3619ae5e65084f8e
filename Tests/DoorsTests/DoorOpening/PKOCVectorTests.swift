// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Taps
import Testing
import Text
import Vault

@testable import DoorOpening

/// A key that returns one signature from a vector, and only for the digest of that vector.
private struct VectorKey: CredentialKey {
    let publicKey: [UInt8]
    func sign(digest: [UInt8]) async -> [UInt8] { [] }
}

@Suite("PKOC over Bluetooth against vectors", .timeLimit(.minutes(5)))
struct PKOCVectorTests {
    private let vectors: PKOCVectors
    private let certificates: CertificateVectors

    init() throws { (vectors, certificates) = (try .load(), try .load()) }

    private func handshake(_ site: DoorSite) throws -> PKOCHandshake {
        let credential = DoorCredential(
            id: "k",
            key: VectorKey(publicKey: vectors.publicKey("device")),
            sites: [site],
            lastUpdate: vectors.lastUpdateTime
        )
        return PKOCHandshake(
            [credential],
            ephemeral: try vectors.privateKey("device ephemeral"),
            now: PKOCVectors.now
        )
    }

    @Test("each flow of the vectors is repeated byte by byte", arguments: 0..<5)
    func flow(_ index: Int) throws {
        let flow = try #require(vectors.flows.dropFirst(index).first)
        let messages = flow.messages.map { bytes($0.hex) }
        let isLegacy = flow.plaintext == nil
        let hasCertificate = flow.name.contains("certificate")
        let site = try DoorSite(
            identifier: vectors.site,
            siteKey: hasCertificate ? nil : vectors.publicKey("site"),
            issuerKey: hasCertificate ? vectors.publicKey("issuer") : nil,
            isLegacy: isLegacy
        )
        var handshake = try handshake(site)
        let dialect: PKOCFraming.Dialect = flow.name.contains("2.0.1") ? .fragments : .whole
        let digest = try DigestAlgorithm.sha256.hash(bytes(flow.signedBytes))
        var next = 0
        if !isLegacy {
            #expect(try handshake.receive(messages[0], dialect) == .send(messages[1]))
            next = 2
        }
        #expect(try handshake.receive(messages[next], dialect) == .sign(digest: digest))
        let plain = try flow.plaintext.map { try PKOCMessage(bytes($0)) } ?? PKOCMessage(messages[1])
        let signature = try #require(plain[.signature])
        let isGenuine = try ECDSA.verify(
            signature,
            of: bytes(flow.signedBytes),
            with: ECPublicKey(vectors.publicKey("device"), on: .secp256r1),
            digest: .sha256
        )
        #expect(isGenuine)
        #expect(try handshake.signed(signature) == messages[next + 1])
        #expect(try handshake.receive(messages[next + 2], dialect) == .finished(.response(3)))
        #expect(throws: PKOCFailure.unexpectedMessage) { try handshake.receive(messages[0], dialect) }
    }

    @Test("messages are divided and joined as in the vectors", arguments: 0..<3)
    func fragments(_ index: Int) throws {
        let example = try #require(vectors.fragments.dropFirst(index).first)
        let (message, parts) = (bytes(example.message), example.parts.map(bytes))
        var framing = PKOCFraming()
        for part in parts.dropLast() { #expect(try framing.receive(part) == nil) }
        #expect(framing.isInside == (parts.count > 1))
        #expect(try framing.receive(try #require(parts.last)) == message)
        #expect(framing.dialect == .fragments)
        #expect(framing.divide(message, capacity: example.mtu - 3) == parts)
    }

    @Test("a reader certificate is valid for its issuer and its time")
    func certificate() throws {
        let issuer = try ECPublicKey(vectors.publicKey("issuer"), on: .secp256r1)
        let forever = try ReaderCertificate(bytes(certificates.readerCertificate.forever))
        let expired = try ReaderCertificate(bytes(certificates.readerCertificate.expiredAt1700000000))
        #expect(forever.isSigned(by: issuer) && expired.isSigned(by: issuer))
        #expect(forever.isValid(at: PKOCVectors.now) && !expired.isValid(at: PKOCVectors.now))
        #expect(expired.isValid(at: 1_700_000_000))
        #expect(!forever.isSigned(by: try ECPublicKey(vectors.publicKey("device"), on: .secp256r1)))
        #expect((forever.site, forever.location) == (vectors.site, vectors.location))
        var changed = bytes(certificates.readerCertificate.forever)
        changed[3] ^= 1
        #expect(try !ReaderCertificate(changed).isSigned(by: issuer))
        #expect(throws: PKOCProblem.malformed) { try ReaderCertificate(changed.dropLast()) }
    }

    @Test("a revocation list is read only with the signature of its issuer")
    func revocations() throws {
        let issuer = try ECPublicKey(vectors.publicKey("issuer"), on: .secp256r1)
        let list = try ReaderRevocations(bytes(certificates.revocationList.withLocation), issuerKey: issuer)
        let empty = try ReaderRevocations(bytes(certificates.revocationList.emptyOlder), issuerKey: issuer)
        #expect(list.revokes(vectors.location) && !empty.revokes(vectors.location))
        #expect([list.issued, empty.issued] == certificates.revocationList.issued)
        let other = try ECPublicKey(vectors.publicKey("site"), on: .secp256r1)
        #expect(throws: Malformed("another issuer has signed it")) {
            try ReaderRevocations(bytes(certificates.revocationList.withLocation), issuerKey: other)
        }
        #expect(throws: Malformed("another form")) {
            try ReaderRevocations(bytes(certificates.revocationList.withLocation).dropLast(), issuerKey: issuer)
        }
    }

    /// How a reader with the certificate of the vectors is trusted.
    @Test("an expired, revoked, foreign or missing certificate ends the dialogue before the credential is sent")
    func untrusted() throws {
        let issuerKey = vectors.publicKey("issuer")
        let issuer = try ECPublicKey(issuerKey, on: .secp256r1)
        let list = try ReaderRevocations(bytes(certificates.revocationList.withLocation), issuerKey: issuer)
        let greeting = bytes(vectors.flows[4].messages[0].hex)
        let forever = bytes(certificates.readerCertificate.forever)
        let expired = bytes(certificates.readerCertificate.expiredAt1700000000)
        let start = try #require(greeting.indices.first { greeting[$0...].starts(with: forever) })
        var old = greeting
        old.replaceSubrange(start..<start + forever.count, with: expired)
        let bare = bytes(vectors.flows[3].messages[0].hex)
        let cases: [(DoorSite, [UInt8], PKOCFailure)] = [
            (try DoorSite(identifier: vectors.site, issuerKey: issuerKey), old, .certificateExpired),
            (
                try DoorSite(identifier: vectors.site, issuerKey: issuerKey, revocations: list), greeting,
                .readerRevoked
            ),
            // A revoked reader that has the site key, or speaks without encryption, is not opened either.
            (
                try DoorSite(
                    identifier: vectors.site,
                    siteKey: vectors.publicKey("site"),
                    issuerKey: issuerKey,
                    revocations: list
                ), bare, .readerRevoked
            ),
            (
                try DoorSite(identifier: vectors.site, issuerKey: issuerKey, isLegacy: true, revocations: list), bare,
                .readerRevoked
            ),
            (
                try DoorSite(identifier: vectors.site, issuerKey: vectors.publicKey("site")), greeting,
                .certificateInvalid
            ),
            // The site key does not replace a certificate that was presented.
            (try DoorSite(identifier: vectors.site, siteKey: vectors.publicKey("site")), greeting, .certificateInvalid),
            (try DoorSite(identifier: vectors.site, issuerKey: issuerKey), bare, .noCertificate),
            (
                try DoorSite(identifier: Array(repeating: 1, count: 16), siteKey: vectors.publicKey("site")), bare,
                .unknownSite
            ),
            (
                try DoorSite(
                    identifier: vectors.site,
                    siteKey: vectors.publicKey("site"),
                    locations: [Array(repeating: 1, count: 16)]
                ), bare, .unknownSite
            ),
        ]
        for (site, message, failure) in cases {
            var handshake = try handshake(site)
            #expect(throws: failure) { try handshake.receive(message, .fragments) }
        }
    }
}

@Suite("The messages of PKOC over Bluetooth", .timeLimit(.minutes(5)))
struct PKOCMessageTests {
    @Test("lengths are read in both forms")
    func lengths() throws {
        let value = [UInt8](repeating: 5, count: 162)
        for bytes in [[0x40, 0xA2] + value, [0x40, 0x81, 0xA2] + value] {
            #expect(try PKOCMessage(bytes)[.encrypted] == value)
        }
    }

    @Test(
        "a malformed message is refused",
        arguments: [
            [], [0x04], [0x04, 0x02, 3], [0x04, 0x01, 3, 0], [0x04, 0x01, 3, 0x04, 0x01, 2], [0x04, 0x02, 3, 3],
            [0x04, 0x81, 0x01, 3], [0x40, 0x80], [0x40, 0x83, 0, 0, 1, 0],
            [UInt8](repeating: 0x80, count: PKOCMessage.longest + 1),
        ]
    )
    func malformed(_ bytes: [UInt8]) {
        #expect(throws: PKOCFailure.malformed) { try PKOCMessage(bytes) }
    }

    @Test("values with unknown tags are skipped")
    func unknown() throws {
        #expect(try PKOCMessage([0x80, 2, 9, 9, 0x04, 1, 3])[.response] == [3])
    }

    @Test(
        "pieces in a wrong order are refused",
        arguments: [
            [[1, 9]], [[0, 9], [0, 9]], [[0, 9], [3, 9]], [[0]], [[]], [[0, 9], []],
            [[UInt8]](repeating: [0] + [UInt8](repeating: 1, count: 1024), count: 1)
                + [[1] + [UInt8](repeating: 1, count: 1)],
        ]
    )
    func order(_ pieces: [[UInt8]]) {
        var framing = PKOCFraming()
        #expect(throws: PKOCFailure.malformed) {
            // The first message fixes the dialect.
            _ = try framing.receive([2, 0x0C])
            for piece in pieces { _ = try framing.receive(piece) }
        }
    }

    @Test("a whole message that does not fit one write is not sent")
    func tooLong() throws {
        var framing = PKOCFraming()
        _ = try framing.receive([0x0C, 0])
        #expect(framing.dialect == .whole)
        #expect(framing.divide([UInt8](repeating: 1, count: 21), capacity: 20) == nil)
        #expect(framing.divide([UInt8](repeating: 1, count: 20), capacity: 20)?.count == 1)
        #expect(framing.divide([], capacity: 0)?.count == 1)
    }
}
