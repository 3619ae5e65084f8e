// SPDX-License-Identifier: GPL-3.0-or-later
import ReadersRemote
import RemoteDevices
import TestSupport
import Testing
import Text

@Suite(.timeLimit(.minutes(5))) struct MessageTests {
    @Test(
        "Each message is the same after it is written and read, in both versions",
        arguments: [
            .establishContext(protocolName: "IFDInterface_WebSocket_v2", deviceName: "desk"),
            .establishContextResponse(deviceName: "phone", .ok), .getStatus(slot: ""),
            .status(IFDStatus(slot: "NFC", hasCard: true)), .connect(slot: "NFC"),
            .connectResponse(handle: "{1}", .failed(.sharingViolation)), .disconnect(handle: "{1}"),
            .disconnectResponse(handle: "{1}", .ok), .transmit(handle: "{1}", apdu: [0, 0xB0, 0x9C, 0, 0]),
            .transmitResponse(handle: "{1}", apdu: [0x90, 0], .ok),
            .establishPACE(handle: "{1}", input: [3, 0, 0, 0, 0]),
            .establishPACEResponse(handle: "{1}", code: 0xF006_63C2, output: [0, 0, 2, 0, 0x31, 0], .ok),
            .modifyPIN(handle: "{1}", input: [0x3C]),
            .modifyPINResponse(handle: "{1}", output: [0x64, 1], .failed(.cancelled)), .destroyPACE(handle: "{1}"),
            .destroyPACEResponse(handle: "{1}", .ok), .error(.failed(.unknownAPIFunction)),
        ] as [IFDMessage],
        IFDVersion.allCases
    )
    func roundTrip(_ message: IFDMessage, _ version: IFDVersion) throws {
        let envelope = IFDEnvelope(context: "{c}", message)
        #expect(try IFDEnvelope(envelope.encode(version)) == envelope)
    }

    @Test("The text for the display is in version 2 alone")
    func text() throws {
        let message = IFDMessage.transmit(handle: "{1}", apdu: [0, 0xB0], text: "25 %")
        let envelope = IFDEnvelope(context: "{c}", message)
        #expect(try IFDEnvelope(envelope.encode(.two)) == envelope)
        let old = try IFDEnvelope(envelope.encode(.zero))
        #expect(old.message == .transmit(handle: "{1}", apdu: [0, 0xB0]))
    }

    @Test("Messages of AusweisApp2 are read, and written with the same members")
    func peer() throws {
        // From recordings of AusweisApp2 1.26.2.
        let lines = [
            #"{"InputAPDU":"00a4040c09e80704007f00070302","ContextHandle":"{c}","SlotHandle":"{s}","msg":"IFDTransmit"}"#,
            #"{"ContextHandle":"{c}","PINPad":true,"MaxAPDULength":500,"ConnectedReader":true,"CardAvailable":true,"#
                + #""EFATR":null,"EFDIR":null,"SlotName":"NFC","msg":"IFDStatus"}"#,
            #"{"ContextHandle":"{c}","ResultCode":"c26306f0","OutputData":"000002003100","SlotHandle":"{s}","#
                + #""ResultMajor":"http://www.bsi.bund.de/ecard/api/1.1/resultmajor#ok","ResultMinor":null,"#
                + #""msg":"IFDEstablishPACEChannelResponse"}"#,
        ]
        for line in lines {
            let envelope = try IFDEnvelope(Array(line.utf8))
            #expect(try JSON(envelope.encode(.two)) == JSON(line.utf8))
        }
        #expect(
            try IFDEnvelope(Array(lines[2].utf8)).message
                == .establishPACEResponse(handle: "{s}", code: 0xF006_63C2, output: [0, 0, 2, 0, 0x31, 0], .ok)
        )
    }

    @Test(
        "A message with a missing, mistyped or overlong member is refused",
        arguments: [
            (#"{"msg":"IFDTransmit","InputAPDU":"00b0"}"#, IFDParseError.incomplete(name: "IFDTransmit", context: nil)),
            (
                #"{"msg":"IFDTransmit","ContextHandle":"c","SlotHandle":"s","InputAPDU":"zz"}"#,
                .incomplete(name: "IFDTransmit", context: "c")
            ),
            (#"{"msg":"IFDConnect","SlotName":1}"#, .incomplete(name: "IFDConnect", context: nil)),
            (
                #"{"msg":"IFDConnect","SlotName":""# + String(repeating: "x", count: 600) + #""}"#,
                .incomplete(name: "IFDConnect", context: nil)
            ),
            (#"{"msg":"Hello"}"#, .unknown), (#"{"msg":7}"#, .notAMessage), ("[]", .notAMessage), ("", .notAMessage),
        ] as [(String, IFDParseError)]
    )
    func refused(_ text: String, _ error: IFDParseError) {
        #expect(throws: error) { try IFDEnvelope(Array(text.utf8)) }
    }

    @Test(
        "only the names of answers are answers, whatever their end",
        arguments: [
            ("IFDTransmitResponse", true), ("IFDError", true), ("IFDTransmit", false), ("IFDStatus", false),
            ("IFDForeignResponse", false),
        ]
    )
    func answers(name: String, isAnswer: Bool) { #expect(IFDEnvelope.isAnswer(name) == isAnswer) }
}

@Suite(.timeLimit(.minutes(5))) struct OfferTests {
    private static let hash = String(repeating: "ab", count: 32)

    private static func text(_ members: String) -> [UInt8] {
        Array(#"{"msg":"REMOTE_IFD","IFDName":"Pixel","IFDID":"\#(hash)",\#(members)}"#.utf8)
    }

    @Test("An announcement names the device by the hash of its certificate, also when it carries the certificate")
    func identity() async throws {
        let own = try await LinkTests.lender.value
        let bytes = Offer.encode(name: "desk", certificate: own.encodedCertificate, port: 4711, isPairing: true)
        let offer = try #require(Offer(bytes))
        #expect(offer.fingerprint == own.fingerprint)
        #expect(offer.name == "desk" && offer.port == 4711 && offer.isPairing)
        let short = try #require(
            Offer(Self.text(#""port":1,"SupportedAPI":["x","IFDInterface_WebSocket_v2"],"pairing":false,"more":[]"#))
        )
        #expect(short.fingerprint == Self.hash && short.versions == [.two] && !short.isPairing)
    }

    @Test(
        "An announcement that AusweisApp would discard is discarded",
        arguments: [
            #""port":1,"SupportedAPI":["IFDInterface_WebSocket_v2"]"#,
            #""port":1,"SupportedAPI":["IFDInterface_WebSocket_v2"],"pairing":"yes""#,
            #""port":0,"SupportedAPI":["IFDInterface_WebSocket_v2"],"pairing":true"#,
            #""port":65536,"SupportedAPI":["IFDInterface_WebSocket_v2"],"pairing":true"#,
            #""port":1,"SupportedAPI":[],"pairing":true"#, #""port":1,"pairing":true"#,
            #""port":1,"SupportedAPI":["IFDInterface_WebSocket_v3"],"pairing":true"#,
        ]
            + [
                "[]", "1", "[1]", #"["ws://1.2.3.4:5"]"#, #"["wss://1.2.3.4"]"#, #"["wss://:5"]"#,
                #"["wss://1.2.3.4:0"]"#, #"["wss://1.2.3.4:+5"]"#, #"["wss://1.2.3.4:-5"]"#, #"["wss://1.2.3.4:"]"#,
            ]
            .map { #""port":1,"SupportedAPI":["IFDInterface_WebSocket_v2"],"pairing":true,"addresses":"# + $0 }
    )
    func discarded(_ members: String) { #expect(Offer(Self.text(members)) == nil) }

    @Test("The addresses of AusweisApp 2.3.2 and later are read, and written in the same form")
    func addresses() throws {
        // From Tests/Vectors/ifd-transcripts/README.md: the shape of the announcements since 2.3.2.
        let list = ["wss://192.168.1.23:41873", "wss://[2001:db8::23]:41873"]
        func offer(_ entries: [String]) -> Offer? {
            let text = entries.map { "\"\($0)\"" }.joined(separator: ",")
            return Offer(
                Self.text(
                    #""SupportedAPI":["IFDInterface_WebSocket_v2"],"addresses":[\#(text)],"pairing":false,"port":41873"#
                )
            )
        }
        let read = try #require(offer(list))
        #expect(read.addresses.map { "wss://\($0)" } == list)
        // No other host is behind the left-out ones, or only a resolver knows it.
        let unusable = [
            "wss://phone.local:1", "wss://0.0.0.0:1", "wss://224.0.0.1:1", "wss://[fe80::1]:1", "wss://[::]:1",
        ]
        #expect(offer(unusable)?.addresses == [])
        #expect(offer(["WSS://10.0.0.1:80/x"])?.addresses.map(\.description) == ["10.0.0.1:80"])
        #expect(offer((1...200).map { "wss://10.0.0.\($0):1" })?.addresses.count == Offer.maximumAddresses)
        let written = Offer.encode(
            name: "desk",
            certificate: [1, 2, 3],
            port: 41873,
            isPairing: false,
            hosts: read.addresses.map(\.host)
        )
        #expect(try JSON(written)["addresses"] == .array(list.map { .string($0) }))
        #expect(Offer(written)?.addresses == read.addresses)
        let none = Offer.encode(name: "desk", certificate: [1, 2, 3], port: 1, isPairing: false)
        #expect(try JSON(none)["addresses"] == nil)
    }

    @Test("An address of twice the length takes at most 2.5 times as long")
    func longAddress() async {
        let members = #""port":1,"SupportedAPI":["IFDInterface_WebSocket_v2"],"pairing":true,"addresses":["#
        // An announcement is not much longer than twice this.
        let slow = await Growth.slowAlphabets(
            (
                "an address", 3900,
                { text in
                    let address = String(decoding: JSON.string("wss://\(text)").bytes, as: UTF8.self)
                    _ = Offer(Self.text(members + address + "]"))
                }
            )
        )
        #expect(slow == [])
    }

    @Test("The fingerprint before the parser is that of the announcement")
    func quickIdentity() async throws {
        let own = try await LinkTests.lender.value
        let bytes = Offer.encode(name: "desk", certificate: own.encodedCertificate, port: 4711, isPairing: true)
        #expect(Offer.identity(in: bytes) == own.fingerprint)
        let short = Self.text(#""port":1,"SupportedAPI":["IFDInterface_WebSocket_v2"],"pairing":false"#)
        #expect(Offer.identity(in: short) == Self.hash)
        let inName = Array(#"{"IFDName":"\"IFDID\":\"x","IFDID" : "\#(Self.hash)"}"#.utf8)
        #expect(Offer.identity(in: inName) == Self.hash)
        for text in ["", "garbage", #""IFDID""#, #"{"IFDID":1}"#, #"{"IFDID":"x"#] {
            #expect(Offer.identity(in: Array(text.utf8)) == nil, "\(text)")
        }
    }

    @Test("A name cannot disturb a terminal, and a long datagram is not read")
    func hostile() throws {
        let offer = try #require(
            Offer(
                Array(
                    #"{"msg":"REMOTE_IFD","IFDName":"a\u001b[2J\u202Eb","IFDID":"\#(Self.hash)","port":1,"#.utf8
                ) + Array(#""SupportedAPI":["IFDInterface_WebSocket_v0"]}"#.utf8)
            )
        )
        #expect(offer.name == "a?[2J?b")
        #expect(Offer([UInt8](repeating: 0x20, count: 9000)) == nil)
        #expect(DeviceName.clean("") == "?" && DeviceName.clean(String(repeating: "x", count: 99)).count == 33)
    }
}
