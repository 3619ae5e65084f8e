// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Text

/// A site whose readers a key may open, with the public keys that prove that a reader belongs to the site.
package struct Site: Sendable, Equatable {
    /// The site identifier: 16 bytes.
    package let id: [UInt8]
    /// The key with which readers of the site sign: 65 bytes.
    package var publicKey: [UInt8]?
    /// The key of the issuer of reader certificates: 65 bytes.
    package var issuerKey: [UInt8]?
    /// Whether readers of this site may see key and number without proving that they belong to it.
    package var isLegacy: Bool
    /// The reader location identifiers, 16 bytes each; empty: all readers of the site.
    package var readers: [[UInt8]]
    /// The newest list of revoked readers that the issuer has signed; nil if there is none.
    package var revocations: ReaderRevocations?

    package static let idCount = 16
    package static let maximumReaders = 64
    /// The maximum number of sites of one key.
    package static let maximumNumber = 32

    package init(
        id: [UInt8],
        publicKey: [UInt8]? = nil,
        issuerKey: [UInt8]? = nil,
        isLegacy: Bool = false,
        readers: [[UInt8]] = []
    ) {
        self.id = id
        self.publicKey = publicKey
        self.issuerKey = issuerKey
        self.isLegacy = isLegacy
        self.readers = readers
    }

    /// Reads a site of an enrolment file or of a record; nil if a member has a wrong form.
    init?(_ json: JSON) {
        guard let id = json["siteId"]?.string.flatMap({ UUIDText.decode($0) }) else { return nil }
        self.init(id: id)
        for (name, path) in [("siteKey", \Site.publicKey), ("issuerKey", \Site.issuerKey)] {
            guard let value = json[name], value != .null else { continue }
            guard let key = value.string.flatMap({ PublicKeyText.read($0) }) else { return nil }
            self[keyPath: path] = key
        }
        if let value = json["legacy"] {
            guard let flag = value.bool else { return nil }
            isLegacy = flag
        }
        if let value = json["readers"] {
            guard let items = value.array, items.count <= Self.maximumReaders else { return nil }
            readers = items.compactMap { $0.string.flatMap { UUIDText.decode($0) } }
            guard readers.count == items.count else { return nil }
        }
        if let value = json["revocations"], value != .null {
            guard let key = issuerKey.flatMap({ try? ECPublicKey($0, on: .secp256r1) }),
                let bytes = value.string.flatMap({ Hex.decode($0, limit: ReaderRevocations.maximumCount) }),
                let list = try? ReaderRevocations(bytes, issuerKey: key), list.site == id
            else { return nil }
            revocations = list
        }
    }

    /// Reads an array of sites; nil if one has a wrong form.
    static func list(_ json: JSON) -> [Site]? {
        guard let items = json.array, items.count <= maximumNumber else { return nil }
        let sites = items.compactMap(Site.init)
        return sites.count == items.count ? sites : nil
    }

    /// Returns the site with the newer list of revoked readers: its own, or that of the same site and issuer in `known`.
    func keepingNewerList(of known: [Site]) -> Site {
        guard let old = known.first(where: { $0.id == id && $0.issuerKey == issuerKey })?.revocations,
            old.issued >= revocations?.issued ?? 0
        else { return self }
        var site = self
        site.revocations = old
        return site
    }

    /// Writes the site for clients. They get the time and the length of the list of revoked readers, but not its
    /// entries.
    package func write(to object: inout JSONWriter) {
        writeMembers(to: &object)
        if let list = revocations {
            object.object("revocations") { summary in
                summary.member("issued", DateText.text(Int(list.issued)))
                summary.member("readers", list.locations.count)
            }
        } else {
            object.member("revocations", JSON.null)
        }
    }

    /// Writes the site for a record, which `init` reads.
    func writeRecord(to object: inout JSONWriter) {
        writeMembers(to: &object)
        object.member("revocations", revocations.map { Hex.encode($0.encoded) })
    }

    private func writeMembers(to object: inout JSONWriter) {
        object.member("siteId", Hex.encode(id))
        object.member("siteKey", publicKey.map { Hex.encode($0) })
        object.member("issuerKey", issuerKey.map { Hex.encode($0) })
        object.member("legacy", isLegacy)
        object.member("readers", readers.map { Hex.encode($0) })
    }
}

/// A site that a reader shows as a QR code: JSON with `siteUuid`, `readerUuid` and `publicKey`. It is not signed.
package struct ReaderCode: Sendable, Equatable {
    package let site: [UInt8]
    package let reader: [UInt8]
    /// The key with which the reader signs: 65 bytes.
    package let publicKey: [UInt8]

    package static let maximumCount = 4096

    /// Reads the text of the code; nil for anything else.
    package init?(_ text: some Sequence<UInt8>) {
        guard let json = try? JSON(text),
            let site = json["siteUuid"]?.string.flatMap({ UUIDText.decode($0) }),
            let reader = json["readerUuid"]?.string.flatMap({ UUIDText.decode($0) }),
            let key = json["publicKey"]?.string.flatMap({ PublicKeyText.read($0) })
        else { return nil }
        self.site = site
        self.reader = reader
        publicKey = key
    }
}
