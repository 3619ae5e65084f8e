// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import FoundationEssentials
import TestSupport
import Text

@testable import DoorOpening

/// A file in Tests/Vectors, which names its source.
struct PKOCVectors: Decodable {
    struct Key: Decodable {
        let label: String
        let `private`: String
        let `public`: String
        let compressed: String
    }
    struct Message: Decodable {
        let from: String
        let hex: String
    }
    struct Flow: Decodable {
        let name: String
        let messages: [Message]
        let signedBytes: String
        let plaintext: String?
    }
    struct Fragments: Decodable {
        let mtu: Int
        let message: String
        let parts: [String]
    }
    let keys: [Key]
    let siteIdentifier: String
    let readerLocationIdentifier: String
    let lastUpdateTime: UInt32
    let flows: [Flow]
    let fragments: [Fragments]
    let responses: [String: String]

    static func load() throws -> PKOCVectors { try vectors("pkoc-ble.json", as: PKOCVectors.self) }

    func key(_ label: String) -> Key? { keys.first { $0.label == label } }

    func publicKey(_ label: String) -> [UInt8] { bytes(key(label)?.public ?? "") }

    func privateKey(_ label: String) throws -> ECPrivateKey {
        try ECPrivateKey(Secret(bytes(key(label)?.private ?? "")), on: Curve.secp256r1.group)
    }

    var site: [UInt8] { bytes(siteIdentifier) }
    var location: [UInt8] { bytes(readerLocationIdentifier) }
    /// The time at which the certificates of the vectors are checked.
    static let now: UInt32 = 1_752_000_000
}

struct CertificateVectors: Decodable {
    struct Certificate: Decodable {
        let forever: String
        let expiredAt1700000000: String
    }
    struct List: Decodable {
        let withLocation: String
        let emptyOlder: String
        let issued: [UInt32]
    }
    let readerCertificate: Certificate
    let revocationList: List

    static func load() throws -> CertificateVectors {
        try vectors("pkoc-reader-certificate.json", as: CertificateVectors.self)
    }
}

func bytes(_ hex: String) -> [UInt8] { Hex.decode(hex, limit: 4096) ?? [] }
