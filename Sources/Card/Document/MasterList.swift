// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import ISO7816
package import Text

/// The authorities of many countries, signed by one of them. ICAO 9303-12 8.
package struct MasterList: Sendable, Equatable {
    /// The certificates that can be read, each once.
    package let certificates: [DocumentCertificate]
    /// How many certificates of the list cannot be read. Official lists have some.
    package let malformed: Int
    /// The signers that may sign such lists, and their signatures; at least one. The caller decides whom to trust.
    package let proofs: [SignedData.Proof]
    /// The first signer.
    package let proof: SignedData.Proof

    /// The content of the object identifier.
    package static let contentType = OID.icaoSecurity + [2]
    /// The maximum number of certificates. The ICAO list has about 600.
    private static let maximumCount = 10_000
    /// The maximum length of a list in bytes.
    package static let maximumLength = 32 << 20

    private static let unreadable = Malformed(Phrase("the master list cannot be read"))

    /// Reads a list and verifies the signature of its signer.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumLength, let signed = try? SignedData(bytes),
            signed.contentType == Self.contentType
        else { throw Self.unreadable }
        let all: [SignedData.Proof]
        do throws(SignedData.Fault) {
            all = try signed.proofs(of: .masterList)
        } catch {
            throw switch error {
            case .unsupported: Malformed(Phrase("the algorithm of its signature is not supported"))
            case .noSigner: Malformed(Phrase("it has no certificate of its signer"))
            case .malformed, .wrongDigest, .wrongSignature:
                Malformed(Phrase("the signature of the master list is wrong"))
            }
        }
        proofs = all.filter { SignedObject.masterList.rule.permits($0.signer) }
        guard let first = proofs.first else {
            throw Malformed(Phrase("its signer's certificate is not for master lists"))
        }
        proof = first
        guard let content = try? RawObject(definite: signed.content), content.tag == 0x30,
            let fields = try? content.children(limit: 2), fields.count == 2, fields[0].object == BERTLV(0x02, [0]),
            fields[1].tag == 0x31, let list = try? fields[1].children(limit: Self.maximumCount)
        else { throw Self.unreadable }
        var certificates: [DocumentCertificate] = []
        var seen: Set<DocumentCertificate> = []
        var malformed = 0
        for entry in list {
            guard let certificate = try? DocumentCertificate(Array(entry.raw)) else {
                malformed += 1
                continue
            }
            if seen.insert(certificate).inserted { certificates.append(certificate) }
        }
        self.certificates = certificates
        self.malformed = malformed
    }
}

/// The download of the ICAO directory: entries with binary attributes in base64. RFC 2849.
package enum DirectoryExport {
    /// A value of an entry.
    package enum Value: Sendable, Equatable {
        case masterList([UInt8])
        case certificate([UInt8])
        case revocationList([UInt8])

        package var content: [UInt8] {
            switch self {
            case .masterList(let content), .certificate(let content), .revocationList(let content): content
            }
        }
    }

    /// The maximum number of values, and the maximum length of one in bytes.
    private static let maximumCount = 100_000
    private static let maximumLength = 48 << 20

    /// Reads the values of the known attributes; others are skipped. Returns nil for a text without entries, for a value
    /// that is not base64, and for one that is too long.
    package static func values(of text: [UInt8]) -> [Value]? {
        var values: [Value] = []
        var current: (make: @Sendable ([UInt8]) -> Value, digits: [UInt8])?
        var hasEntry = false

        func finish() -> Bool {
            guard let value = current else { return true }
            current = nil
            guard values.count < maximumCount,
                let bytes = Base64.standard.decode(String(decoding: value.digits, as: UTF8.self))
            else { return false }
            values.append(value.make(bytes))
            return true
        }

        for line in text.split(separator: 0x0A, omittingEmptySubsequences: false) {
            let line = line.last == 0x0D ? line.dropLast() : line
            if line.first == 0x20 {
                guard let length = current?.digits.count, length + line.count <= maximumLength else {
                    if current == nil { continue }
                    return nil
                }
                current?.digits += line.dropFirst()
                continue
            }
            guard finish() else { return nil }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            // What follows a semicolon tells how the value is carried. No known name is longer.
            let letters = line[..<colon].prefix { $0 != 0x3B }.prefix(64)
            let name = String(decoding: letters, as: UTF8.self).lowercased()
            if name == "dn" { hasEntry = true }
            guard let make = kinds[name], line[line.index(after: colon)...].first == UInt8(ascii: ":") else { continue }
            let digits = line[line.index(colon, offsetBy: 2)...].drop { $0 == 0x20 }
            guard digits.count <= maximumLength else { return nil }
            current = (make, Array(digits))
        }
        guard finish(), hasEntry else { return nil }
        return values
    }

    /// The attributes, in lower case; `cscamasterlistdata` is that of older exports.
    private static let kinds: [String: @Sendable ([UInt8]) -> Value] = [
        "pkdmasterlistcontent": { .masterList($0) }, "cscamasterlistdata": { .masterList($0) },
        "usercertificate": { .certificate($0) }, "cacertificate": { .certificate($0) },
        "certificaterevocationlist": { .revocationList($0) }, "authorityrevocationlist": { .revocationList($0) },
    ]
}
