// SPDX-License-Identifier: GPL-3.0-or-later
import CZlib
import Crypto
import Document
import ISO7816
import MobileDocument
import Testing
import Text

/// A document with its issuer, phone and lists, as a table of tests changes it. Every key is new.
struct MdocRecipe: Sendable {
    /// 2026-11-28T17:47:49Z.
    static let time = 1_795_888_069
    static let uri = "https://utopia.example/list"
    private static let mDL = "org.iso.18013.5.1.mDL"
    private static let namespace = "org.iso.18013.5.1"

    struct Holder: Sendable {
        var name: String
        var country = "UT"
        var state: String?
        var isAuthority = false
        /// The bits in the first byte; nil: no such extension.
        var keyUsage: UInt8?
        var extendedKeyUsage: [UInt8]?
        /// Further extensions.
        var rules: [BERTLV] = []
    }

    struct List: Sendable {
        var issued = MdocRecipe.time - 3600
        var end: Int? = MdocRecipe.time + 3600
        /// The places that are revoked.
        var revoked: Set<Int> = []
        /// nil: a status list.
        var identifiers: CBORValue?
        var claims: [(CBORValue, CBORValue)] = []
        /// How many bytes of the packed values are missing at the end.
        var cut = 0
        var unprotected: [(CBORValue, CBORValue)] = []
    }

    var authority = Holder(name: "authority", isAuthority: true, keyUsage: 0x06)
    var signer = Holder(
        name: "signer",
        keyUsage: 0x80,
        extendedKeyUsage: [0x28, 0x81, 0x8C, 0x5D, 0x05, 0x01, 0x02]
    )
    var listSigner = Holder(name: "list signer", keyUsage: 0x80)
    var elements: [(String, CBORValue)] = [("age_over_18", true)]
    var asked = ["age_over_18"]
    var signed = "2026-11-01T00:00:00Z"
    var status: CBORValue?
    var lists: [List] = []
    var deviceNamespaces: CBORValue = [:]
    /// Further headers of issuerAuth.
    var unprotected: [(CBORValue, CBORValue)] = []

    /// What a reader says about the document.
    func result() throws -> MdocResult {
        let group = try Curve.secp256r1.group
        let authorityKey = try ECPrivateKey(on: group)
        let signerKey = try ECPrivateKey(on: group)
        let listKey = try ECPrivateKey(on: group)
        let deviceKey = try ECPrivateKey(on: group)
        let root = try Self.certificate(authority, authorityKey.publicKey, by: authority, authorityKey)
        let leaf = try Self.certificate(signer, signerKey.publicKey, by: authority, authorityKey)
        let listLeaf = try Self.certificate(listSigner, listKey.publicKey, by: authority, authorityKey)
        var anchors = DocumentAnchors()
        try anchors.trust(try DocumentCertificate(root))
        var authorities = MdocAuthorities(anchors: anchors)
        for list in lists {
            // A list that cannot be read adds nothing.
            let bytes = try Self.message(
                Self.payload(of: list),
                [(33, .bytes(listLeaf))] + list.unprotected,
                type: "application/\(list.identifiers == nil ? "status" : "identifier")list+cwt",
                listKey
            )
            if let list = try? MdocStatusList(bytes.encoding) { authorities.add(list) }
        }
        let engagement = try DeviceEngagement(
            try DeviceEngagement.encoding(key: try ECPrivateKey(on: group).publicKey, ways: [])
        )
        let binding = try MdocSession(engagement, .qr).binding
        let items = try elements.enumerated().map { number, element in
            CBORValue.embedded([
                "digestID": .integer(Int64(number)), "random": .bytes(try Random.bytes(16)),
                "elementIdentifier": .text(element.0), "elementValue": element.1,
            ])
        }
        let object = try object(items, deviceKey.publicKey)
        let auth = try Self.message(
            CBORValue.embedded(object).encoding,
            [(33, .bytes(leaf))] + unprotected,
            type: nil,
            signerKey
        )
        let namespaces = CBORValue.embedded(deviceNamespaces)
        let proof = binding.deviceAuthentication(docType: Self.mDL, namespaces: namespaces.encoding)
        let response: CBORValue = [
            "version": "1.0", "status": 0,
            "documents": [
                [
                    "docType": .text(Self.mDL),
                    "issuerSigned": [
                        "nameSpaces": .map([(.text(Self.namespace), .array(items))]), "issuerAuth": auth,
                    ],
                    "deviceSigned": [
                        "nameSpaces": namespaces,
                        "deviceAuth": [
                            "deviceSignature": try COSEMessage.sign(detached: proof, with: deviceKey, certificates: [])
                        ],
                    ],
                ]
            ],
        ]
        let names = asked.map { DeviceRequest.Element(name: $0) }
        let request = DeviceRequest(
            documents: [.init(docType: Self.mDL, namespaces: [.init(name: Self.namespace, elements: names)])]
        )
        let check = MdocCheck(request, binding, authorities, at: Self.time)
        return try #require(check.results(of: try DeviceResponse(Secret(response.encoding))).first)
    }

    // MARK: Parts

    private func object(_ items: [CBORValue], _ deviceKey: ECPublicKey) throws -> CBORValue {
        let digests = try items.enumerated().map { number, item in
            (CBORValue.integer(Int64(number)), CBORValue.bytes(try DigestAlgorithm.sha256.hash(item.encoding)))
        }
        var members: [(CBORValue, CBORValue)] = [
            ("version", "1.0"), ("digestAlgorithm", "SHA-256"),
            ("valueDigests", .map([(.text(Self.namespace), .map(digests))])),
            (
                "deviceKeyInfo",
                [
                    "deviceKey": try #require(deviceKey.cose),
                    "keyAuthorizations": ["nameSpaces": ["org.example.device"]],
                ]
            ),
            ("docType", .text(Self.mDL)),
            (
                "validityInfo",
                [
                    "signed": .tag(0, .text(signed)), "validFrom": .tag(0, "2026-11-01T00:00:00Z"),
                    "validUntil": .tag(0, "2027-11-01T00:00:00Z"),
                ]
            ),
        ]
        if let status { members.append(("status", status)) }
        return .map(members)
    }

    private static func payload(of list: List) -> [UInt8] {
        var claims: [(CBORValue, CBORValue)] = [(2, .text(uri)), (6, .integer(Int64(list.issued)))]
        if let end = list.end { claims.append((4, .integer(Int64(end)))) }
        if let identifiers = list.identifiers {
            claims.append((65530, ["identifiers": identifiers]))
        } else {
            var values = [UInt8](repeating: 0, count: 64)
            for place in list.revoked { values[place / 8] |= 1 << (place % 8) }
            claims.append((65533, ["bits": 1, "lst": .bytes(packed(values).dropLast(list.cut))]))
        }
        return CBORValue.map(claims + list.claims).encoding
    }

    /// The format of zlib. The C function is compress.
    private static func packed(_ bytes: [UInt8]) -> [UInt8] {
        var length = compressBound(uLong(bytes.count))
        var packed = [UInt8](repeating: 0, count: Int(length))
        #expect(compress(&packed, &length, bytes, uLong(bytes.count)) == Z_OK)
        return Array(packed.prefix(Int(length)))
    }

    /// COSE_Sign1.
    private static func message(
        _ payload: [UInt8],
        _ unprotected: [(CBORValue, CBORValue)],
        type: String?,
        _ key: borrowing ECPrivateKey
    ) throws -> CBORValue {
        let protected = CBORValue.map([(1, -7)] + (type.map { [(16, .text($0))] } ?? [])).encoding
        let signed: CBORValue = ["Signature1", .bytes(protected), .bytes([]), .bytes(payload)]
        let signature = try ECDSA.sign(signed.encoding, with: key, digest: .sha256)
        return [.bytes(protected), .map(unprotected), .bytes(payload), .bytes(signature)]
    }

    private static func sequence(_ parts: [BERTLV]) -> BERTLV { BERTLV(0x30, parts) }

    /// An extension of a certificate: 2.5.29.
    static func rule(_ number: UInt8, isCritical: Bool, _ content: BERTLV) -> BERTLV {
        let critical = isCritical ? [BERTLV(0x01, [0xFF])] : []
        return sequence([BERTLV(0x06, [0x55, 0x1D, number])] + critical + [BERTLV(0x04, content.encoded)])
    }

    private static func name(_ holder: Holder) -> BERTLV {
        let parts: [(UInt8, UInt32, String?)] = [
            (6, 0x13, holder.country), (8, 0x0C, holder.state), (3, 0x0C, holder.name),
        ]
        return sequence(
            parts.compactMap { type, tag, text in
                text.map { text in
                    BERTLV(0x31, [sequence([BERTLV(0x06, [0x55, 0x04, type]), BERTLV(tag, Array(text.utf8))])])
                }
            }
        )
    }

    private static func certificate(
        _ holder: Holder,
        _ key: ECPublicKey,
        by issuer: Holder,
        _ issuerKey: borrowing ECPrivateKey
    ) throws -> [UInt8] {
        let algorithm = sequence([BERTLV(0x06, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02])])
        var rules = holder.rules
        if holder.isAuthority {
            rules.append(rule(19, isCritical: true, sequence([BERTLV(0x01, [0xFF]), BERTLV(0x02, [0x00])])))
        }
        if let usage = holder.keyUsage { rules.append(rule(15, isCritical: true, BERTLV(0x03, [0x00, usage]))) }
        if let usage = holder.extendedKeyUsage {
            rules.append(rule(37, isCritical: true, sequence([BERTLV(0x06, usage)])))
        }
        let content = sequence([
            BERTLV(0xA0, [BERTLV(0x02, [0x02])]), BERTLV(0x02, [0x01] + (try Random.bytes(8))), algorithm, name(issuer),
            sequence([BERTLV(0x17, Array("260101000000Z".utf8)), BERTLV(0x17, Array("360101000000Z".utf8))]),
            name(holder),
            sequence([
                sequence([
                    BERTLV(0x06, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]),
                    BERTLV(0x06, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]),
                ]), BERTLV(0x03, [0x00] + key.uncompressed),
            ]), BERTLV(0xA3, [sequence(rules)]),
        ])
        let signature = try ECDSA.signDER(content.encoded, with: issuerKey, digest: .sha256)
        return sequence([content, algorithm, BERTLV(0x03, [0x00] + signature)]).encoded
    }
}
