// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ChipAccess
import Concurrency
import EID
import EIDFeature
import EService
import ISO7816
import Readers
import Server
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("RUN_AUTH", .timeLimit(.minutes(5)))
struct AuthenticationTests {
    /// Returns a server with `service` as its only service, and a client.
    @Loop static func started(_ service: TestService) async throws -> (server: TestServer, user: ScriptedClient) {
        let server = try await TestServer(service: { _, _ in service })
        return (server, try await ScriptedClient(server))
    }

    static let rights = "ACCESS_RIGHTS Address FamilyName | GivenNames | Address FamilyName GivenNames"
    static let success = "AUTH ok https://dienst.example/back?ResultMajor=ok"
    static let back = "https://dienst.example/back?ResultMajor=error"

    /// The dialogue until the user's consent.
    static let accepted = "> RUN_AUTH\n< AUTH\n< \(rights)\n> ACCEPT"

    /// The dialogue until ENTER_PIN, with the card not inserted at the start.
    static let toPIN = """
        \(accepted)
        < INSERT_CARD
        > SET_CARD
        <~ READER 3
        <~ ENTER_PIN 3
        """

    @Test("the service reads the granted data, and the card is taken out")
    @Loop func happy() async throws {
        let service = TestService()
        let (server, user) = try await Self.started(service)
        try await user.play(Self.toPIN + "\n> SET_PIN 123456\n< READER -\n< \(Self.success)")
        await user.isQuiet()
        let answers = await service.answers
        #expect(answers.map(\.status) == [.ok, .ok])
        // Data groups 5 and 17. TR-03110-4.
        #expect(answers.map { $0.data.first } == [0x65, 0x71])
        #expect(await service.chat?.rights == AccessRights([.readFamilyName, .readGivenNames, .readAddress]))
        #expect(await service.steps == [.request, .eac1, .eac2, .transmit, .transmit, .refresh])
        #expect(!server.isLent())
        for await _ in service.closed.stream {}
    }

    @Test("the terminal's signature may come in an additional round")
    @Loop func additionalRound() async throws {
        let service = TestService { $0.hasAdditionalRound = true }
        let (_, user) = try await Self.started(service)
        try await user.play(Self.toPIN + "\n> SET_PIN 123456\n< READER -\n< \(Self.success)")
        #expect(await service.steps.contains(.challenge))
    }

    @Test("the card refuses data that the user has deselected")
    @Loop func deselected() async throws {
        let service = TestService { plan in
            plan.batches = [[.readBinary(shortFileID: 0x04, le: 256)]]
            plan.acceptableStatusCodes = []
        }
        let (_, user) = try await Self.started(service)
        try await user.play(
            """
            > RUN_AUTH
            < AUTH
            < \(Self.rights)
            > SET_ACCESS_RIGHTS
            < ACCESS_RIGHTS Address FamilyName | GivenNames | Address FamilyName
            > ACCEPT
            < INSERT_CARD
            > SET_CARD
            <~ READER 3
            <~ ENTER_PIN 3
            > SET_PIN 123456
            < READER -
            < \(Self.success)
            """
        )
        #expect(await service.answers.map(\.status) == [StatusWord(0x6982)])
        #expect(await service.chat?.rights == AccessRights([.readFamilyName, .readAddress]))
    }

    @Test("no command is sent to a card before the user's consent")
    @Loop func consent() async throws {
        let readers = try RecordingReaders()
        let server = try await TestServer(readers: 0, backends: [readers], service: { _, _ in TestService() })
        await server.ready(["Simulator"])
        let user = try await ScriptedClient(server)
        try await server.insert(.card())
        try await user.play("< READER 3")
        readers.forget()
        try await user.play("> RUN_AUTH\n< AUTH\n< \(Self.rights)")
        #expect(readers.recorded.isEmpty)
        #expect(!server.isLent())
        try await user.play("> CANCEL\n< AUTH error cancellationByUser User_Cancelled \(Self.back)")
        #expect(readers.recorded.isEmpty)
    }

    @Test("PIN, CAN and PUK are requested as the card needs them, also after a wrong PIN")
    @Loop func ladder() async throws {
        let service = TestService()
        let (server, user) = try await Self.started(service)
        try await server.insert(.card { $0.retryCounter = 2 })
        try await user.play(
            """
            < READER 2
            \(Self.accepted)
            < ENTER_PIN 2
            > SET_PIN 12345
            < ENTER_PIN 2: You must provide 6 digits
            > SET_PIN 000000
            <~ READER 1
            <~ ENTER_CAN 1
            > SET_CAN 500540
            < ENTER_PIN 1
            > SET_PIN 000000
            <~ READER 0
            <~ ENTER_PUK 0
            > SET_PUK 9876543210
            <~ READER 3
            <~ ENTER_PIN 3
            > SET_PIN 123456
            < READER -
            < \(Self.success)
            """
        )
        #expect(await server.cardState()?.judgedPINs == 3)
    }

    @Test("with CAN allowed the CAN opens the card, also with a deactivated or blocked PIN")
    @Loop func canAllowed() async throws {
        for card in [
            VirtualEIDDescription.card(), .card { $0.deactivated = true }, .card { $0.retryCounter = 0 },
        ] {
            let service = TestService { $0.rights = AccessRights(rawValue: 0x3F_FFFF_FFFF) }
            let (server, user) = try await Self.started(service)
            let tries = card.deactivated ? "0 deactivated" : "\(card.retryCounter)"
            try await server.insert(card)
            try await user.play(
                """
                < READER \(tries)
                > RUN_AUTH
                < AUTH
                < ACCESS_RIGHTS Address FamilyName | GivenNames CanAllowed | Address FamilyName GivenNames CanAllowed
                > ACCEPT
                < ENTER_CAN \(tries)
                > SET_CAN 000000
                < ENTER_CAN \(tries)
                > SET_CAN 500540
                < READER -
                < \(Self.success)
                """
            )
            #expect(await server.cardState()?.judgedPINs == 0)
        }
    }

    @Test("with a keypad the PIN is typed at the reader, which forwards the commands of the service")
    @Loop func keypad() async throws {
        let service = TestService()
        let (server, user) = try await Self.started(service)
        try await server.insert(.card { $0.hasKeypad = true })
        try await user.play(
            """
            <~ READER -
            <~ READER 3
            \(Self.accepted)
            < ENTER_PIN 3
            > SET_PIN 123456
            < ENTER_PIN 3: Value cannot be defined
            > SET_PIN
            < READER -
            < \(Self.success)
            """
        )
        #expect(await service.answers.map(\.status) == [.ok, .ok])
    }

    @Test("without CAN allowed a deactivated card is reported, and the workflow waits for another card")
    @Loop func deactivated() async throws {
        let (server, user) = try await Self.started(TestService())
        try await server.insert(.card { $0.deactivated = true })
        try await user.play(
            """
            < READER 0 deactivated
            \(Self.accepted)
            < INSERT_CARD deactivated
            > CANCEL
            < AUTH error cancellationByUser User_Cancelled \(Self.back)
            """
        )
    }

    @Test("a card of a type that the service does not accept is reported")
    @Loop func unacceptedType() async throws {
        let (server, user) = try await Self.started(TestService { $0.eidTypes = [.hwKeyStore] })
        try await server.insert(.card())
        try await user.play(
            """
            < READER 3
            \(Self.accepted)
            < INSERT_CARD unacceptedType
            > CANCEL
            < AUTH error cancellationByUser User_Cancelled \(Self.back)
            """
        )
    }

    /// The failures of the service or the card, with the expected result.
    static let failures: [(String, @Sendable (inout TestService.Plan) -> Void, String)] = [
        (
            "a wrong signature of the terminal", { $0.spoilsSignature = true },
            "noPermission Did_Authenticate_Eac2_Card_Command_Failed"
        ),
        (
            "no chain to the card", { $0.leavesOutVerifier = true },
            "internalError Process_Certificates_From_Eac2_Cvc_Chain_Missing"
        ),
        (
            "commands in the clear", { $0.speaksInTheClear = true },
            "unknownError Transmit_Card_Command_Failed"
        ),
        (
            "a status that the service does not accept", { $0.acceptableStatusCodes = [[0x6A, 0x82]] },
            "unknownError Transmit_Card_Command_Failed"
        ),
        (
            "the server's failure after EAC1",
            { $0.failures[.eac1] = EServiceFailure(.genericSendReceivePAOSUnknown, .unknownMessage) },
            "internalError Generic_Send_Receive_Paos_Unknown"
        ),
        (
            "the server's failure after EAC2",
            { $0.failures[.eac2] = EServiceFailure(.genericSendReceiveServerError, .serverError) },
            "trustedChannelEstablishmentFailed Generic_Send_Receive_Server_Error"
        ),
        (
            "the server's own error at the end",
            {
                $0.failures[.transmit] = EServiceFailure(
                    .startPAOSResponseError,
                    .serverError,
                    serverResult: ECardResult(.error, .parameterError, message: "no", origin: .server)
                )
            },
            "parameterError Start_Paos_Response_Error"
        ),
    ]

    @Test(
        "a failure after the PIN is reported to server and client, and the reader becomes free",
        arguments: failures.indices
    )
    @Loop func failure(index: Int) async throws {
        let (_, change, end) = Self.failures[index]
        let service = TestService(TestService.Plan(change))
        let (server, user) = try await Self.started(service)
        try await user.play(Self.toPIN + "\n> SET_PIN 123456\n< READER -\n< AUTH error \(end) \(Self.back)")
        await user.isQuiet()
        #expect(await service.steps.suffix(2) == [.fail, .refresh])
        #expect(!server.isLent() && server.registry["Simulator"]?.insertion == nil)
        #expect(await server.cardState()?.judgedPINs == 1)
    }

    @Test("an unprotected command never reaches the card")
    @Loop func clear() async throws {
        let readers = try RecordingReaders()
        let service = TestService { plan in
            plan.speaksInTheClear = true
            plan.batches = [[CommandAPDU(0x00, 0x2C, 0x02, 0x03, data: Array("000000".utf8))]]
        }
        let server = try await TestServer(readers: 0, backends: [readers], service: { _, _ in service })
        await server.ready(["Simulator"])
        let user = try await ScriptedClient(server)
        try await user.play(
            Self.toPIN
                + "\n> SET_PIN 123456\n< READER -\n< AUTH error unknownError Transmit_Card_Command_Failed \(Self.back)"
        )
        #expect(!readers.recorded.contains { $0.command.ins == 0x2C })
        #expect(await readers.cardHasPIN(.init("123456".utf8), in: "Simulator"))
    }

    @Test("the longest texts of a service reach the client, each message in one line")
    @Loop func longTexts() async throws {
        func field(_ number: UInt32, _ tag: UInt32, _ content: [UInt8]) -> BERTLV {
            BERTLV(0xA0 | number, [BERTLV(tag, content)])
        }
        func description(_ kind: UInt8, _ terms: [UInt8], _ tag: UInt32) -> [UInt8] {
            let type = BERTLV(0x06, [0x04, 0x00, 0x7F, 0x00, 0x07, 0x03, 0x01, 0x03, 0x01, kind])
            return BERTLV(0x30, [type, field(1, 0x0C, []), field(3, 0x0C, []), field(5, tag, terms)]).encoded
        }
        let length = CertificateDescription.maximumLength - 64
        let label = Array("Geschäftszweck:".utf8)
        let quotes = [UInt8](repeating: UInt8(ascii: "\""), count: length - label.count)
        for bytes in [description(1, label + quotes, 0x0C), description(3, quotes, 0x04)] {
            let info = String(repeating: "\\", count: EAC1Input.maximumInfo)
            let service = TestService { plan in
                plan.transactionInfo = info
                plan.description = bytes
            }
            let server = try await TestServer(service: { _, _ in service })
            let client = try server.connect()
            let run = #"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#
            let rights = try #require(await client.ask(run, "ACCESS_RIGHTS"))
            #expect(rights["transactionInfo"]?.string == info)
            let certificate = try #require(await client.ask(#"{"cmd":"GET_CERTIFICATE"}"#, "CERTIFICATE"))
            #expect(certificate["description"]?["termsOfUsage"]?.string?.isEmpty == false)
            #expect(client.lines.allSatisfy { $0.count <= LineBuffer.maximumLine }, "\(client.lines.map(\.count))")
            #expect(await client.ask(#"{"cmd":"CANCEL"}"#, "AUTH") != nil)
        }
    }

    @Test("the answers to one Transmit are limited to 4 MiB", arguments: [(69, true), (70, false)])
    @Loop func bound(count: Int, isTaken: Bool) async throws {
        let update = CommandAPDU(0x00, 0xD6, 0x80 | 0x11, 0x00, data: [UInt8](repeating: 0x5A, count: 60_000))
        let read = CommandAPDU.readBinary(shortFileID: 0x11, le: CommandAPDU.maximumLe)
        let service = TestService { plan in
            plan.required = AccessRights([.writeAddress, .readAddress])
            plan.optional = nil
            // Each answer is a little longer than the file.
            plan.batches = [[update], Array(repeating: read, count: count)]
        }
        let (server, user) = try await Self.started(service)
        let end = isTaken ? Self.success : "AUTH error internalError Transmit_Card_Command_Failed \(Self.back)"
        try await user.play(
            Self.toPIN.replacing(Self.rights, with: "ACCESS_RIGHTS WriteAddress Address |  | WriteAddress Address")
                + "\n> SET_PIN 123456\n< READER -\n< \(end)"
        )
        // The first batch has one answer; the second batch has all of its answers or none.
        #expect(await service.answers.count == (isTaken ? 1 + count : 1))
        #expect(await service.answers.dropFirst().allSatisfy { $0.data.count == 60_000 })
        #expect(!server.isLent())
    }

    @Test("a failure before the card is needed is reported without a question")
    @Loop func early() async throws {
        let service = TestService {
            $0.failures[.request] = EServiceFailure(.getTcTokenNetworkError, .connection)
            $0.url = nil
        }
        let (_, user) = try await Self.started(service)
        try await user.play(
            "> RUN_AUTH\n< AUTH\n< AUTH error trustedChannelEstablishmentFailed Get_TcToken_Network_Error"
        )
    }

    @Test(
        "no question stays open when the connections have ended, and the card is free",
        arguments: [
            ("> RUN_AUTH\n< AUTH\n< \(rights)", ""), ("\(accepted)\n< INSERT_CARD", ""), (toPIN, "< READER -\n"),
        ]
    )
    @Loop func interrupted(dialogue: String, before: String) async throws {
        let service = TestService()
        let (server, user) = try await Self.started(service)
        try await user.play(dialogue)
        service.interrupted.fill(EServiceFailure(.genericSendReceiveNetworkError, .connection))
        try await user.play(
            "\(before)< AUTH error trustedChannelEstablishmentFailed Generic_Send_Receive_Network_Error \(Self.back)"
        )
        await user.isQuiet()
        #expect(!server.isLent())
    }

    @Test("no question follows a wrong PIN if the connections end while the card checks it")
    @Loop func interruptedByWrongPIN() async throws {
        let service = TestService()
        let readers = try RecordingReaders()
        let server = try await TestServer(readers: 0, backends: [readers], service: { _, _ in service })
        await server.ready(["Simulator"])
        let user = try await ScriptedClient(server)
        try await user.play(Self.toPIN)
        let gate = readers.gate { $1.isToken }
        try await user.play("> SET_PIN 000000")
        await gate.arrival()
        service.interrupted.fill(EServiceFailure(.genericSendReceiveNetworkError, .connection))
        // The workflow knows of the end when the following command is answered.
        await user.isQuiet()
        gate.open()
        try await user.play(
            """
            < READER 2
            < READER -
            < AUTH error trustedChannelEstablishmentFailed Generic_Send_Receive_Network_Error \(Self.back)
            """
        )
        await user.isQuiet()
        #expect(!server.isLent())
        #expect(await readers.cardState(in: "Simulator")?.retryCounter == 2)
    }

    @Test("a missing refresh URL after a success makes the workflow fail")
    @Loop func refresh() async throws {
        let service = TestService {
            $0.failures[.refresh] = EServiceFailure(.checkRefreshAddressEmpty, .refreshAddress)
        }
        let (_, user) = try await Self.started(service)
        try await user.play(
            Self.toPIN + "\n> SET_PIN 123456\n< READER -\n< AUTH error communicationError Check_Refresh_Address_Empty"
        )
    }

    @Test(
        "CANCEL ends the workflow at once while the server is slow",
        arguments: [TestService.Step.request, .eac1, .challenge, .eac2, .transmit]
    )
    @Loop func cancel(at step: TestService.Step) async throws {
        let gate = TestService.Gate()
        let service = TestService { plan in
            plan.gates[step] = gate
            plan.hasAdditionalRound = step == .challenge
        }
        let (server, user) = try await Self.started(service)
        if step == .request {
            try await user.play("> RUN_AUTH\n< AUTH")
        } else {
            try await user.play(Self.toPIN + "\n> SET_PIN 123456")
        }
        await gate.arrival()
        let removed = step == .request ? "" : "< READER -\n"
        try await user.play("> CANCEL\n\(removed)< AUTH error cancellationByUser User_Cancelled \(Self.back)")
        #expect(await service.steps.contains(.fail))
        #expect(!server.isLent())
    }

    @Test(
        "removing the card ends the workflow at once while the server is slow",
        arguments: [TestService.Step.eac1, .eac2, .transmit]
    )
    @Loop func removal(at step: TestService.Step) async throws {
        let gate = TestService.Gate()
        let service = TestService { $0.gates[step] = gate }
        let (server, user) = try await Self.started(service)
        try await user.play(Self.toPIN + "\n> SET_PIN 123456")
        await gate.arrival()
        await server.withdraw()
        try await user.play("< READER -\n< AUTH error cancellationByUser Card_Removed \(Self.back)")
        #expect(!server.isLent())
    }

    @Test("the reader becomes free when the client disconnects at any step", arguments: TestService.Step.allCases)
    @Loop func leaving(at step: TestService.Step) async throws {
        let gate = TestService.Gate()
        let service = TestService { plan in
            plan.gates[step] = gate
            plan.hasAdditionalRound = true
            if step == .fail { plan.failures[.request] = EServiceFailure(.getTcTokenNetworkError, .connection) }
        }
        let (server, user) = try await Self.started(service)
        switch step {
        case .request, .fail: try await user.play("> RUN_AUTH\n< AUTH")
        case .eac1, .challenge, .eac2, .transmit, .refresh: try await user.play(Self.toPIN + "\n> SET_PIN 123456")
        }
        await gate.arrival()
        user.client.close()
        gate.open()
        await server.clients(0)
        #expect(!server.isLent())
        for await _ in service.closed.stream {}
    }

    @Test("STATUS reports each step once and the state ACCESS_RIGHTS, but not at level 1")
    @Loop func status() async throws {
        let server = try await TestServer()
        try await server.insert(.card())
        let client = try server.connect()
        _ = await client.next("READER")
        let run = #"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#
        _ = try #require(await client.ask(run, "ACCESS_RIGHTS"))
        let status = try #require(await client.answer(to: #"{"cmd":"GET_STATUS"}"#))
        #expect(status == (try JSON(#"{"msg":"STATUS","progress":0,"state":"ACCESS_RIGHTS","workflow":"AUTH"}"#.utf8)))
        _ = try #require(await client.ask(#"{"cmd":"ACCEPT"}"#, "ENTER_PIN"))
        await client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
        var progress: [Int] = []
        while let message = await client.next(), message["msg"] != .string("AUTH") {
            if message["msg"] == .string("STATUS") { progress.append(message["progress"]?.int ?? -1) }
        }
        #expect(progress == [0, 20, 40, 60, 80])
    }

    @Test("a failure at the first step reports no progress beyond that step")
    @Loop func progressOfFailure() async throws {
        let service = TestService {
            $0.failures[.request] = EServiceFailure(.getTcTokenNetworkError, .connection)
            $0.url = nil
        }
        let server = try await TestServer(service: { _, _ in service })
        let client = try server.connect()
        await client.send(#"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#)
        var progress: [Int] = []
        while let message = await client.next(), message["result"] == nil {
            if message["msg"] == .string("STATUS") { progress.append(message["progress"]?.int ?? -1) }
        }
        #expect(progress == [0])
    }
}
