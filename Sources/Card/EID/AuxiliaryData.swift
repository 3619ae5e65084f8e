// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import ISO7816
package import Text

/// Authenticated auxiliary data: values that the card compares with its own. TR-03110-3 A.6.5.
package struct AuxiliaryData: Sendable, Equatable {
    /// The kind of a value; the raw value is the last number of the object identifier.
    package enum Kind: UInt8, Sendable, CaseIterable {
        /// YYYYMMDD. The card checks that the holder was born on this day or earlier.
        case dateOfBirth = 1
        /// YYYYMMDD. The card checks that it is valid on this day.
        case dateOfExpiry
        /// The first bytes of the community id. The card compares them with those of the holder.
        case communityID

        /// The content of the object identifier.
        package var identifier: [UInt8] { OID.auxiliaryData + [rawValue] }

        package init?(identifier: [UInt8]) {
            guard let kind = Self.allCases.first(where: { $0.identifier == identifier }) else { return nil }
            self = kind
        }
    }

    /// The values by kind; unknown kinds are ignored.
    package private(set) var values: [Kind: [UInt8]] = [:]
    /// The object 67 as it was sent and signed; empty when there are no values.
    package let encoded: [UInt8]

    package init(_ values: [Kind: [UInt8]]) {
        self.values = values
        let entries = values.sorted { $0.key.rawValue < $1.key.rawValue }.map { kind, value in
            BERTLV(0x73, [BERTLV(0x06, kind.identifier), BERTLV(0x53, value)])
        }
        encoded = entries.isEmpty ? [] : BERTLV(0x67, entries).encoded
    }

    /// Reads the object 67.
    /// - Throws: `Malformed`; `.invalidTag` for unexpected objects.
    package init(_ object: BERTLV) throws(Malformed) {
        guard object.tag == 0x67 else { throw .invalidTag }
        for entry in try object.children {
            let parts = try entry.children
            guard entry.tag == 0x73, parts.map(\.tag) == [0x06, 0x53] else { throw .invalidTag }
            if let kind = Kind(identifier: parts[0].value) { values[kind] = parts[1].value }
        }
        encoded = object.encoded
    }
}
