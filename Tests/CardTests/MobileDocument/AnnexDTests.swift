// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import MobileDocument
import TestSupport
import Testing
import Text

/// The worked examples of ISO/IEC 18013-5:2021, annex D, byte by byte.
@Suite("Worked examples of ISO/IEC 18013-5") struct AnnexDTests {
    private static func value(_ name: String) throws -> [UInt8] {
        try vectorFile("mdoc/annex-d.json").object("vectors").bytes(name)
    }

    private static func key(_ name: String) throws -> ECPrivateKey {
        try ECPrivateKey(Secret(try value(name)), on: try Curve.secp256r1.group)
    }

    /// Both NDEF messages and the engagement of the example of the session.
    private static func handover() throws -> HandoverSelect {
        let transcript = try CBOR(try value("session_transcript_bytes")).embedded()
        let messages = try #require(transcript.array?[2].array)
        return try HandoverSelect(try #require(messages[0].bytes), request: messages[1].bytes)
    }

    private static func session() throws -> MdocSession {
        let handover = try handover()
        return try MdocSession(handover.engagement, handover.handover, readerKey: try key("ephemeral_reader_key_d"))
    }

    @Test("the engagement of D.3.1 has its key and central client mode, and a QR code of it is the same")
    func engagement() throws {
        let bytes = try Self.value("device_engagement")
        let uuid = try #require(UUIDText.decode("45efef74-2b2c-4837-a9a3-b0e1d05a6917"))
        let engagement = try DeviceEngagement(bytes)
        #expect(engagement.ways == [.ble(DeviceEngagement.BLE(client: uuid))])
        #expect(engagement.keyBytes == (try Self.value("e_device_key_bytes")))
        let coordinates = try Self.value("ephemeral_device_key_x") + Self.value("ephemeral_device_key_y")
        #expect(engagement.key.uncompressed == [4] + coordinates)
        #expect(try DeviceEngagement(qr: "mdoc:\(Base64.url.encode(bytes))").encoded == bytes)
        #expect(try DeviceEngagement.encoding(key: engagement.key, ways: engagement.ways) == bytes)
        #expect(Hex.encode(try MdocSession.ident(engagement)) == "8da0b7a85919f05673054ea996bbd124")
    }

    @Test("the handover of D.3.2 has an engagement without ways; the reader's request has the UUID")
    func handover() throws {
        let select = try Self.handover()
        #expect(select.engagement.ways.isEmpty)
        guard case .nfc(_, let bytes?) = select.handover else {
            Issue.record("not a negotiated handover")
            return
        }
        let request = try HandoverRequest(bytes)
        let uuid = try #require(request.uuid)
        #expect(select.ways == [.ble(DeviceEngagement.BLE(client: uuid))])
        #expect(request.offersNFC)
    }

    @Test("the transcript of D.5.1 is the same bytes")
    func transcript() throws {
        let session = try Self.session()
        #expect(CBORValue.embedded(session.binding.transcript).encoding == (try Self.value("session_transcript_bytes")))
    }

    @Test("the reader encrypts the request of D.5.1 to the same message")
    func establishment() throws {
        var session = try Self.session()
        let message = try session.establishment(Secret(try Self.value("device_request")))
        #expect(message == (try Self.value("session_establishment")))
    }

    @Test("the phone decrypts the request of D.5.1, and encrypts its response to the same message")
    func phone() throws {
        let handover = try Self.handover()
        var session = try MdocSession(
            phone: handover.engagement.encoded,
            handover.handover,
            key: try Self.key("ephemeral_device_key_d"),
            establishment: try Self.value("session_establishment")
        )
        let received = try session.read(try Self.value("session_establishment"))
        let request = try #require(received.data?.withBytes { Array($0) })
        #expect(request == (try Self.value("device_request")))
        let message = try session.message(Secret(try Self.value("device_response")))
        #expect(message == (try Self.value("session_data")))
        let parsed = try DeviceRequest.Received(Secret(request))
        #expect(parsed.request.documents.map(\.docType) == ["org.iso.18013.5.1.mDL"])
        #expect(
            parsed.request.documents[0].namespaces[0].elements.filter(\.isRetained).map(\.name).contains("portrait")
                == false
        )
        let certificates = try parsed.readerCertificates(session.binding) { bytes throws(MdocProblem) in
            try Self.elliptic(bytes)
        }
        #expect(certificates == [try Self.value("reader_cert")])
    }

    /// The key of a certificate.
    static func elliptic(_ certificate: [UInt8]) throws(MdocProblem) -> ECPublicKey {
        guard let certificate = try? DocumentCertificate(certificate),
            case .elliptic(let key)? = try? certificate.publicKey
        else { throw .malformed("no elliptic key") }
        return key
    }

    @Test("the reader decrypts the response of D.5.1; the end is that of the annex")
    func response() throws {
        var session = try Self.session()
        let received = try session.read(try Self.value("session_data"))
        #expect(received.status == .none)
        let plain = try #require(received.data?.withBytes { Array($0) })
        #expect(plain == (try Self.value("device_response")))
        #expect(MdocSession.status(20) == (try Self.value("session_termination")))
        var again = try Self.session()
        let end = try again.read(try Self.value("session_termination"))
        #expect(end.status == .termination)
    }

    @Test("a response whose tag is wrong ends the session")
    func wrongTag() throws {
        var session = try Self.session()
        var message = try Self.value("session_data")
        message[message.count - 1] ^= 1
        let problem = #expect(throws: MdocProblem.self) { _ = try session.read(message) }
        #expect(problem == .session("a message of the session cannot be decrypted", answer: 10))
        let right = try Self.value("session_data")
        #expect(throws: MdocProblem.self) { _ = try session.read(right) }
    }

    @Test("the MAC of D.5.3 is right under the key of both sides")
    func mac() throws {
        let session = try Self.session()
        let response = try CBOR(try Self.value("device_response"))
        let document = try #require(response["documents"]?.array?.first)
        let signed = try #require(document["deviceSigned"])
        let mac = try COSEMessage(try #require(signed["deviceAuth"]?["deviceMac"]), .mac)
        let deviceKey = try Self.key("static_device_key_d")
        let key = try session.binding.macKey(with: deviceKey.publicKey)
        #expect(
            Hex.encode(key.withBytes { Array($0) })
                == "dc2b9566fdaaae3c06baa40993cd0451aeba15e7677ef5305f6531f3533c35dd"
        )
        let payload = session.binding.deviceAuthentication(
            docType: "org.iso.18013.5.1.mDL",
            namespaces: try #require(signed["nameSpaces"]).encoded
        )
        #expect(try mac.verify(mac: key, detached: payload))
        let handover = try Self.handover()
        let phone = try MdocSession(
            phone: handover.engagement.encoded,
            handover.handover,
            key: try Self.key("ephemeral_device_key_d"),
            establishment: try Self.value("session_establishment")
        )
        let same = try phone.binding.macKey(of: deviceKey)
        #expect(try mac.verify(mac: same, detached: payload))
        #expect(try CBOR(COSEMessage.mac(detached: payload, key: same).encoding).array?[3].bytes == mac.proof)
    }

    @Test("a request that badged signs is the one of its own session")
    func readerAuthentication() throws {
        let session = try Self.session()
        let key = try ECPrivateKey(on: try Curve.secp384r1.group)
        let publicKey = key.publicKey
        let identity = DeviceRequest.Identity(key: key, certificates: [[1], [2]], registration: [7, 8])
        for signsAll in [false, true] {
            let request = MobileDocument.request(ageOver: 18)
            let bytes = try request.encoded(for: session.binding, signedBy: identity, signsAll: signsAll)
            let received = try DeviceRequest.Received(bytes.clone())
            #expect(received.request.documents == request.documents)
            #expect(received.registrations.allSatisfy { $0 == [7, 8] })
            #expect(
                try received.readerCertificates(session.binding) { _ throws(MdocProblem) in publicKey } == [[1], [2]]
            )
            let engagement = try DeviceEngagement(try Self.value("device_engagement"))
            let other = try MdocSession(engagement, .qr)
            #expect(throws: MdocProblem.self) {
                _ = try received.readerCertificates(other.binding) { _ throws(MdocProblem) in publicKey }
            }
        }
    }
}
