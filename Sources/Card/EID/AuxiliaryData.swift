// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// Authenticated auxiliary data: what a terminal wants compared in the card. TR-03110-3 A.6.5.
package struct AuxiliaryData: Sendable, Equatable {
    /// The last number of the object identifier, 0.4.0.127.0.7.3.1.4.n.
    package enum Kind: UInt8, Sendable, CaseIterable {
        /// YYYYMMDD: was the holder born on that day or before?
        case dateOfBirth = 1
        /// YYYYMMDD: is the card valid on that day?
        case dateOfExpiry
        /// The first bytes of the community id.
        case communityID

        /// Content of the object identifier.
        package var identifier: [UInt8] { [0x04, 0x00, 0x7F, 0x00, 0x07, 0x03, 0x01, 0x04, rawValue] }

        package init?(identifier: [UInt8]) {
            guard let kind = Self.allCases.first(where: { $0.identifier == identifier }) else { return nil }
            self = kind
        }
    }

    /// What is asked, by kind; unknown kinds are skipped.
    package private(set) var values: [Kind: [UInt8]] = [:]
    /// The object 67 as it was sent: it is signed so.
    package let encoded: [UInt8]

    package init(_ values: [Kind: [UInt8]]) {
        self.values = values
        let entries = values.sorted { $0.key.rawValue < $1.key.rawValue }.map { kind, value in
            BERTLV(0x73, [BERTLV(0x06, kind.identifier), BERTLV(0x53, value)])
        }
        encoded = entries.isEmpty ? [] : BERTLV(0x67, entries).encoded
    }

    /// Reads the object 67.
    /// - Throws: `BERError`, `.invalidTag` for objects that do not belong there.
    package init(_ object: BERTLV) throws(BERError) {
        guard object.tag == 0x67 else { throw .invalidTag }
        for entry in try object.children {
            let parts = try entry.children
            guard entry.tag == 0x73, parts.map(\.tag) == [0x06, 0x53] else { throw .invalidTag }
            if let kind = Kind(identifier: parts[0].value) { values[kind] = parts[1].value }
        }
        encoded = object.encoded
    }
}
