// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// What the issuer of a mobile document has signed. ISO/IEC 18013-5, 9.1.2.4.
struct MobileSecurityObject {
    /// Where the revocation of the document is published. Second edition, 12.3.6.
    struct Status {
        enum Place {
            /// The index in a status list.
            case index(UInt64)
            /// The identifier that an identifier list would have.
            case identifier([UInt8])
        }

        let place: Place
        let uri: String
        /// The certificate that the list's signer leads to, if it is not the authority of the document.
        let certificate: [UInt8]?
    }

    /// Whether the version is known.
    let isKnownVersion: Bool
    /// nil if the algorithm is not known.
    let digest: DigestAlgorithm?
    /// The hashes of each namespace.
    let hashes: [String: [UInt64: [UInt8]]]
    /// COSE_Key of the phone.
    let deviceKey: CBOR
    let docType: String
    /// Seconds since 1970.
    let signed: Int
    let validFrom: Int
    let validUntil: Int
    let statuses: [Status]
    /// Whether the revocation of the document is published in a way that badged does not know.
    let hasUnknownStatus: Bool
    private let authorizedNamespaces: Set<String>
    private let authorizedElements: [String: Set<String>]

    private static let digests: [String: DigestAlgorithm] = [
        "SHA-256": .sha256, "SHA-384": .sha384, "SHA-512": .sha512,
    ]

    /// Reads the content of tag 24 in the payload of issuerAuth.
    /// - Throws: `Malformed`.
    init(_ item: CBOR) throws(Malformed) {
        guard item.kind == .map, let version = item["version"]?.text, let digest = item["digestAlgorithm"]?.text,
            let spaces = item["valueDigests"]?.map, let key = item["deviceKeyInfo"]?["deviceKey"],
            let docType = item["docType"]?.name, let validity = item["validityInfo"],
            let signed = validity["signed"].flatMap(MdocDate.seconds),
            let validFrom = validity["validFrom"].flatMap(MdocDate.seconds),
            let validUntil = validity["validUntil"].flatMap(MdocDate.seconds)
        else { throw Malformed("a member of the signed object of the document is missing or malformed") }
        do throws(MdocProblem) {
            _ = try MdocVersion.minor(version)
            isKnownVersion = true
        } catch {
            guard case .unsupported = error else { throw Malformed(error.text) }
            isKnownVersion = false
        }
        self.digest = Self.digests[digest]
        var hashes: [String: [UInt64: [UInt8]]] = [:]
        for (name, entries) in spaces {
            guard let name = name.name, let entries = entries.map else { throw Malformed("hashes are no map") }
            var ofSpace: [UInt64: [UInt8]] = [:]
            for (id, hash) in entries {
                guard let id = id.unsigned, let hash = hash.bytes else { throw Malformed("a hash is no byte string") }
                ofSpace[id] = hash
            }
            hashes[name] = ofSpace
        }
        self.hashes = hashes
        deviceKey = key
        self.docType = docType
        self.signed = signed
        self.validFrom = validFrom
        self.validUntil = validUntil
        let authorizations = item["deviceKeyInfo"]?["keyAuthorizations"]
        authorizedNamespaces = Set(authorizations?["nameSpaces"]?.array?.compactMap(\.name) ?? [])
        var elements: [String: Set<String>] = [:]
        for (name, list) in authorizations?["dataElements"]?.map ?? [] {
            if let name = name.name { elements[name] = Set(list.array?.compactMap(\.name) ?? []) }
        }
        authorizedElements = elements
        var statuses: [Status] = []
        if let list = item["status"]?["status_list"] {
            guard let index = list["idx"]?.unsigned else { throw Malformed("the place in a status list is missing") }
            statuses.append(try Self.status(list, .index(index)))
        }
        if let list = item["status"]?["identifier_list"] {
            guard let id = list["id"]?.bytes else { throw Malformed("the place in an identifier list is missing") }
            statuses.append(try Self.status(list, .identifier(id)))
        }
        self.statuses = statuses
        let ways = item["status"].map { $0.map?.map(\.key) ?? [] }
        hasUnknownStatus = ways.map { $0.isEmpty || $0.contains { !Self.isKnown($0) } } ?? false
    }

    private static func status(_ list: CBOR, _ place: Status.Place) throws(Malformed) -> Status {
        let certificate = list["certificate"]
        guard let uri = list["uri"]?.text, certificate == nil || certificate?.kind == .bytes else {
            throw Malformed("the address or the certificate of a list has another form")
        }
        return Status(place: place, uri: uri, certificate: certificate?.bytes)
    }

    /// Whether a way to publish revocations is known.
    private static func isKnown(_ way: CBOR) -> Bool { way.isText("status_list") || way.isText("identifier_list") }

    /// Whether the key of the phone may sign an element. ISO/IEC 18013-5, 9.1.2.4.
    func authorizes(_ element: String, in namespace: String) -> Bool {
        authorizedNamespaces.contains(namespace) || authorizedElements[namespace]?.contains(element) == true
    }
}
