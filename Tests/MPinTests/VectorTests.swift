// SPDX-License-Identifier: GPL-3.0-or-later
import BN254
import Crypto
import Foundation
import Secrets
import Testing
import Text

@testable import MPin

/// Tests/Vectors/mpin.json, which Tests/MPinServer/make-vectors.py has computed.
private struct Vectors: Decodable {
    let records: [Record]

    struct Record: Decodable, CustomTestStringConvertible {
        let id, digest, point, share1, share2, clientSecret, pin, token: String
        let day: UInt32?
        let permit1, permit2: String?
        let x, u, y, loginPin, v: String
        let ut: String?
        var testDescription: String { "PIN \(pin), login with \(loginPin)" }
    }

    static func read() throws -> [Record] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let data = try Data(contentsOf: folder.appending(path: "Vectors/mpin.json"))
        return try JSONDecoder().decode(Vectors.self, from: data).records
    }
}

private func secret(_ text: String) throws -> Secret { Secret(try #require(Hex.decode(text))) }

private func pin(_ digits: String) throws -> PIN {
    guard let pin = PIN(Secret(digits.utf8)) else { throw CryptoError.invalidKey }
    return pin
}

private func hex(_ secret: borrowing Secret) -> String { secret.withBytes { Hex.encode($0) } }

@Suite("The client's part of M-Pin")
struct VectorTests {
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

    @Test("two proofs of one user have nothing in common")
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
