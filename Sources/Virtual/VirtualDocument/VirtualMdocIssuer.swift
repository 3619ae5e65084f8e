// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Glibc
import MobileDocument
import Text

/// The authority of an invented country that issues the documents of virtual phones.
///
/// Its keys are made when the program begins, so nobody can issue a document that another run of badged believes.
package final class VirtualMdocIssuer: Sendable {
    /// The certificate of the authority (IACA) in DER.
    package let certificate: [UInt8]
    private let signerCertificate: [UInt8]
    private let key: ECPrivateKey

    private static let day = 86_400

    package init() throws(CryptoError) {
        let group = try Curve.secp256r1.group
        let authority = try ECPrivateKey(on: group)
        let signer = try ECPrivateKey(on: group)
        let now = Int(time(nil))
        let name = "badged virtual authority, for tests only"
        certificate = try VirtualMdocCertificate(
            subject: name,
            issuer: name,
            key: authority.publicKey,
            issuerKey: authority.publicKey,
            validity: now - Self.day...now + 3650 * Self.day,
            isAuthority: true
        ).signed(with: authority)
        signerCertificate = try VirtualMdocCertificate(
            subject: "badged virtual document signer",
            issuer: name,
            key: signer.publicKey,
            issuerKey: authority.publicKey,
            validity: now - Self.day...now + 400 * Self.day,
            isAuthority: false
        ).signed(with: authority)
        key = signer
    }

    /// A document in a phone.
    final class Document: Sendable {
        let docType: String
        /// The encoded items of each namespace by the names of their elements, with tag 24.
        let items: [(namespace: String, elements: [(name: String, item: CBORValue, value: CBORValue)])]
        let issuerAuth: CBORValue
        /// The key of the phone for this document.
        let deviceKey: ECPrivateKey

        init(
            _ docType: String,
            _ items: [(namespace: String, elements: [(name: String, item: CBORValue, value: CBORValue)])],
            _ issuerAuth: CBORValue,
            _ deviceKey: consuming ECPrivateKey
        ) {
            self.docType = docType
            self.items = items
            self.issuerAuth = issuerAuth
            self.deviceKey = deviceKey
        }
    }

    /// Issues a document, or one that is just over. ISO/IEC 18013-5, 9.1.2.4.
    func issue(
        _ docType: String,
        _ namespaces: [(name: String, elements: [(String, CBORValue)])],
        isExpired: Bool = false
    ) throws(CryptoError) -> Document {
        let deviceKey = try ECPrivateKey(on: try Curve.secp256r1.group)
        var items: [(namespace: String, elements: [(name: String, item: CBORValue, value: CBORValue)])] = []
        var digests: [(CBORValue, CBORValue)] = []
        for (namespace, elements) in namespaces {
            var list: [(name: String, item: CBORValue, value: CBORValue)] = []
            var hashes: [(CBORValue, CBORValue)] = []
            for (number, element) in elements.enumerated() {
                let item = CBORValue.embedded([
                    "digestID": .integer(Int64(number)), "random": .bytes(try Random.bytes(32)),
                    "elementIdentifier": .text(element.0), "elementValue": element.1,
                ])
                hashes.append((.integer(Int64(number)), .bytes(try DigestAlgorithm.sha256.hash(item.encoding))))
                list.append((element.0, item, element.1))
            }
            items.append((namespace, list))
            digests.append((.text(namespace), .map(hashes)))
        }
        let now = Int(time(nil))
        func date(_ seconds: Int) -> CBORValue { .tag(0, .text(MdocTime.text(seconds))) }
        let object: CBORValue = [
            "version": "1.0",
            "digestAlgorithm": "SHA-256",
            "valueDigests": .map(digests),
            "deviceKeyInfo": ["deviceKey": deviceKey.publicKey.cose ?? .null],
            "docType": .text(docType),
            "validityInfo": [
                "signed": date(now - 3600), "validFrom": date(now - 3600),
                "validUntil": date(isExpired ? now - 60 : now + 30 * Self.day),
            ],
        ]
        let payload = CBORValue.embedded(object).encoding
        let protected = ([1: -7] as CBORValue).encoding
        let signed: CBORValue = ["Signature1", .bytes(protected), .bytes([]), .bytes(payload)]
        let signature = try ECDSA.sign(signed.encoding, with: key, digest: .sha256)
        let auth: CBORValue = [
            .bytes(protected), [33: .bytes(signerCertificate)], .bytes(payload), .bytes(signature),
        ]
        return Document(docType, items, auth, deviceKey)
    }
}

/// The documents of an invented person: a driving licence, the EU proof of age, an EUDI PID and a photo ID.
enum StandardMdocs {
    static let docTypes = [
        "org.iso.18013.5.1.mDL", "eu.europa.ec.av.1", "eu.europa.ec.eudi.pid.1", "org.iso.23220.photoid.1",
    ]

    static func namespaces(of docType: String) -> [(name: String, elements: [(String, CBORValue)])]? {
        switch docType {
        case "org.iso.18013.5.1.mDL":
            [
                (
                    "org.iso.18013.5.1",
                    person + [
                        ("issue_date", date("2024-04-15")), ("document_number", "L898902C"),
                        ("un_distinguishing_sign", "UTO"), ("sex", 2), ("age_in_years", 52),
                        (
                            "driving_privileges",
                            [["vehicle_category_code": "B", "issue_date": date("1994-08-12")]]
                        ),
                    ] + ages
                )
            ]
        case "eu.europa.ec.av.1": [(docType, [("age_over_18", true)])]
        case "eu.europa.ec.eudi.pid.1":
            [(docType, person + [("nationality", "UT"), ("resident_city", "Utopolis"), ("age_over_18", true)])]
        case "org.iso.23220.photoid.1":
            [
                (
                    "org.iso.23220.1",
                    [
                        ("family_name_unicode", "Eriksson"), ("given_name_unicode", "Anna Maria"),
                        ("birth_date", date("1974-08-12")), ("portrait", .bytes(portrait)), ("issuing_country", "UT"),
                        ("expiry_date", date("2034-04-15")), ("age_over_18", true),
                    ]
                ), (docType, [("person_id", "24601"), ("travel_document_number", "L898902C3")]),
            ]
        default: nil
        }
    }

    private static let person: [(String, CBORValue)] = [
        ("family_name", "Eriksson"), ("given_name", "Anna Maria"), ("birth_date", date("1974-08-12")),
        ("expiry_date", date("2034-04-15")), ("issuing_country", "UT"),
        ("issuing_authority", "Utopia Identity Office"), ("portrait", .bytes(portrait)),
    ]

    private static let ages: [(String, CBORValue)] = [
        ("age_over_16", true), ("age_over_18", true), ("age_over_21", true), ("age_over_65", false),
    ]

    static func date(_ day: String) -> CBORValue { .tag(1004, .text(day)) }

    /// A JPEG with one grey point.
    static let portrait: [UInt8] = {
        let table = [UInt8](repeating: 1, count: 64)
        func codes(_ kind: UInt8) -> [UInt8] {
            [0xFF, 0xC4, 0x00, 0x14, kind, 0x01] + [UInt8](repeating: 0, count: 16)
        }
        let start: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 0x00, 0x43, 0x00]
        let frame: [UInt8] = [0xFF, 0xC0, 0x00, 0x0B, 0x08, 0x00, 0x01, 0x00, 0x01, 0x01, 0x01, 0x11, 0x00]
        let scan: [UInt8] = [0xFF, 0xDA, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3F, 0x00, 0x3F, 0xFF, 0xD9]
        return start + table + frame + codes(0x00) + codes(0x10) + scan
    }()
}
