// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import MobileDocument
import TestSupport
import Testing
import Text

/// Sessions whose phone and reader are both foreign, with badged in the place of either. Tests/Vectors/mdoc/README.md.
@Suite("Sessions of a foreign phone with a foreign reader") struct ForeignSessionTests {
    private static func session(_ number: Int) throws -> JSON {
        try #require(try vectorFile("mdoc/identity-credential.json")["sessions"]?.array?[number])
    }

    private static func select(_ session: JSON) throws -> HandoverSelect {
        try HandoverSelect(
            try session.bytes("select"),
            request: session["request"] == .null ? nil : session.bytes("request")
        )
    }

    private static func key(_ name: String, _ session: JSON) throws -> ECPrivateKey {
        let curve = try select(session).engagement.key.curve
        return try ECPrivateKey(Secret(try session.bytes(name)), on: curve.group)
    }

    @Test(
        "the handover of the phone has its engagement and its ways, and that of the reader what it offers",
        arguments: 0..<4
    )
    func handover(number: Int) throws {
        let session = try Self.session(number)
        let select = try Self.select(session)
        #expect(select.engagement.encoded == (try session.bytes("engagement")))
        let uuid = try #require(UUIDText.decode("0b2b0e3c-4a8f-4a5c-9d1e-6f5a7c8d9e10"))
        let ble = DeviceEngagement.Way.ble(DeviceEngagement.BLE(client: uuid))
        guard session["request"] != .null else {
            #expect(select.ways == [ble, .nfc(command: 65_535, response: 65_536)])
            return
        }
        // The phone takes the first way of the request.
        #expect(select.ways == [ble])
        let request = try HandoverRequest(try session.bytes("request"))
        #expect(request.uuid == uuid && request.offersNFC && request.offersCentralClient)
        let service = try #require(try TNEPService(in: try session.bytes("service")))
        #expect(service.wait == .milliseconds(8) && service.maximumWaits == 15)
        #expect(TNEPService.select == (try session.bytes("serviceSelect")))
        try TNEPService.checkStatus(try session.bytes("serviceStatus"))
    }

    @Test("with the key of the reader the answer is read, and is genuine", arguments: 0..<4)
    func reader(number: Int) throws {
        let session = try Self.session(number)
        let select = try Self.select(session)
        var reader = try MdocSession(
            select.engagement,
            select.handover,
            readerKey: try Self.key("readerKey", session)
        )
        #expect(reader.binding.transcript.encoding == (try session.bytes("transcript")))
        let received = try reader.read(try session.bytes("sessionData"))
        #expect(received.status == .termination)
        let plain = try #require(received.data?.withBytes { Array($0) })
        var anchors = DocumentAnchors()
        try anchors.trust(try DocumentCertificate(try session.bytes("iaca")))
        let names = ["family_name", "age_over_18", "birth_date"]
        let request = DeviceRequest(
            documents: [
                .init(
                    docType: "org.iso.18013.5.1.mDL",
                    namespaces: [.init(name: "org.iso.18013.5.1", elements: names.map { .init(name: $0) })]
                )
            ]
        )
        let time = try #require(session["time"]?.int)
        let check = MdocCheck(request, reader.binding, MdocAuthorities(anchors: anchors), at: time)
        let results = check.results(of: try DeviceResponse(Secret(plain)))
        #expect(results.map(\.verdict) == [.genuine], "\(results.map(\.checks))")
        #expect(results.first.map { Set($0.items.map(\.name)) } == Set(names))
        #expect(MdocCheck.answer(over: 18, in: results) == true)
    }

    @Test("with the key of the phone the request is read, and the signature of its reader is right", arguments: 0..<4)
    func phone(number: Int) throws {
        let session = try Self.session(number)
        let message = try session.bytes("sessionEstablishment")
        var phone = try MdocSession(
            phone: try session.bytes("engagement"),
            try Self.select(session).handover,
            key: try Self.key("deviceKey", session),
            establishment: message
        )
        let received = try phone.read(message)
        let plain = try #require(received.data?.withBytes { Array($0) })
        let request = try DeviceRequest.Received(Secret(plain))
        #expect(request.request.documents.map(\.docType) == ["org.iso.18013.5.1.mDL"])
        let elements = request.request.documents.flatMap(\.namespaces).flatMap(\.elements)
        #expect(elements.count == 3 && elements.filter(\.isRetained).map(\.name) == ["family_name"])
        #expect(request.registrations == [[1, 2, 3]])
        let certificates = try request.readerCertificates(phone.binding) { bytes throws(MdocProblem) in
            try AnnexDTests.elliptic(bytes)
        }
        #expect(certificates == [try session.bytes("readerCertificate")])
    }
}
