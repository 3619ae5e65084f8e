// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Document
import Drivers
import ISO7816
import MdocFeature
import MobileDocument
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersRemote
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualDocument

/// RUN_READ_MDOC at readers that are neither virtual nor those of pcscd.
@Suite("Reading a phone at an NFC board and at a borrowed reader", .timeLimit(.minutes(5)), .serialized)
@Loop struct PhoneReaderTests {
    private let phones = VirtualMdocKind()

    /// Trusts the authority of the phones, as that of a real one.
    private func feature(_ registry: ReaderRegistry) -> MdocFeature {
        var anchors = DocumentAnchors()
        if let bytes = try? phones.issuer().certificate, let certificate = try? DocumentCertificate(bytes) {
            try? anchors.trust(certificate)
        }
        let authorities = MdocAuthorities(anchors: anchors)
        return MdocFeature(registry, authorities: { _ in authorities })
    }

    private func phone(_ entries: String) throws -> VirtualCard {
        let card = try JSON(#"{"kind":"mdoc"\#(entries.isEmpty ? "" : ",")\#(entries)}"#.utf8)
        return try VirtualCardKinds([phones]).describe(simulator: nil, card: card).makeCard()
    }

    private static let over18 = #"{"cmd":"RUN_READ_MDOC","ageOver":18}"#

    /// The answer about the age, once a phone was put on the reader.
    private static func answer(_ client: TestClient, _ insert: () -> Void) async -> JSON? {
        _ = await client.ask(over18, "INSERT_CARD")
        insert()
        return await client.next("MDOC")
    }

    private static func isRead(_ end: JSON?, at reader: String) -> Bool {
        end?["verdict"] == .string("genuine") && end?["age"]?["answer"] == .string("yes")
            && end?["transport"] == .string("nfc") && end?["reader"] == .string(reader)
    }

    private nonisolated static let entries = [
        #""handover":"static""#, #""handover":"negotiated""#,
        #""longestCommand":255,"longestResponse":256"#, #""longestRead":15,"longestWrite":13,"handover":"negotiated""#,
    ]

    @Test(
        "a phone on an NFC board proves an age, with blocks of each size and with more time",
        arguments: entries,
        [(8, 0, .a), (0, 0, .a), (8, 3, .a), (8, 1, .b)]
            as [(frameSizeCode: UInt8, extensions: Int, technology: PICC.Technology)]
    )
    func board(entries: String, radio: (frameSizeCode: UInt8, extensions: Int, technology: PICC.Technology))
        async throws
    {
        let board = try EmulatedPN532()
        let reader = "pn532_uart:\(board.path)"
        let server = try await TestServer(
            readers: 0,
            backends: [DriverBackend.nfc(devices: [board.connection], heartbeat: .patient)],
            moreFeatures: { [feature($0)] }
        )
        await server.ready([reader])
        let client = try server.connect()
        var card = PICC.virtual(try phone(entries), radio.technology, frameSizeCode: radio.frameSizeCode)
        card.extensions = radio.extensions
        let end = await Self.answer(client) { board.field.insert(card) }
        #expect(Self.isRead(end, at: reader), "\(String(describing: end))")
        withExtendedLifetime((server, client)) {}
    }

    @Test(
        "a wallet that takes the request with one tap answers with the next one",
        arguments: ["static", "negotiated"],
        [#""longestCommand":255,"longestResponse":256"#, #""longestCommand":65535"#]
    )
    func twoTaps(handover: String, lengths: String) async throws {
        let board = try EmulatedPN532()
        let server = try await TestServer(
            readers: 0,
            backends: [DriverBackend.nfc(devices: [board.connection], heartbeat: .patient)],
            moreFeatures: { [feature($0)] }
        )
        let reader = "pn532_uart:\(board.path)"
        await server.ready([reader])
        let client = try server.connect()
        let card = try phone(#""taps":2,"handover":"\#(handover)",\#(lengths)"#)
        _ = await client.ask(Self.over18, "INSERT_CARD")
        board.field.insert(.virtual(card))
        let asks = try #require(await client.next("INSERT_CARD", "MDOC"))
        #expect(asks["msg"] == .string("INSERT_CARD") && asks["error"] != nil, "\(asks)")
        board.field.remove()
        while let seen = await client.next("READER"), seen["card"] != .null {}
        board.field.insert(.virtual(card))
        let end = await client.next("MDOC")
        #expect(Self.isRead(end, at: reader), "\(String(describing: end))")
        #expect(await card.counters.first { $0.key == "selects" }?.value == .number("2"))
        withExtendedLifetime((server, client)) {}
    }

    /// The commands of the handover are those of the reader of google/identity-credential. Its GET RESPONSE has a
    /// length of data, 0.
    @Test(
        "a foreign reader that takes the usual file, and writes GET RESPONSE in its own way, gets the answer",
        arguments: ["00C00000F3", "00C0000000F3", "00C0000000FEF5", "00C000000000FEF5"]
    )
    func foreignReader(getResponse: String) async throws {
        let card = try phone("")
        func send(_ command: [UInt8]) async throws -> [UInt8] {
            guard case .answer(let answer) = await card.exchange(command) else {
                throw Malformed("the phone has no answer")
            }
            return answer
        }
        for command in ["00A4040007D2760000850101", "00A4000C02E103", "00B000000F", "00A4000C02E104"] {
            #expect(try await send(try #require(Hex.decode(command))).suffix(2) == [0x90, 0x00])
        }
        let length = try await send([0x00, 0xB0, 0x00, 0x00, 0x02])[1]
        let message = Array(try await send([0x00, 0xB0, 0x00, 0x02, length]).dropLast(2))
        let select = try HandoverSelect(message, request: nil)
        var session = try MdocSession(select.engagement, select.handover)
        let request = try MobileDocument.request(ageOver: 18)
            .encoded(for: session.binding, signedBy: nil, signsAll: false)
        let object = BERTLV(0x53, try session.establishment(request)).encoded
        _ = try await send([0x00, 0xA4, 0x04, 0x00, 0x07, 0xA0, 0x00, 0x00, 0x02, 0x48, 0x04, 0x00])
        var answer: [UInt8] = []
        for start in stride(from: 0, to: object.count, by: 243) {
            let part = object[start..<min(start + 243, object.count)]
            let isLast = part.endIndex == object.count
            let header: [UInt8] = [isLast ? 0x00 : 0x10, 0xC3, 0x00, 0x00, UInt8(part.count)]
            answer = try await send(header + part + (isLast ? [0xFD] : []))
        }
        var data = answer.dropLast(2)
        while answer.suffix(2).first == 0x61 {
            answer = try await send(try #require(Hex.decode(getResponse)))
            data += answer.dropLast(2)
        }
        #expect(answer.suffix(2) == [0x90, 0x00])
        let received = try session.read(try BERTLV(Array(data)).value)
        let hasData = received.data != nil
        #expect(hasData)
    }

    @Test("a phone on a borrowed reader proves an age", arguments: entries)
    func borrowed(entries: String) async throws {
        let reader = HeldReader(try phone(entries))
        let stage = try await RemoteStage(
            isPaired: true,
            backends: [reader.backend],
            laptopFeatures: { [feature($0)] },
            desk: { $0.readers = [HeldReader.name] }
        )
        let client = try stage.laptop.connect()
        let end = await Self.answer(client) { reader.insert() }
        let name = "desk \(HeldReader.name) (\(try await stage.deskStore.identity().fingerprint.prefix(8)))"
        #expect(Self.isRead(end, at: name), "\(String(describing: end))")
        await stage.stop()
        withExtendedLifetime(client) {}
    }
}
