// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import Crypto
import ISO7816
package import Text

/// The signed content of EF.SOD: the hash of each data group. ICAO 9303-10 4.6.2.3.
package struct SecurityObject: Sendable, Equatable {
    package let digest: DigestAlgorithm
    /// The hashes by the number of the data group.
    package let hashes: [Int: [UInt8]]

    /// The contents of the object identifiers: that of ICAO 9303-10, and two of documents that are older, from Belgium,
    /// France and the Netherlands, and still valid.
    package static let contentTypes: [[UInt8]] = [
        OID.icaoSecurity + [1], [0x2B, 0x1B, 0x01, 0x01, 0x01], [0x2A, 0x84, 0x10, 0x01, 0x87, 0x6E, 0x01, 0x14, 0x01],
    ]

    package typealias Fault = PublicKeyInfo.Fault

    /// Reads an LDSSecurityObject.
    package init(_ bytes: [UInt8]) throws(Fault) {
        guard let resolved = DefiniteLengths.resolve(bytes), let object = try? BERTLV(resolved), object.tag == 0x30,
            let fields = try? object.children, fields.count >= 3, fields[0].tag == 0x02, fields[0].value.count == 1
        else { throw .malformed }
        // A version that comes later may have another list.
        guard fields[0].value[0] <= 1 else { throw .unsupported }
        guard fields.count <= 4, fields[2].tag == 0x30, let list = try? fields[2].children, list.count <= 16 else {
            throw .malformed
        }
        guard let digest = SignatureAlgorithm.digest(fields[1]) else { throw .unsupported }
        var hashes: [Int: [UInt8]] = [:]
        for entry in list {
            guard entry.tag == 0x30, let pair = try? entry.children, pair.count == 2, pair[0].tag == 0x02,
                pair[0].value.count == 1, (1...16).contains(pair[0].value[0]), pair[1].tag == 0x04,
                hashes.updateValue(pair[1].value, forKey: Int(pair[0].value[0])) == nil
            else { throw .malformed }
        }
        self.digest = digest
        self.hashes = hashes
    }

    /// Whether a file has the hash of its group; nil for a group that is not signed.
    package func matches(_ file: [UInt8], group: Int) -> Bool? {
        guard let expected = hashes[group] else { return nil }
        guard let hash = try? digest.hash(file) else { return false }
        return hash == expected
    }

    /// Reads the SignedData inside of EF.SOD, the object 77.
    package static func signedData(_ file: [UInt8]) throws(SignedData.Fault) -> SignedData {
        guard let (resolved, _) = DefiniteLengths.first(of: file), let object = try? BERTLV(resolved),
            object.tag == DocumentFile.sod.tag
        else { throw .malformed }
        return try SignedData(object.value)
    }
}

/// EF.COM: the list of data groups, which is not signed. ICAO 9303-10 4.6.1.
package struct CommonData: Sendable, Equatable {
    package let groups: [Int]

    /// - Throws: `Malformed`.
    package init(_ file: [UInt8]) throws(Malformed) {
        let object = try BERTLV(startOf: file)
        guard object.tag == DocumentFile.com.tag,
            let list = BERTLV.readable(object.value).first(where: { $0.tag == 0x5C })
        else { throw .invalidTag }
        groups = list.value.prefix(32).compactMap { tag in DocumentFile.groupTags.firstIndex(of: UInt32(tag)) }
            .filter { $0 > 0 }
    }
}
