// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import HTTP
import ISO7816
import TestSupport
import Testing
import Text

@testable import EService
@testable import Transfers

struct PAOSMessageTests {
    private static func envelope(_ body: String, header: String = "") -> [UInt8] {
        Array(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:i="urn:iso:std:iso-iec:24727:tech:schema" \
            xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:w="http://www.w3.org/2005/03/addressing">\
            <s:Header>\(header)</s:Header><s:Body>\(body)</s:Body></s:Envelope>
            """.utf8
        )
    }

    private static func read(_ body: String) throws(Malformed) -> PAOSMessage.Content {
        try PAOSMessage(envelope(body)).content
    }

    private static func authenticate(_ type: String, _ fields: String) -> String {
        """
        <i:DIDAuthenticate><i:DIDName>PIN</i:DIDName><i:AuthenticationProtocolData xsi:type="i:\(type)">\(fields)\
        </i:AuthenticationProtocolData></i:DIDAuthenticate>
        """
    }

    private static func certificate(_ name: String) throws -> String {
        "<i:Certificate>\(hex(try TestPKI.file("\(name).cvcert")))</i:Certificate>"
    }

    private static let required = hex(CHAT(.terminal, AccessRights([.readGivenNames])).object.encoded)

    // MARK: From the server

    @Test("EAC1 is read with all its fields")
    func eac1() throws {
        let auxiliary = AuxiliaryData([.dateOfBirth: Array("20081121".utf8), .communityID: [0x02, 0x76]])
        let content = try Self.read(
            Self.authenticate(
                "EAC1InputType",
                """
                \(try Self.certificate("terminal"))<i:Certificate>7F21</i:Certificate>\(try Self.certificate("dv"))\
                <i:CertificateDescription>3000</i:CertificateDescription>\
                <i:RequiredCHAT> \(Self.required)
                </i:RequiredCHAT><i:AuthenticatedAuxiliaryData>\(hex(auxiliary.encoded))</i:AuthenticatedAuxiliaryData>\
                <i:TransactionInfo> Order
                   no. 7 </i:TransactionInfo><i:AcceptedEIDType>SEEndorsed</i:AcceptedEIDType><i:New/>
                """
            )
        )
        guard case .eac1(let input) = content else { return #expect(Bool(false), "another message") }
        #expect(input.certificates == [try Fixtures.certificate("terminal"), try Fixtures.certificate("dv")])
        #expect(input.description == [0x30, 0x00])
        #expect(input.requiredCHAT?.rights == AccessRights([.readGivenNames]))
        #expect(input.optionalCHAT == nil)
        #expect(input.auxiliaryData == auxiliary)
        #expect(input.transactionInfo == "Order no. 7")
        #expect(input.acceptedEIDTypes == [.seEndorsed])
    }

    @Test("without AcceptedEIDType the kinds CardCertified, SECertified and SEEndorsed are accepted")
    func eidTypes() throws {
        guard case .eac1(let input) = try Self.read(Self.authenticate("EAC1InputType", "")) else {
            return #expect(Bool(false), "another message")
        }
        #expect(input.acceptedEIDTypes == [.cardCertified, .seCertified, .seEndorsed])
        #expect(input.transactionInfo == nil && input.auxiliaryData == nil && input.certificates.isEmpty)
    }

    @Test(
        "EAC1 with an invalid field is refused, and can be answered",
        arguments: [
            "<i:RequiredCHAT>7F4C03060100</i:RequiredCHAT>", "<i:RequiredCHAT>0</i:RequiredCHAT>",
            "<i:OptionalCHAT>\(hex(CHAT(.cvca, []).object.encoded))</i:OptionalCHAT>",
            "<i:RequiredCHAT>\(hex(CHAT(.inspectionSystem, .terminal, authorization: 1).object.encoded))</i:RequiredCHAT>",
            "<i:Certificate>xyz</i:Certificate>", "<i:AcceptedEIDType>Phone</i:AcceptedEIDType>",
            "<i:CertificateDescription>00</i:CertificateDescription><i:CertificateDescription>00</i:CertificateDescription>",
            "<i:TransactionInfo>a</i:TransactionInfo><i:TransactionInfo>b</i:TransactionInfo>",
            "<i:TransactionInfo>\(String(repeating: "a", count: EAC1Input.maximumInfo + 1))</i:TransactionInfo>",
            "<i:AuthenticatedAuxiliaryData>6701</i:AuthenticatedAuxiliaryData>",
            // An unknown kind, a repeated kind, an invalid date, an empty community.
            "<i:AuthenticatedAuxiliaryData>\(entry(9, "00"))</i:AuthenticatedAuxiliaryData>",
            "<i:AuthenticatedAuxiliaryData>\(entries([entry(3, "02"), entry(3, "03")]))</i:AuthenticatedAuxiliaryData>",
            "<i:AuthenticatedAuxiliaryData>\(entry(1, hex(Array("20081321".utf8))))</i:AuthenticatedAuxiliaryData>",
            "<i:AuthenticatedAuxiliaryData>\(entry(3, ""))</i:AuthenticatedAuxiliaryData>",
        ]
    )
    func invalidEAC1(field: String) throws {
        let content = try Self.read(Self.authenticate("EAC1InputType", field))
        guard case .invalid(.didAuthenticateResponse(.eac1), _) = content else {
            return #expect(Bool(false), "\(content)")
        }
    }

    /// The object 67 with one entry of this kind.
    private static func entry(_ kind: UInt8, _ value: String) -> String {
        let identifier: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x03, 0x01, 0x04, kind]
        return hex(BERTLV(0x67, [BERTLV(0x73, [BERTLV(0x06, identifier), BERTLV(0x53, hex(value))])]).encoded)
    }

    private static func entries(_ objects: [String]) -> String {
        hex(BERTLV(0x67, objects.flatMap { (try? BERTLV(hex($0)).value) ?? [] }).encoded)
    }

    @Test("EAC2 is read with all its fields")
    func eac2() throws {
        let content = try Self.read(
            Self.authenticate(
                "EAC2InputType",
                "<i:EphemeralPublicKey>04AABB</i:EphemeralPublicKey>\(try Self.certificate("link"))<i:Signature>0102</i:Signature>"
            )
        )
        guard case .eac2(let input) = content else { return #expect(Bool(false), "another message") }
        #expect(input.ephemeralPublicKey == [4, 0xAA, 0xBB])
        #expect(input.certificates == [try Fixtures.certificate("link")])
        #expect(input.signature == [1, 2])
    }

    @Test("a key without its leading 04 gets it, even when x begins with 04", arguments: Curve.allCases)
    func keyWithoutPrefix(curve: Curve) throws {
        for first: UInt8 in [0x04, 0x71] {
            let coordinates = [first] + [UInt8](repeating: 0x5A, count: curve.fieldLength * 2 - 1)
            let field = "<i:EphemeralPublicKey>\(hex(coordinates))</i:EphemeralPublicKey>"
            guard case .eac2(let input) = try Self.read(Self.authenticate("EAC2InputType", field)) else {
                return #expect(Bool(false), "another message")
            }
            #expect(input.ephemeralPublicKey == [0x04] + coordinates)
        }
    }

    @Test(
        "a key that is not an uncompressed point is refused, and can be answered",
        arguments: [
            "", "AABB", "04", "04AA", "02AABB", String(repeating: "04", count: 135),
            // One byte too few and one too many on each side of the two coordinates of a curve.
            String(repeating: "5A", count: 62), String(repeating: "5A", count: 63), String(repeating: "5A", count: 65),
            String(repeating: "5A", count: 66),
        ]
    )
    func invalidKey(key: String) throws {
        let content = try Self.read(
            Self.authenticate("EAC2InputType", "<i:EphemeralPublicKey>\(key)</i:EphemeralPublicKey>")
        )
        guard case .invalid(.didAuthenticateResponse(.eac2), _) = content else {
            return #expect(Bool(false), "\(content)")
        }
    }

    @Test("the other messages are read")
    func others() throws {
        #expect(try Self.read("<InitializeFramework xmlns='urn:other'/>") == .initializeFramework)
        #expect(
            try Self.read(Self.authenticate("EACAdditionalInputType", "<i:Signature>00FF</i:Signature>"))
                == .eacAdditional([0x00, 0xFF])
        )
        let transmit = """
            <i:Transmit><i:SlotHandle>00</i:SlotHandle>\
            <i:InputAPDUInfo><i:InputAPDU>00A4040C</i:InputAPDU></i:InputAPDUInfo>\
            <i:InputAPDUInfo><i:InputAPDU>00B09C00</i:InputAPDU><i:AcceptableStatusCode>90</i:AcceptableStatusCode>\
            <i:AcceptableStatusCode>6A82</i:AcceptableStatusCode></i:InputAPDUInfo></i:Transmit>
            """
        #expect(
            try Self.read(transmit)
                == .transmit([
                    InputAPDU(command: [0x00, 0xA4, 0x04, 0x0C]),
                    InputAPDU(command: [0x00, 0xB0, 0x9C, 0x00], acceptableStatusCodes: [[0x90], [0x6A, 0x82]]),
                ])
        )
    }

    @Test(
        "a status is accepted by its prefix; without prefixes every status is",
        arguments: [
            ([], 0x6982, true), ([[0x90]], 0x9001, true), ([[0x90, 0x00]], 0x9001, false),
            ([[0x90], [0x6A, 0x82]], 0x6A82, true), ([[0x6A, 0x82]], 0x9000, false),
        ] as [([[UInt8]], UInt16, Bool)]
    )
    func acceptable(codes: [[UInt8]], status: UInt16, isAcceptable: Bool) {
        #expect(InputAPDU(command: [], acceptableStatusCodes: codes).accepts(status) == isAcceptable)
    }

    @Test(
        "Transmit without a valid command is refused, and can be answered",
        arguments: [
            "", "<i:InputAPDUInfo/>", "<i:InputAPDUInfo><i:InputAPDU>zz00A4</i:InputAPDU></i:InputAPDUInfo>",
            "<i:InputAPDUInfo><i:InputAPDU>00A4</i:InputAPDU></i:InputAPDUInfo>",
            "<i:InputAPDUInfo><i:InputAPDU>00A40000</i:InputAPDU><i:AcceptableStatusCode/></i:InputAPDUInfo>",
            "<i:InputAPDUInfo><i:InputAPDU>00A40000</i:InputAPDU><i:InputAPDU>00A40000</i:InputAPDU></i:InputAPDUInfo>",
        ]
    )
    func invalidTransmit(content: String) throws {
        let content = try Self.read("<i:Transmit>\(content)</i:Transmit>")
        guard case .invalid(.transmitResponse, _) = content else { return #expect(Bool(false), "\(content)") }
    }

    @Test("StartPAOSResponse is read with and without the element Result; without a result it is an error")
    func result() throws {
        let major = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#"
        let content = try Self.read(
            """
            <i:StartPAOSResponse><Result><ResultMajor>\(major)error</ResultMajor><ResultMinor>urn:x#y</ResultMinor>\
            <ResultMessage> No
            good. </ResultMessage></Result></i:StartPAOSResponse>
            """
        )
        let expected = ECardResult(.error, ResultMinor(uri: "urn:x#y"), message: "No good.", origin: .server)
        #expect(content == .startPAOSResponse(expected))
        // Swift counts this as one character.
        let long = "e" + String(repeating: "\u{301}", count: 100_000)
        let wordy = try Self.read("<StartPAOSResponse><ResultMessage>\(long)</ResultMessage></StartPAOSResponse>")
        guard case .startPAOSResponse(let result) = wordy else { throw Malformed("another message") }
        #expect(result.message?.description.unicodeScalars.count == 1024)
        let bare = try Self.read("<StartPAOSResponse><ResultMajor>\(major)ok</ResultMajor></StartPAOSResponse>")
        #expect(bare == .startPAOSResponse(ECardResult(.ok, origin: .server)))
        #expect(try Self.read("<StartPAOSResponse/>") == .startPAOSResponse(ECardResult(.error, origin: .server)))
    }

    @Test(
        "a document that is not a message of the protocol is refused",
        arguments: [
            envelope(""), envelope("<i:Bogus/>"), envelope("<s:Fault><faultcode>s:Server</faultcode></s:Fault>"),
            envelope(authenticate("EAC3InputType", "")), envelope("<i:DIDAuthenticate/>"),
            envelope("<i:InitializeFramework/>", header: "<w:MessageID/><w:MessageID/>"),
            Array("<i:InitializeFramework xmlns:i='urn:x'/>".utf8), Array("<Envelope/>".utf8), [],
            Array("<Envelope><Body/><Body/></Envelope>".utf8), envelope("<StartPAOSResponse/><StartPAOSResponse/>"),
            envelope(String(repeating: " ", count: PAOSMessage.maximumLength)),
        ]
    )
    func unknown(document: [UInt8]) {
        #expect(throws: Malformed.self) { try PAOSMessage(document) }
    }

    // MARK: To the server

    @Test("each of our messages has the addressing header and the expected elements")
    func envelopes() throws {
        let output = EAC1Output(
            chat: CHAT(.terminal, AccessRights([.readGivenNames])),
            authorityReferences: [Array("DECVCA1".utf8), Array("DECVCA0".utf8)],
            efCardAccess: [0x31, 0x00],
            idPICC: [0x0A],
            challenge: [1, 2, 3, 4, 5, 6, 7, 8]
        )
        let error = ECardResult(.cancelledByUser)
        let agent = PAOSEnvelope.UserAgent(name: "b<&>", version: (1, 2, 3))
        let bodies: [(PAOSEnvelope.Body, String, [String])] = [
            (
                .startPAOS(sessionIdentifier: "a&b", agent), "StartPAOS",
                ["SessionIdentifier", "ConnectionHandle", "UserAgent", "SupportedAPIVersions"]
            ),
            (.initializeFrameworkResponse(.ok), "InitializeFrameworkResponse", ["Result", "Version"]),
            (
                .eac1(output, namesAuthorities: false), "DIDAuthenticateResponse",
                ["Result", "AuthenticationProtocolData"]
            ),
            (.challenge([1]), "DIDAuthenticateResponse", ["Result", "AuthenticationProtocolData"]),
            (.eac2(MadeUpCard.eac2), "DIDAuthenticateResponse", ["Result", "AuthenticationProtocolData"]),
            (
                .transmitResponse([[0x90, 0x00], [0x6A, 0x82]], .ok), "TransmitResponse",
                ["Result", "OutputAPDU", "OutputAPDU"]
            ),
            (.error(error, to: .initializeFrameworkResponse), "InitializeFrameworkResponse", ["Result", "Version"]),
            (
                .error(error, to: .didAuthenticateResponse(.eac1)), "DIDAuthenticateResponse",
                ["Result", "AuthenticationProtocolData"]
            ),
            (
                .error(error, to: .didAuthenticateResponse(.eac2)), "DIDAuthenticateResponse",
                ["Result", "AuthenticationProtocolData"]
            ),
            (.error(error, to: .transmitResponse), "TransmitResponse", ["Result"]),
        ]
        for (body, name, children) in bodies {
            let document = PAOSEnvelope.document(body, messageID: "urn:uuid:1", relatesTo: "<7>")
            let root = try XMLReader.read(document, maximumLength: 100_000)
            let header = try #require(try root.only("Header"))
            #expect(try header.only("MessageID")?.text == "urn:uuid:1")
            #expect(try header.only("RelatesTo")?.text == "<7>")
            #expect(try header.only("PAOS")?.attributes["mustUnderstand"] == "1")
            let message = try #require(try root.only("Body")?.children.first)
            #expect(message.name == name)
            #expect(message.children.map(\.name) == children)
        }
    }

    @Test("the trust points of the card are sent only when the server has no chain for them")
    func authorities() throws {
        let output = EAC1Output(
            chat: CHAT(.terminal, []),
            authorityReferences: [Array("DECVCA1".utf8), Array("DECVCA0".utf8)],
            efCardAccess: [],
            idPICC: [],
            challenge: []
        )
        func references(_ namesAuthorities: Bool) throws -> [String]? {
            let body = PAOSEnvelope.Body.eac1(output, namesAuthorities: namesAuthorities)
            let root = try XMLReader.read(
                PAOSEnvelope.document(body, messageID: "1", relatesTo: nil),
                maximumLength: 10_000
            )
            return try root.only("Body")?.children.first?.only("AuthenticationProtocolData")?
                .all("CertificationAuthorityReference").map(\.text)
        }
        #expect(try references(true) == ["DECVCA1", "DECVCA0"])
        #expect(try references(false) == [])
    }

    @Test("an error is sent with major, minor and message")
    func errorResult() throws {
        let body = PAOSEnvelope.Body.error(ECardResult(.cardRemoved), to: .transmitResponse)
        let root = try XMLReader.read(
            PAOSEnvelope.document(body, messageID: "1", relatesTo: nil),
            maximumLength: 10_000
        )
        let result = try #require(try root.only("Body")?.children.first?.only("Result"))
        #expect(result.children.map(\.name) == ["ResultMajor", "ResultMinor", "ResultMessage"])
        #expect(
            result.children.prefix(2).map(\.text) == [
                "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#error",
                "http://www.bsi.bund.de/ecard/api/1.1/resultminor/sal#cancellationByUser",
            ]
        )
    }
}
