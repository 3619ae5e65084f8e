// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// Mobile documents (ISO/IEC 18013-5) without input or output: a reader, and what a phone in software needs.
///
/// A reader calls in this order:
///
/// 1. Engagement. `DeviceEngagement(qr:)` for the text of a QR code. By NFC: read the NDEF message. If
///    `TNEPService(in:)` finds the service for handovers, send `TNEPService.select`, wait, check the answer with
///    `TNEPService.checkStatus`, and send `HandoverRequest.encoding`. The message that comes then, or the first one,
///    is `HandoverSelect(_:request:)`, which has `engagement`, `ways` and `handover`.
/// 2. Session. `MdocSession(engagement, handover)` draws the key of the reader. A GATT server answers Ident with
///    `MdocSession.ident(engagement)`.
/// 3. Request. `session.establishment(request.encoded(for: session.binding, signedBy:signsAll:))` is the first message.
/// 4. Answer. `session.read(message)` decrypts; a problem `.session` has the status to send with `MdocSession.status`.
///    `DeviceResponse(data)` has the status and the documents.
/// 5. Checks. `MdocCheck(request, session.binding, authorities, at:).results(of: response)` on any thread. Each result
///    has items, checks and verdict; `MdocCheck.answer(over:in:)` is the answer about an age.
/// 6. End. Send `MdocSession.status(20)`, and drop session, response and results, which wipes them.
///
/// A phone in software: `DeviceEngagement.encoding`, `HandoverSelect.encoding`, `HandoverRequest(_:)`,
/// `TNEPService.encoding`, `MdocSession(phone:…)`, `DeviceRequest.Received`, `session.message`, `binding.macKey(of:)`,
/// `COSEMessage.sign` and `COSEMessage.mac`.
package enum MobileDocument {
    /// The bytes of the longest name of a document type, a namespace or an element that can be asked for.
    package static let maximumName = 255

    /// The names of known documents and of the namespace in which each has `age_over_NN`. ISO/IEC 18013-5, 7.1;
    /// EU age verification blueprint; EUDI PID rulebook; ISO/IEC 23220-2.
    package static let agesByDocType: [(docType: String, namespace: String)] = [
        ("eu.europa.ec.av.1", "eu.europa.ec.av.1"),
        ("org.iso.18013.5.1.mDL", "org.iso.18013.5.1"),
        ("eu.europa.ec.eudi.pid.1", "eu.europa.ec.eudi.pid.1"),
        ("org.iso.23220.photoid.1", "org.iso.23220.1"),
    ]

    /// A request for `age_over_NN` of each kind of document that has it, and nothing else.
    package static func request(ageOver age: Int) -> DeviceRequest {
        let element = DeviceRequest.Element(name: "age_over_\(age < 10 ? "0" : "")\(age)")
        return DeviceRequest(
            documents: agesByDocType.map { kind in
                DeviceRequest.Document(
                    docType: kind.docType,
                    namespaces: [DeviceRequest.Namespace(name: kind.namespace, elements: [element])]
                )
            }
        )
    }
}

extension CBOR {
    /// A name of a document type, a namespace or an element. Nobody has asked for a longer one, and each item of a
    /// response is compared with many.
    var name: String? { text.flatMap { $0.utf8.count <= MobileDocument.maximumName ? $0 : nil } }
}
