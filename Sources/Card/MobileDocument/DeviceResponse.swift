// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// What a phone answers. ISO/IEC 18013-5, 8.3.2.1.2.2. Nothing in it is checked; see `MdocCheck`.
package struct DeviceResponse: Sendable {
    /// A document. Its parts are places in the bytes of the response, which are wiped with the last of them.
    package struct Document: Sendable {
        package let docType: String
        /// IssuerSigned and DeviceSigned, which are maps.
        let issuerSigned: CBOR
        let deviceSigned: CBOR
    }

    /// Status of a response. 8.3.2.1.2.3, table 8.
    package enum Status: Sendable, Equatable {
        case ok
        /// The phone refuses: 10.
        case generalError
        /// The phone could not read the request: 11, 12.
        case decodingError
        case other(UInt64)

        init(_ number: UInt64) {
            switch number {
            case 0: self = .ok
            case 10: self = .generalError
            case 11, 12: self = .decodingError
            default: self = .other(number)
            }
        }
    }

    package let status: Status
    /// Empty if the holder declined, or has none of them: a phone does not tell.
    package let documents: [Document]

    private static let maximumDocuments = 32

    /// Reads a decrypted response.
    /// - Throws: `.malformed`, also for another version.
    package init(_ plain: consuming Secret) throws(MdocProblem) {
        let bytes = plain
        let item: CBOR
        do { item = try CBOR(bytes) } catch { throw MdocProblem(error) }
        guard item.kind == .map else { throw .malformed("the response is no map") }
        do throws(MdocProblem) {
            _ = try MdocVersion.minor(item["version"]?.text)
        } catch {
            throw .malformed("the response: \(error.text)")
        }
        guard let number = item["status"]?.unsigned else { throw .malformed("the response has no status") }
        guard let list = item["documents"].map(\.array) ?? [], list.count <= Self.maximumDocuments else {
            throw .malformed("the documents of the response are no list")
        }
        var documents: [Document] = []
        for entry in list {
            guard let docType = entry["docType"]?.name, let issuerSigned = entry["issuerSigned"],
                issuerSigned.kind == .map, let deviceSigned = entry["deviceSigned"], deviceSigned.kind == .map
            else { throw .malformed("a part of a document of the response is missing or malformed") }
            guard !documents.contains(where: { $0.docType == docType }) else {
                throw .malformed("the response has a document twice")
            }
            documents.append(Document(docType: docType, issuerSigned: issuerSigned, deviceSigned: deviceSigned))
        }
        status = Status(number)
        self.documents = documents
    }
}
