// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import ISO7816
import TestSupport
import Testing
import Text

/// Files that a hostile chip, or a hostile list of authorities, brings.
@Suite("Hostile files of documents", .timeLimit(.minutes(5)))
struct HostileDocumentTests {
    // MARK: Nesting and counts

    /// Constructed objects in one another, with right lengths.
    private static func nested(_ tag: UInt8, depth: Int = 100_000) -> [UInt8] {
        var bytes = [UInt8](repeating: 0x83, count: depth * 5)
        for start in stride(from: 0, to: bytes.count, by: 5) {
            let length = bytes.count - start - 5
            bytes[start] = tag
            bytes[start + 2] = UInt8(truncatingIfNeeded: length >> 16)
            bytes[start + 3] = UInt8(truncatingIfNeeded: length >> 8)
            bytes[start + 4] = UInt8(truncatingIfNeeded: length)
        }
        return bytes
    }

    private static let parsers: [(name: String, tag: UInt8, isTaken: @Sendable ([UInt8]) -> Bool)] = [
        ("EF.CardAccess", 0x31, { (try? SecurityInfos($0).pace)?.isEmpty == false }),
        ("EF.COM", 0x60, { (try? CommonData($0)) != nil }),
        ("EF.SOD", 0x77, { (try? SecurityObject.signedData($0)) != nil }),
        ("DG1", 0x61, { MachineReadableZone(group: $0) != nil }),
        ("DG2", 0x75, { (try? FaceImages($0)) != nil }),
        ("DG7", 0x67, { (try? SignatureImages($0)) != nil }),
        ("DG16", 0x70, { (try? PersonsToNotify($0))?.persons.isEmpty == false }),
        ("a key", 0x30, { (try? PublicKeyInfo($0)) != nil }),
        ("a certificate", 0x30, { (try? DocumentCertificate($0)) != nil }),
        ("a revocation list", 0x30, { (try? RevocationList($0)) != nil }),
        ("a master list", 0x30, { (try? MasterList($0)) != nil }),
    ]

    @Test("objects in objects, 100,000 deep, are refused", arguments: parsers.map(\.name))
    func deepNesting(name: String) throws {
        let parser = try #require(Self.parsers.first { $0.name == name })
        #expect(!parser.isTaken(Self.nested(parser.tag)))
    }

    @Test("a record of a face that is 100,000 objects deep has no picture")
    func deepRecord() {
        let record = BERTLV(0x7F2E, Self.nested(0xA1))
        let file = BERTLV(0x75, [BERTLV(0x7F61, [BERTLV(0x02, [1]), BERTLV(0x7F60, [record])])]).encoded
        #expect(throws: Malformed.self) { try FaceImages(file) }
    }

    @Test("the details of a holder with 100,000 objects in one another are empty")
    func deepDetails() throws {
        let person = try? PersonalDetails(Self.nested(0x6B))
        #expect(person?.fullName == nil)
        let issuance = try? IssuanceDetails(Self.nested(0x6C))
        #expect(issuance?.authority == nil)
    }

    @Test("pictures of 64 KiB with wrong counts and lengths are bounded", arguments: [0, 1, 2, 17, 0xFFFF])
    func counts(count: Int) throws {
        let picture: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0] + [UInt8](repeating: 7, count: 0x1_0000)
        // The first block says that it has 60 bytes, and the others are what the picture happens to have.
        let head = Array("FAC\0".utf8) + Array("010\0".utf8) + [0, 0, 0, 1, UInt8(count >> 8), UInt8(count & 0xFF)]
        let block: [UInt8] = [0, 0, 0, 60] + [UInt8](repeating: 0, count: 28)
        let record = BERTLV(0x5F2E, head + block + picture)
        let template = BERTLV(0x7F60, [BERTLV(0xA1, [UInt8]()), record])
        for (announced, templates) in [(1, 1), (255, 1), (0, 20), (1, 20)] {
            let group = BERTLV(
                0x7F61,
                [BERTLV(0x02, [UInt8(announced)])] + Array(repeating: template, count: templates)
            )
            let file = BERTLV(0x75, group.encoded).encoded
            let images = try FaceImages(file).images
            #expect((1...16).contains(images.count))
            #expect(images.allSatisfy { $0.data.count <= picture.count })
            #expect(images.first?.format == .jpeg)
        }
    }

    // MARK: Keys

    private static let rsa: [UInt8] = hex("2A864886F70D010101")
    private static let elliptic: [UInt8] = hex("2A8648CE3D0201")
    private static let integers: [UInt8] = hex("2A8648CE3E0201")
    private static let p256: [UInt8] = hex("2A8648CE3D030107")

    private static func info(_ algorithm: [UInt8], _ parameters: [BERTLV], key: [UInt8]) -> [UInt8] {
        BERTLV(0x30, [BERTLV(0x30, [BERTLV(0x06, algorithm)] + parameters), BERTLV(0x03, [0] + key)]).encoded
    }

    private static func rsa(_ modulus: [UInt8], _ exponent: [UInt8]) -> [UInt8] {
        info(
            rsa,
            [BERTLV(0x05, [UInt8]())],
            key: BERTLV(0x30, [BERTLV(0x02, modulus), BERTLV(0x02, exponent)]).encoded
        )
    }

    @Test("RSA keys with wild numbers never reach libcrypto")
    func wildRSA() throws {
        let usual = [0] + [UInt8](repeating: 0xFF, count: 256)
        #expect(throws: Never.self) { try PublicKeyInfo(Self.rsa(usual, [1, 0, 1])) }
        let huge = [0] + [UInt8](repeating: 0xFF, count: 131_072)
        let cases: [([UInt8], [UInt8])] = [
            (huge, [3]), (usual, huge), (usual.dropLast() + [0xFE], [3]), ([0], [3]), ([], [3]), (usual, []),
            (usual, [0]),
            (usual, [1]), (usual, [2]), (usual, [1, 0, 0, 0, 1]), (Array(usual.dropFirst()), [3]), (usual, [0x83]),
            ([0] + [UInt8](repeating: 0xFF, count: 64), [3]),
        ]
        for (modulus, exponent) in cases {
            #expect(throws: PublicKeyInfo.Fault.self) { try PublicKeyInfo(Self.rsa(modulus, exponent)) }
        }
    }

    @Test("points that are not on their curve are no keys")
    func points() throws {
        let curve = BERTLV(0x06, Self.p256)
        let right = try ECPrivateKey(on: try Curve.secp256r1.group).publicKey.uncompressed
        #expect(throws: Never.self) { try PublicKeyInfo(Self.info(Self.elliptic, [curve], key: right)) }
        let compressed = [2 | right[64] & 1] + right[1...32]
        let read = try PublicKeyInfo(Self.info(Self.elliptic, [curve], key: compressed))
        #expect(try read == PublicKeyInfo(Self.info(Self.elliptic, [curve], key: right)))
        let hybrid = [6 | right[64] & 1] + right[1...64]
        var off = right
        off[64] ^= 1
        let wrong: [[UInt8]] = [
            off, [0], [], [4], Array(right.dropLast()), right + [0], compressed + [0], Array(compressed.dropLast()),
            [2] + [UInt8](repeating: 0xFF, count: 32), hybrid,
            [4] + [UInt8](repeating: 0, count: 64), [4] + [UInt8](repeating: 0xFF, count: 64),
            [4] + [UInt8](repeating: 1, count: 100_000),
        ]
        for point in wrong {
            #expect(throws: PublicKeyInfo.Fault.self) {
                try PublicKeyInfo(Self.info(Self.elliptic, [curve], key: point))
            }
        }
    }

    @Test("wild parameters of a curve never reach libcrypto")
    func wildCurves() throws {
        // The explicit parameters of an authority of the catalogue.
        let certificate = try DocumentCatalogue.shared.certificate("csca-2-brainpool")
        let bytes = certificate.bytes
        let algorithm = BERTLV(0x06, Self.elliptic).encoded
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: algorithm) })
        let explicit = try BERTLV(startOf: bytes[(start + algorithm.count)...])
        let key = try certificate.publicKey
        guard case .elliptic(let point) = key else { throw Malformed.invalidTag }
        func read(_ fields: [BERTLV]) throws(PublicKeyInfo.Fault) -> PublicKeyInfo {
            try PublicKeyInfo(Self.info(Self.elliptic, [BERTLV(0x30, fields)], key: point.uncompressed))
        }
        let fields = try explicit.children
        #expect(try read(fields) == key)
        let huge = [UInt8](repeating: 0xFF, count: 100_000)
        // The version is of no use.
        for index in fields.indices.dropFirst() {
            for value in [[], [0], [1], [0x80], huge] as [[UInt8]] {
                var changed = fields
                changed[index] = BERTLV(fields[index].tag, value)
                // A missing cofactor and one of 1 are the same.
                guard changed != fields else { continue }
                #expect(throws: PublicKeyInfo.Fault.self) { try read(changed) }
            }
        }
        // A prime that is no prime, with which a square root may never end (CVE-2022-0778).
        let field = try fields[1].children
        for prime in [[0x02, 0xB9], [0x04], huge] as [[UInt8]] {
            var changed = fields
            changed[1] = BERTLV(0x30, [field[0], BERTLV(0x02, prime)])
            #expect(throws: PublicKeyInfo.Fault.self) { try read(changed) }
        }
        for parameters in [BERTLV(0x06, hex("2A8648CE3D030201")), BERTLV(0x02, [255]), BERTLV(0x05, [UInt8]())] {
            let info = Self.info(Self.elliptic, [parameters], key: point.uncompressed)
            #expect(throws: PublicKeyInfo.Fault.self) { try PublicKeyInfo(info) }
        }
    }

    @Test("groups that are not standardized, and keys outside of their group, are refused")
    func wildIntegers() throws {
        // RFC 5114 2.1.
        let prime = hex(
            """
            B10B8F96A080E01DDE92DE5EAE5D54EC52C99FBCFB06A3C69A6A9DCA52D23B616073E28675A23D189838EF1E2EE652C0
            13ECB4AEA906112324975C3CD49B83BFACCBDD7D90C4BD7098488E9C219A73724EFFD6FAE5644738FAA31A4FF55BCCC0
            A151AF5F0DC8B4BD45BF37DF365C1A65E68CFDA76D4DA708DF1FB2BC2E4A4371
            """
        )
        let generator = hex(
            """
            A4D1CBD5C3FD34126765A442EFB99905F8104DD258AC507FD6406CFF14266D31266FEA1E5C41564B777E690F5504F213
            160217B4B01B886A5E91547F9E2749F4D7FBD7D3B9A92EE1909D0D2263F80A76A6A24C087A091F531DBF0A0169B6A28A
            D662A4D18E73AFA32D779D5918D08BC8858F4DCEF97C2A24855E6EEB22B3B2E5
            """
        )
        let key = try DHPrivateKey(on: try DHParameters.modp1024.group).publicKey
        func read(_ prime: [UInt8], _ generator: [UInt8], _ key: [UInt8]) throws(PublicKeyInfo.Fault) -> PublicKeyInfo {
            let parameters = BERTLV(0x30, [BERTLV(0x02, [0] + prime), BERTLV(0x02, generator)])
            return try PublicKeyInfo(Self.info(Self.integers, [parameters], key: BERTLV(0x02, key).encoded))
        }
        #expect(try read(prime, generator, key.bytes) == .integers(key))
        let huge = [UInt8](repeating: 0xFF, count: 100_000)
        for (prime, generator) in [(huge, generator), (prime, [1]), (prime, huge), ([23], [5])] {
            #expect(throws: PublicKeyInfo.Fault.unsupported) { try read(prime, generator, key.bytes) }
        }
        for number in [[], [0], [1], prime, huge] {
            #expect(throws: PublicKeyInfo.Fault.invalidKey) { try read(prime, generator, number) }
        }
    }
}
