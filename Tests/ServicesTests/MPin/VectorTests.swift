// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Foundation
import TestSupport
import Testing
import Text

@testable import MPin

/// Tests/Vectors/mpin.json, which Tests/MPinServer/make-vectors.py has computed.
private struct Vectors: Decodable {
    let records: [Record]
    let signatures: [Signature]

    /// What a user with a public key computes.
    struct Signature: Decodable, CustomTestStringConvertible {
        let `private`, `public`, id, share1, share2, pin, token, x, hash, u, v: String
        let epochTime: UInt32
        var testDescription: String { "private key \(`private`.suffix(8))" }
    }

    struct Record: Decodable, CustomTestStringConvertible {
        let id, digest, point, share1, share2, clientSecret, pin, token: String
        let day: UInt32?
        let permit1, permit2: String?
        let x, u, y, loginPin, v: String
        let ut: String?
        var testDescription: String { "PIN \(pin), login with \(loginPin)" }
    }

    static func signatures() throws -> [Signature] { try all().signatures }

    static func read() throws -> [Record] { try all().records }

    private static func all() throws -> Vectors { try vectors("mpin.json", as: Vectors.self) }
}

/// Tests/Vectors/mpin-apache.json: what unmodified servers of Apache Milagro and a client of others have sent, and its secrets.
private struct Dialogue: CustomTestStringConvertible {
    let what: String
    let exchanges: [JSON]
    /// What the client knew and computed.
    let secrets: JSON
    var testDescription: String { what }

    static func read() throws -> [Dialogue] {
        let file = try JSON([UInt8](Data(contentsOf: testsFolder.appending(path: "Vectors/mpin-apache.json"))))
        return file["dialogues"]?.array?.compactMap { dialogue in
            guard let secrets = dialogue["client's secrets"]?.array?.first else { return nil }
            return Dialogue(
                what: dialogue["what"]?.string ?? "",
                exchanges: dialogue["exchanges"]?.array ?? [],
                secrets: secrets
            )
        } ?? []
    }

    /// All values of a member of a request (`body`) or of an answer.
    func all(_ part: String, _ member: String) -> [String] { exchanges.compactMap { $0[part]?[member]?.string } }

    func one(_ part: String, _ member: String) throws -> String { try #require(all(part, member).first) }

    func secret(_ member: String) throws -> String { try #require(secrets[member]?.string) }

    func pin() throws -> String {
        let digits = String(try #require(secrets["PIN as number"]?.int))
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}

private func secret(_ text: String) throws -> Secret { Secret(try #require(Hex.decode(text))) }

private func taken(_ box: SecretBox) throws -> Secret {
    guard let secret = box.take() else { throw CryptoError.invalidKey }
    return secret
}

private func pin(_ digits: String) throws -> PIN {
    guard let pin = PIN(Secret(digits.utf8)) else { throw CryptoError.invalidKey }
    return pin
}

private func hex(_ secret: borrowing Secret) -> String { secret.withBytes { Hex.encode($0) } }

@Suite("The client's part of M-Pin")
struct VectorTests {
    @Test("all dialogues with secrets are there")
    func count() throws {
        #expect(try Dialogue.read().count == 7)
    }

    @Test("registration and login compute what the independent reference computes", arguments: try Vectors.read())
    fileprivate func record(_ record: Vectors.Record) throws {
        let id = try #require(MPinID(record.id))
        #expect(Hex.encode(try id.digest()) == record.digest)
        #expect(Hex.encode(try Point.hash(try id.digest()).encoded()) == record.point)
        let whole = try ClientKeys.sum(try secret(record.share1), try secret(record.share2))
        #expect(hex(whole) == record.clientSecret)
        let token = try ClientKeys.token(from: whole, try pin(record.pin), id)
        #expect(hex(token) == record.token)
        var permit: Secret?
        if let first = record.permit1, let second = record.permit2 {
            permit = .some(try ClientKeys.sum(try secret(first), try secret(second)))
        }
        let proof = try LoginProof(id, day: record.day.map(PermitDay.init), x: try Scalar(try secret(record.x)))
        #expect(Hex.encode(proof.u) == record.u)
        #expect(proof.ut.map { Hex.encode($0) } == record.ut)
        let v = try proof.answer(to: try secret(record.y), token: token, try pin(record.loginPin), permit: permit)
        #expect(Hex.encode(v) == record.v)
    }

    @Test("a registration or login computes what servers of Apache have judged", arguments: try Dialogue.read())
    fileprivate func apache(_ dialogue: Dialogue) throws {
        let right = try pin(try dialogue.pin())
        let shares = dialogue.all("answer", "clientSecretShare") + dialogue.all("answer", "clientSecret")
        if shares.count == 2 {
            let whole = try ClientKeys.sum(try secret(shares[0]), try secret(shares[1]))
            #expect(hex(whole) == (try dialogue.secret("client secret")))
            let id = try #require(MPinID(try dialogue.one("answer", "mpinId")))
            #expect(hex(try ClientKeys.token(from: whole, right, id)) == (try dialogue.secret("token")))
            return
        }
        let id = try #require(MPinID(try dialogue.one("body", "mpin_id")))
        let permits = dialogue.all("answer", "timePermit")
        if permits.count == 2 {
            let permit = try ClientKeys.sum(try secret(permits[0]), try secret(permits[1]))
            #expect(hex(permit) == (try dialogue.secret("time permit")))
        }
        let day = PermitDay(UInt32(try #require(dialogue.secrets["day"]?.int)))
        let proof = try LoginProof(id, day: day, x: try Scalar(try secret(try dialogue.secret("x"))))
        #expect(Hex.encode(proof.u) == (try dialogue.one("body", "U")))
        #expect(proof.ut.map { Hex.encode($0) } == (try dialogue.one("body", "UT")))
        let v = try proof.answer(
            to: try secret(try dialogue.one("answer", "y")),
            token: try secret(try dialogue.secret("token")),
            right,
            permit: .some(try secret(try dialogue.secret("time permit")))
        )
        #expect(Hex.encode(v) == (try dialogue.one("body", "V")))
    }

    @Test("a key pair, its token and a signature are what the reference computes", arguments: try Vectors.signatures())
    fileprivate func signature(_ record: Vectors.Signature) async throws {
        let keys = try IdentityKeys(try Scalar(try secret(record.private)))
        #expect(Hex.encode(keys.publicKey) == record.public)
        let id = try #require(MPinID(record.id))
        let identity = try #require(KeyedIdentity(id: id, publicKey: keys.publicKey, dtas: ""))
        let (first, second) = (SecretBox(try secret(record.share1)), SecretBox(try secret(record.share2)))
        let whole = try await keys.clientSecret(first, second)
        let factors = Factors(Secret(record.pin.utf8))
        let token = try taken(try await ClientKeys.token(from: whole, factors, identity.signingID))
        #expect(hex(token) == record.token)
        let proof = try LoginProof(identity.signingID, day: nil, x: try Scalar(try secret(record.x)))
        #expect(Hex.encode(proof.u) == record.u)
        let hash = try #require(Hex.decode(record.hash))
        let v = try proof.sign(hash, at: record.epochTime, token: token, try pin(record.pin))
        #expect(Hex.encode(v) == record.v)
    }

    @Test("another hash, time, identity or PIN makes another signature of a document")
    func documents() throws {
        let (id, other) = (try #require(MPinID("7b7d")), try #require(MPinID("7b7e")))
        func sign(_ id: MPinID, _ hash: UInt8, _ time: UInt32, _ digits: String) throws -> [UInt8] {
            let proof = try LoginProof(id, day: nil, x: try Scalar(7))
            let token = try Point.hash(try id.digest()).secret()
            return try proof.sign([UInt8](repeating: hash, count: 32), at: time, token: token, try pin(digits))
        }
        let made = try [
            sign(id, 1, 5, "1234"), sign(id, 2, 5, "1234"), sign(id, 1, 6, "1234"), sign(other, 1, 5, "1234"),
            sign(id, 1, 5, "1235"),
        ]
        #expect(Set(made).count == 5)
    }

    @Test("a second factor changes the token, and no factor is not an empty one")
    func secondFactor() async throws {
        let id = try #require(MPinID("7b7d"))
        func token(_ factors: Factors) async throws -> [UInt8] {
            let secret = SecretBox(try Point.hash(try id.digest()).secret())
            return try taken(try await ClientKeys.token(from: secret, factors, id)).withBytes { Array($0) }
        }
        let alone = try await token(Factors(Secret("1234".utf8)))
        let both = try await token(Factors(Secret("1234".utf8), second: Secret("5678".utf8)))
        let other = try await token(Factors(Secret("5678".utf8), second: Secret("1234".utf8)))
        #expect(Set([alone, both, other]).count == 3)
    }

    @Test("two proofs of one user differ")
    func random() throws {
        let id = try #require(MPinID("7b7d"))
        let first = try LoginProof(id, day: nil)
        let second = try LoginProof(id, day: nil)
        #expect(first.u != second.u)
        #expect(first.ut == nil)
    }
}

@Suite("Numbers and points of a server")
struct HostilePointTests {
    private static let zeros = String(repeating: "0", count: 63)
    private static let base =
        "042400000008702a0db0bddf647a6366d3243fd6ee18093ee1be6623ef5c1b55b2\(zeros)1"
    private static let order = "2400000008702a0db0bddf647a6366d2c43fd6ee0cc906cebe11c0a636eb1f6d"
    private static let field = "2400000008702a0db0bddf647a6366d3243fd6ee18093ee1be6623ef5c1b55b3"

    @Test("the generator has the order of the group")
    func generator() throws {
        let point = try Point(try secret(Self.base))
        let last = try point.multiplied(by: try Scalar(try secret(String(Self.order.dropLast()) + "c")))
        #expect(try last.negated().encoded() == point.encoded())
    }

    @Test("a public key that is no point of the second group is refused", arguments: [0, 31, 64, 127])
    func publicKeys(index: Int) throws {
        let generator = try SecondPoint.generator(times: try Scalar(1)).encoded()
        #expect(try SecondPoint(generator).encoded() == generator)
        var wrong = generator
        wrong[index] ^= 1
        #expect(throws: CryptoError.invalidPoint) { try SecondPoint(wrong) }
        #expect(throws: CryptoError.invalidPoint) { try SecondPoint(generator + [0]) }
        let field = try #require(Hex.decode(Self.field))
        #expect(throws: CryptoError.invalidPoint) { try SecondPoint(field + generator[32...]) }
        let id = try #require(MPinID("7b7d"))
        #expect(KeyedIdentity(id: id, publicKey: wrong, dtas: "") == nil)
    }

    @Test("the second group has the order of the first one")
    func secondGroup() throws {
        let minusOne = try Scalar(try secret(String(Self.order.dropLast()) + "c"))
        let (one, last) = (
            try SecondPoint.generator(times: try Scalar(1)).encoded(),
            try SecondPoint.generator(times: minusOne).encoded()
        )
        #expect(one.prefix(64) == last.prefix(64))
        #expect(one.suffix(64) != last.suffix(64))
        #expect(throws: CryptoError.invalidPoint) {
            try SecondPoint.generator(times: try Scalar(0)).encoded()
        }
    }

    private static let noPoints: [String] = [
        "", "00", "04", String(base.dropLast(2)), "\(base)00", "02\(base.dropFirst(2))",
        // y + 1
        "\(base.dropLast())2",
        // x = p, and x = p + 1
        "04\(field)\(zeros)1", "04\(field.dropLast())4\(zeros)1",
        "04\(String(repeating: "f", count: 128))", "04\(String(repeating: "0", count: 128))",
    ]

    @Test("a point that is no point of the curve is refused", arguments: noPoints)
    func points(text: String) throws {
        let bytes = try secret(text)
        #expect(throws: CryptoError.invalidPoint) {
            do { _ = try Point(bytes) } catch { throw error }
        }
    }

    @Test(
        "a challenge out of range is refused",
        arguments: [
            ("0\(zeros)", .invalidKey), (order, .invalidKey), (String(repeating: "f", count: 64), .invalidKey),
            (String(order.dropLast(2)), .invalidLength), ("00\(order)", .invalidLength),
        ] as [(String, CryptoError)]
    )
    func scalars(text: String, error: CryptoError) throws {
        let bytes = try secret(text)
        #expect(throws: error) {
            do { _ = try Scalar(bytes) } catch { throw error }
        }
    }

    @Test("shares that add up to infinity are refused")
    func infinity() throws {
        let point = try Point(try secret(Self.base))
        let first = try point.secret()
        let second = try point.negated().secret()
        #expect(throws: CryptoError.invalidPoint) {
            do { _ = try ClientKeys.sum(first, second) } catch { throw error }
        }
    }

    @Test("a challenge that cancels the random number of the client is refused")
    func cancellingChallenge() throws {
        let id = try #require(MPinID("7b7d"))
        let y = try secret(String(Self.order.dropLast()) + "c")
        let proof = try LoginProof(id, day: nil, x: try Scalar(1))
        let token = try secret(Self.base)
        let digits = try pin("1234")
        let none: Secret? = nil
        #expect(throws: CryptoError.invalidKey) {
            do { _ = try proof.answer(to: y, token: token, digits, permit: none) } catch { throw error }
        }
    }

    @Test("a PIN has four digits", arguments: ["", "123", "12345", "12a4", "12 4", "١٢٣٤"])
    func wrongPIN(text: String) {
        let isPIN = PIN(Secret(text.utf8)) != nil
        #expect(!isPIN)
    }
}
