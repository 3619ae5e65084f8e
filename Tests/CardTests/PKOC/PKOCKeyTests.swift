// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import Taps
import TestSupport
import Testing
import Text
import Vault

@Suite("Numbers, certificates and sessions of PKOC", .timeLimit(.minutes(5)))
struct KeyTests {
    @Test(
        "card numbers are the rightmost bits of X, and keep leading zeros",
        arguments: ["workedExample", "coreExample", "own", "leadingZero"]
    )
    func numbers(name: String) throws {
        let example = try pkocVectors().object(name)
        let point =
            try name == "own"
            ? example.object("card").bytes("public")
            : example[name == "leadingZero" ? "public" : "publicKey"].map { Hex.decode($0.string ?? "") ?? [] } ?? []
        let numbers = try example.object("identifiers")
        let views = CredentialNumber.views(of: point)
        #expect(views.count == 5)
        for number in views { #expect(try number.bytes == numbers.bytes("bits\(number.bits)")) }
        #expect(views.first?.decimal == numbers["decimal64"]?.string)
        let short = CredentialNumber(publicKey: point, bits: 26)
        #expect(short?.bytes.count == 4 && (short?.bytes.first ?? 4) <= 3)
    }

    @Test("a compressed point is the point")
    func compressedPoint() throws {
        let card = try pkocVectors().object("own").object("card")
        let key = try ECPublicKey(compressedPoint: try card.bytes("compressed"), on: .secp256r1)
        #expect(try key.uncompressed == card.bytes("public"))
        #expect(try key.compressedPoint == card.bytes("compressed"))
        #expect(throws: CryptoError.invalidPoint) {
            try ECPublicKey(compressedPoint: try card.bytes("public"), on: .secp256r1)
        }
    }

    // MARK: Certificates

    private static func day(_ year: Int, _ month: Int = 6, _ day: Int = 1) throws -> CVDate {
        try #require(CVDate(year: year, month: month, day: day))
    }

    private static func site(_ keys: String...) throws -> PKOCSite {
        let cvc = try pkocVectors().object("cvc")
        let reference = Array(try #require(cvc["iir"]?.string).utf8)
        let issuers = try keys.map {
            let key = try ECPublicKey(try cvc.object($0).bytes("public"), on: .secp256r1)
            return try #require(PKOCIssuer(reference: reference, key: .elliptic(key)))
        }
        return PKOCSite(issuers: issuers)
    }

    @Test(
        "a certificate of a known issuer is valid between its days",
        arguments: ["certificate", "sameWithOlderOidArc"]
    )
    func certificate(name: String) throws {
        let cvc = try pkocVectors().object("cvc")
        let certificate = try PKOCCertificate(try cvc.bytes(name))
        #expect(try certificate.key.uncompressed == cvc.object("subject").bytes("public"))
        #expect(certificate.subjectReference == Array("CARD000000000042".utf8))
        #expect(certificate.extensions.count == 1)
        let site = try Self.site("issuer")
        #expect(certificate.problem(at: site, on: try Self.day(2026, 1, 1)) == nil)
        #expect(certificate.problem(at: site, on: try Self.day(2036, 1, 1)) == nil)
        #expect(certificate.problem(at: site, on: try Self.day(2025, 12, 31)) == .notYetValid)
        #expect(certificate.problem(at: site, on: try Self.day(2036, 1, 2)) == .expired)
        #expect(certificate.problem(at: PKOCSite(), on: try Self.day(2026)) == .unknownIssuer)
        #expect(certificate.problem(at: try Self.site("subject"), on: try Self.day(2026)) == .wrongCertificateSignature)
        #expect(certificate.problem(at: try Self.site("subject", "issuer"), on: try Self.day(2026)) == nil)
    }

    @Test("a changed certificate is refused, and one with a part missing cannot be read")
    func changedCertificate() throws {
        let cvc = try pkocVectors().object("cvc")
        #expect(throws: PKOCProblem.malformed) { try PKOCCertificate(try cvc.bytes("tampered")) }
        let good = try cvc.bytes("certificate")
        let site = try Self.site("issuer")
        let day = try Self.day(2026)
        for other in changed(good) {
            // Nothing but the certificate itself counts.
            if let read = try? PKOCCertificate(other) { #expect(read.problem(at: site, on: day) != nil) }
        }
        for count in good.indices {
            #expect(throws: PKOCProblem.malformed) { try PKOCCertificate(Array(good.prefix(count))) }
        }
        #expect(throws: PKOCProblem.malformed) { try PKOCCertificate(good + good) }
    }

    @Test("a certificate of an issuer with an RSA key is valid with this key alone, and not with one bit changed")
    func rsaIssuer() throws {
        let vector = try vectorFile("pkoc-rsa.json")
        let certificate = try vector.bytes("certificate")
        let reference = Array(try #require(try vector.object("reference").string).utf8)
        let key = try #require(PKOCIssuer.Key(try vector.bytes("issuerKey")))
        let site = PKOCSite(issuers: [try #require(PKOCIssuer(reference: reference, key: key))])
        let day = try Self.day(2026)
        #expect(try PKOCCertificate(certificate).problem(at: site, on: day) == nil)
        #expect(try PKOCCertificate(certificate).problem(at: site, on: try Self.day(2037)) == .expired)
        for other in changed(certificate) {
            if let read = try? PKOCCertificate(other) { #expect(read.problem(at: site, on: day) != nil) }
        }
        // An issuer of the same name with a key on P-256.
        let point = try ECPublicKey(try pkocVectors().object("cvc").object("issuer").bytes("public"), on: .secp256r1)
        let other = try #require(PKOCIssuer(reference: reference, key: .elliptic(point)))
        let wrong = PKOCSite(issuers: [other])
        #expect(try PKOCCertificate(certificate).problem(at: wrong, on: day) == .wrongCertificateSignature)
        let both = PKOCSite(issuers: [other] + site.issuers)
        #expect(try PKOCCertificate(certificate).problem(at: both, on: day) == nil)
    }

    @Test("the key of an issuer is a compressed point or the object 7F49, and nothing else")
    func issuerKey() throws {
        let object = try vectorFile("pkoc-rsa.json").bytes("issuerKey")
        #expect(PKOCIssuer.Key(object) != nil)
        for index in object.indices { #expect(PKOCIssuer.Key(Array(object.prefix(index))) == nil) }
        #expect(PKOCIssuer.Key(object + [0]) == nil)
        var identifier = object
        identifier[6] ^= 1
        #expect(PKOCIssuer.Key(identifier) == nil)
        #expect(PKOCIssuer.Key(try pkocVectors().object("cvc").object("issuer").bytes("compressed")) != nil)
        #expect(PKOCIssuer.Key(try pkocVectors().object("cvc").object("issuer").bytes("public")) == nil)
    }

    // MARK: Encryption over Bluetooth

    @Test("both sides of the ECDHE flow compute the same key, and a forged message is refused")
    func session() throws {
        let example = try pkocVectors().object("ecdhe")
        let group = try Curve.secp256r1.group
        let reader = try ECPrivateKey(Secret(try example.object("reader").bytes("private")), on: group)
        let credential = try ECPrivateKey(Secret(try example.object("credential").bytes("private")), on: group)
        let signed = try example.bytes("signedBytes")
        let transcript = PKOCTranscript(
            site: Array(signed[..<16]),
            location: Array(signed[16..<32]),
            credential: credential.publicKey,
            reader: reader.publicKey
        )
        #expect(transcript?.bytes == signed)
        let plain = try example.bytes("plaintext")
        var sender = try PKOCSession(own: credential, peer: reader.publicKey)
        let sealed = try sender.seal(Secret(plain))
        #expect(try sealed == example.bytes("ciphertext"))
        var receiver = try PKOCSession(own: reader, peer: credential.publicKey)
        let opened = try receiver.open(sealed)?.withBytes { Array($0) }
        #expect(opened == plain)
        // The same message again has a wrong number.
        let isAccepted = try receiver.open(sealed) != nil
        #expect(!isAccepted)
    }
}
