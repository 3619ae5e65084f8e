// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// What a reader asks a phone for. ISO/IEC 18013-5, 8.3.2.1.2.1.
package struct DeviceRequest: Sendable {
    /// One document.
    package struct Document: Sendable, Equatable {
        package var docType: String
        /// The elements of each namespace, in the order in which they are asked for.
        package var namespaces: [Namespace]

        package init(docType: String, namespaces: [Namespace]) {
            self.docType = docType
            self.namespaces = namespaces
        }

        /// The elements of a namespace.
        func elements(of namespace: String) -> [Element] {
            namespaces.filter { $0.name == namespace }.flatMap(\.elements)
        }
    }

    package struct Namespace: Sendable, Equatable {
        package var name: String
        package var elements: [Element]

        package init(name: String, elements: [Element]) {
            self.name = name
            self.elements = elements
        }
    }

    package struct Element: Sendable, Equatable {
        package var name: String
        /// Whether the reader keeps the value longer than the transaction needs, which the phone shows.
        package var isRetained: Bool

        package init(name: String, isRetained: Bool = false) {
            self.name = name
            self.isRetained = isRetained
        }
    }

    package let documents: [Document]

    package init(documents: [Document]) { self.documents = documents }

    /// The key of a site, which signs its requests. 9.1.4.
    package final class Identity: Sendable {
        let key: ECPrivateKey
        /// The chain in DER, the signer first, without its root.
        package let certificates: [[UInt8]]
        /// The EU registration certificate of the site, as its bytes. ETSI TS 119 472-2, 5.3.
        package let registration: [UInt8]?

        /// `certificates`: the chain in DER, the signer first, without its root.
        /// `registration`: the EU registration certificate of the site, as its bytes.
        package init(key: consuming ECPrivateKey, certificates: [[UInt8]], registration: [UInt8]? = nil) {
            self.key = key
            self.certificates = certificates
            self.registration = registration
        }
    }

    /// The bytes of the request for one session, signed if there is an identity.
    /// `signsAll`: whether the phone understands a signature over all documents (second edition):
    ///   `DeviceEngagement.capabilities.readerAuthAll`.
    package func encoded(
        for binding: MdocBinding,
        signedBy identity: Identity?,
        signsAll: Bool
    ) throws(MdocProblem) -> Secret {
        var requests: [CBORValue] = []
        var parts: [CBORValue] = []
        for document in documents {
            let part = CBORValue.embedded(items(document, registration: identity?.registration))
            parts.append(part)
            guard let identity, !signsAll else {
                requests.append(["itemsRequest": part])
                continue
            }
            let signature = try sign(Self.authentication(binding, part), identity)
            requests.append(["itemsRequest": part, "readerAuth": signature])
        }
        guard let identity, signsAll else {
            return Secret((["version": "1.0", "docRequests": .array(requests)] as CBORValue).encoding)
        }
        let signature = try sign(Self.authenticationOfAll(binding, parts), identity)
        let request: CBORValue = [
            "version": "1.1", "docRequests": .array(requests), "readerAuthAll": .array([signature]),
        ]
        return Secret(request.encoding)
    }

    private func items(_ document: Document, registration: [UInt8]?) -> CBORValue {
        let namespaces = document.namespaces.map { namespace in
            let elements = namespace.elements.map { (CBORValue.text($0.name), CBORValue.bool($0.isRetained)) }
            return (CBORValue.text(namespace.name), CBORValue.map(elements))
        }
        var pairs: [(CBORValue, CBORValue)] = [("docType", .text(document.docType)), ("nameSpaces", .map(namespaces))]
        if let registration { pairs.append(("requestInfo", ["euWrprc": .bytes(registration)])) }
        return .map(pairs)
    }

    /// ReaderAuthenticationBytes. 9.1.4.4.
    private static func authentication(_ binding: MdocBinding, _ items: CBORValue) -> [UInt8] {
        CBORValue.embedded(["ReaderAuthentication", binding.transcript, items]).encoding
    }

    /// ReaderAuthenticationAllBytes of the second edition, without DeviceRequestInfo.
    private static func authenticationOfAll(_ binding: MdocBinding, _ items: [CBORValue]) -> [UInt8] {
        CBORValue.embedded(["ReaderAuthenticationAll", binding.transcript, .array(items), .null]).encoding
    }

    private func sign(_ payload: [UInt8], _ identity: Identity) throws(MdocProblem) -> CBORValue {
        try COSEMessage.sign(detached: payload, with: identity.key, certificates: identity.certificates)
    }

    // MARK: On the side of the phone

    /// A request as a phone reads it.
    package struct Received: Sendable {
        package let request: DeviceRequest
        /// The member `requestInfo.euWrprc` of each document; nil without it.
        package let registrations: [[UInt8]?]
        private let parts: [CBOR]
        private let signatures: [CBOR?]
        private let signaturesOfAll: [CBOR]
        /// Whether a signature covers all documents together.
        package var isSignedAsOne: Bool { !signaturesOfAll.isEmpty }

        private static let maximumDocuments = 32

        /// Reads a request.
        package init(_ plain: consuming Secret) throws(MdocProblem) {
            let bytes = plain
            let item: CBOR
            do { item = try CBOR(bytes) } catch { throw MdocProblem(error) }
            _ = try MdocVersion.minor(item["version"]?.text)
            guard let requests = item["docRequests"]?.array, !requests.isEmpty, requests.count <= Self.maximumDocuments
            else { throw .malformed("the request has no documents") }
            var documents: [Document] = []
            var parts: [CBOR] = []
            var registrations: [[UInt8]?] = []
            for request in requests {
                guard let part = request["itemsRequest"] else { throw .malformed("a document of a request is missing") }
                let items = try reading(part.embedded())
                guard let docType = items["docType"]?.text, let spaces = items["nameSpaces"]?.map else {
                    throw .malformed("a document of a request has no type")
                }
                documents.append(Document(docType: docType, namespaces: try spaces.map(Self.namespace)))
                registrations.append(items["requestInfo"]?["euWrprc"]?.bytes)
                parts.append(part)
            }
            request = DeviceRequest(documents: documents)
            self.registrations = registrations
            self.parts = parts
            signatures = requests.map { $0["readerAuth"] }
            signaturesOfAll = item["readerAuthAll"]?.array ?? []
        }

        private static func namespace(_ pair: (key: CBOR, value: CBOR)) throws(MdocProblem) -> Namespace {
            guard let name = pair.key.text, let elements = pair.value.map else {
                throw .malformed("a namespace of a request is no map")
            }
            return Namespace(
                name: name,
                elements: try elements.map { element throws(MdocProblem) in
                    guard let name = element.key.text, let isRetained = element.value.bool else {
                        throw .malformed("an element of a request is no bool")
                    }
                    return Element(name: name, isRetained: isRetained)
                }
            )
        }

        /// The certificates of the reader in DER, the signer first, if each document has a right signature of the same
        /// reader, or all together have one; nil for an unsigned request.
        /// - Throws: `.malformed` for a wrong signature.
        package func readerCertificates(
            _ binding: MdocBinding,
            key: ([UInt8]) throws(MdocProblem) -> ECPublicKey
        ) throws(MdocProblem) -> [[UInt8]]? {
            let encoded = parts.map { CBORValue.encoded($0.encoded) }
            var signed: [(CBOR, [UInt8])] = signaturesOfAll.map { ($0, authenticationOfAll(binding, encoded)) }
            if signed.isEmpty {
                let all = zip(signatures, encoded).compactMap { signature, part in
                    signature.map { ($0, authentication(binding, part)) }
                }
                guard all.count == parts.count else { return nil }
                signed = all
            }
            var certificates: [[UInt8]]?
            for (item, payload) in signed {
                let message = try COSEMessage(item, .signature)
                guard let leaf = message.certificates.first,
                    try message.verify(with: try key(leaf), detached: payload),
                    certificates == nil || certificates == message.certificates
                else { throw .malformed("the signature of the reader is wrong") }
                certificates = message.certificates
            }
            return certificates
        }
    }
}
