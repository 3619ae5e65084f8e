// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import MobileDocument
import ReadersVirtual
import Text

/// The wallet of a virtual phone: what it answers to the messages of a reader, over any transport. ISO/IEC 18013-5, 8.3
/// and 9.1.
final class VirtualWallet {
    let description: VirtualMdocDescription
    private let documents: [VirtualMdocIssuer.Document]
    /// The keys of the engagement in a QR code, and of the one by NFC, which is a new one for each handover.
    private let codeKey: ECPrivateKey
    private var nfcKey: ECPrivateKey
    private let codeEngagement: [UInt8]
    private(set) var nfcEngagement: [UInt8] = []
    /// How the reader has got the engagement.
    var handover = MdocHandover.qr
    private var session: MdocSession?
    /// The request of a tap before, for a wallet that asks its holder between two taps.
    private var hasAsked = false
    private(set) var requests = 0
    /// The certificates by which the last request is signed, the signer first, after the check of the signature; none: unsigned.
    private(set) var readerCertificates: [[UInt8]] = []
    /// Whether one signature of the last request covers all its documents.
    private(set) var isSignedAsOne = false
    /// The registration certificate in the last request, if each document has the same one.
    private(set) var registration: [UInt8]?

    /// The service of this phone in either mode of Bluetooth, in network order.
    var uuid: [UInt8]

    init(_ description: VirtualMdocDescription, _ documents: [VirtualMdocIssuer.Document]) throws(CryptoError) {
        self.description = description
        self.documents = documents
        let uuid = try Random.bytes(16)
        let codeKey = try ECPrivateKey(on: try Curve.secp256r1.group)
        codeEngagement = Self.engagement(codeKey.publicKey, Self.ways(description, uuid), description)
        nfcKey = try codeKey.copy()
        self.codeKey = codeKey
        self.uuid = uuid
        session = nil
    }

    /// The text of the QR code.
    var code: String { "mdoc:" + Base64.url.encode(codeEngagement) }

    /// The ways of the description, with the current UUID.
    var ways: [DeviceEngagement.Way] { Self.ways(description, uuid) }

    private static func ways(_ description: VirtualMdocDescription, _ uuid: [UInt8]) -> [DeviceEngagement.Way] {
        var ways: [DeviceEngagement.Way] = []
        let ble = DeviceEngagement.BLE(
            server: description.ways.contains(.blePeripheral) ? uuid : nil,
            client: description.ways.contains(.bleCentral) ? uuid : nil
        )
        if ble.server != nil || ble.client != nil { ways.append(.ble(ble)) }
        if description.ways.contains(.nfc) {
            ways.append(.nfc(command: description.limits.command, response: description.limits.response))
        }
        return ways
    }

    private static func engagement(
        _ key: ECPublicKey,
        _ ways: [DeviceEngagement.Way]?,
        _ description: VirtualMdocDescription
    ) -> [UInt8] {
        let signsAll = description.quirks.contains(.readerAuthAll)
        let capabilities = signsAll ? DeviceEngagement.Capabilities(readerAuthAll: true) : nil
        return (try? DeviceEngagement.encoding(key: key, ways: ways, capabilities: capabilities)) ?? []
    }

    /// Begins a handover, with a new key: a reader that selects twice has the wrong one.
    func beginHandover() throws(CryptoError) {
        nfcKey = try ECPrivateKey(on: try Curve.secp256r1.group)
        nfcEngagement = Self.engagement(nfcKey.publicKey, nil, description)
        session = nil
    }

    /// Ends the session: the phone has left the field, or was reset.
    func leave() {
        session = nil
        // A phone that goes on over Bluetooth does so with this handover.
        if description.ways == [.nfc] { handover = .qr }
    }

    /// What the wallet does with a message.
    enum Answer {
        case message([UInt8])
        /// It asks its holder, who puts the phone back for the answer.
        case asks
        /// It says nothing more.
        case silence
    }

    /// Answers a message of the reader.
    func answer(to message: [UInt8]) -> Answer {
        do throws(MdocProblem) {
            return try react(to: message)
        } catch {
            session = nil
            return .message(MdocSession.status(11))
        }
    }

    private func react(to message: [UInt8]) throws(MdocProblem) -> Answer {
        if session == nil {
            let engagement = handover == .qr ? codeEngagement : nfcEngagement
            let key: ECPrivateKey
            do throws(CryptoError) {
                key = handover == .qr ? try codeKey.copy() : try nfcKey.copy()
            } catch {
                throw .library(error)
            }
            session = try MdocSession(phone: engagement, handover, key: key, establishment: message)
        }
        guard var current = session.take() else { return .silence }
        let received = try current.read(message)
        guard let data = received.data?.clone() else { return .silence }
        requests += 1
        let request = try DeviceRequest.Received(data)
        readerCertificates = try request.readerCertificates(current.binding, key: Self.key) ?? []
        isSignedAsOne = request.isSignedAsOne
        registration = Set(request.registrations).count == 1 ? request.registrations[0] : nil
        if description.taps == 2, !hasAsked {
            hasAsked = true
            return .asks
        }
        let quirks = description.quirks
        if quirks.contains(.endsAfterRequest) { return .silence }
        if quirks.contains(.sessionStatus10) { return .message(MdocSession.status(10)) }
        if quirks.contains(.sessionStatus20) { return .message(MdocSession.status(20)) }
        if quirks.contains(.notCBOR) { return .message([0xFF, 0xFF, 0xFF]) }
        let response = try response(to: request.request, current.binding)
        let status: Int64? = quirks.contains(.endsWithData) ? 20 : nil
        var answer = try current.message(Secret(response), status: status)
        if quirks.contains(.wrongTag) { answer = try Self.spoiled(answer) }
        session = consume current
        return .message(answer)
    }

    /// The key of a certificate.
    private static func key(_ certificate: [UInt8]) throws(MdocProblem) -> ECPublicKey {
        guard case .elliptic(let key)? = try? DocumentCertificate(certificate).publicKey else {
            throw .malformed("the certificate of the reader has no elliptic key")
        }
        return key
    }

    /// The message with one bit of its encrypted data inverted.
    private static func spoiled(_ message: [UInt8]) throws(MdocProblem) -> [UInt8] {
        guard let item = try? CBOR(message), var data = item["data"]?.bytes, !data.isEmpty else { return message }
        data[0] ^= 1
        return (["data": .bytes(data)] as CBORValue).encoding
    }

    // MARK: Response

    private func response(to request: DeviceRequest, _ binding: MdocBinding) throws(MdocProblem) -> [UInt8] {
        let quirks = description.quirks
        let refusals: [(Quirk, Int64)] = [(.responseStatus10, 10), (.responseStatus11, 11)]
        for (quirk, status) in refusals where quirks.contains(quirk) {
            return (["version": "1.0", "status": .integer(status)] as CBORValue).encoding
        }
        var found: [CBORValue] = []
        if description.consent != .no {
            for asked in request.documents {
                guard let document = documents.first(where: { $0.docType == asked.docType }),
                    let answer = try answer(asked, document, binding)
                else { continue }
                found.append(answer)
            }
        }
        var pairs: [(CBORValue, CBORValue)] = [("version", "1.0")]
        if !found.isEmpty { pairs.append(("documents", .array(found))) }
        if quirks.contains(.documentErrors), found.isEmpty {
            pairs.append(("documentErrors", .array(request.documents.map { .map([(.text($0.docType), 0)]) })))
        }
        pairs.append(("status", 0))
        let bytes = CBORValue.map(pairs).encoding
        return quirks.contains(.bytesAfterResponse) ? bytes + [0] : bytes
    }

    /// One document with what its holder gives; nil if that is nothing.
    private func answer(
        _ asked: DeviceRequest.Document,
        _ document: VirtualMdocIssuer.Document,
        _ binding: MdocBinding
    ) throws(MdocProblem) -> CBORValue? {
        let quirks = description.quirks
        var namespaces: [(CBORValue, CBORValue)] = []
        for space in asked.namespaces {
            guard let own = document.items.first(where: { $0.namespace == space.name }) else { continue }
            var items = given(space.elements.map(\.name), of: own.elements)
            if quirks.contains(.changedItem), let first = items.first { items[0] = Self.changed(first) }
            if quirks.contains(.itemTwice), let first = items.first { items.append(first) }
            if !items.isEmpty { namespaces.append((.text(space.name), .array(items))) }
        }
        guard !namespaces.isEmpty else { return nil }
        let own: [(CBORValue, CBORValue)] =
            quirks.contains(.deviceItems) ? [("org.example.device", ["mood": "good"])] : []
        let signed = CBORValue.embedded(.map(own))
        let type = quirks.contains(.replayed) ? document.docType + ".other" : document.docType
        let proof = binding.deviceAuthentication(docType: type, namespaces: signed.encoding)
        return [
            "docType": .text(document.docType),
            "issuerSigned": ["nameSpaces": .map(namespaces), "issuerAuth": document.issuerAuth],
            "deviceSigned": ["nameSpaces": signed, "deviceAuth": try auth(proof, document, binding)],
        ]
    }

    private func auth(
        _ proof: [UInt8],
        _ document: VirtualMdocIssuer.Document,
        _ binding: MdocBinding
    ) throws(MdocProblem) -> CBORValue {
        let key: ECPrivateKey
        do throws(CryptoError) {
            let isClone = description.quirks.contains(.clone)
            key = isClone ? try ECPrivateKey(on: document.deviceKey.group) : try document.deviceKey.copy()
        } catch {
            throw .library(error)
        }
        guard description.usesMAC else {
            return ["deviceSignature": try COSEMessage.sign(detached: proof, with: key, certificates: [])]
        }
        return ["deviceMac": try COSEMessage.mac(detached: proof, key: try binding.macKey(of: key))]
    }

    /// The items that the holder gives. Of `age_over_NN` the nearest one is given, and of several two. ISO/IEC 18013-5, 7.2.5.
    private func given(
        _ asked: [String],
        of own: [(name: String, item: CBORValue, value: CBORValue)]
    ) -> [CBORValue] {
        var names: [String] = []
        for name in asked {
            let element = Self.age(name).map { Self.nearest($0, in: own) } ?? name
            guard let element, !description.withheld.contains(name), !names.contains(element) else { continue }
            if Self.age(name) != nil, names.count(where: { Self.age($0) != nil }) == Self.mostAges { continue }
            names.append(element)
        }
        return names.compactMap { name in own.first { $0.name == name }?.item }
    }

    private static let mostAges = 2

    private static func age(_ name: String) -> Int? {
        name.hasPrefix("age_over_") ? Int(name.dropFirst("age_over_".count)) : nil
    }

    private static func nearest(
        _ age: Int,
        in own: [(name: String, item: CBORValue, value: CBORValue)]
    ) -> String? {
        var above: (age: Int, name: String)?
        var below: (age: Int, name: String)?
        for element in own {
            guard let number = Self.age(element.name), case .bool(let isOver) = element.value else { continue }
            if isOver, number >= age, number < above?.age ?? .max { above = (number, element.name) }
            if !isOver, number <= age, number > below?.age ?? .min { below = (number, element.name) }
        }
        return above?.name ?? below?.name
    }

    /// The item with another value, which its hash does not fit.
    private static func changed(_ item: CBORValue) -> CBORValue {
        guard let old = try? CBOR(item.encoding).embedded(), let pairs = old.map else { return item }
        return .embedded(
            .map(
                pairs.map { key, value in
                    guard key.isText("elementValue") else { return (.encoded(key.encoded), .encoded(value.encoded)) }
                    return ("elementValue", value.bool.map { .bool(!$0) } ?? "Mallory")
                }
            )
        )
    }
}
