// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import ISO7816
import Readers
import ReadersRemote
import ReadersVirtual
import RemoteDevices
import RemoteFeature
import TestSupport
import Testing
import Text
import VirtualEID

/// The connection between two hosts is cut before each message of a dialogue, in turn. `make test` tries each third one.
@Suite(.timeLimit(.minutes(15))) @Loop struct CutLinkTests {
    enum Dialogue: String, CaseIterable, Sendable {
        /// The user types a wrong PIN, then the right one.
        case changeWithPINHere
        /// The reader of the desk has a keypad.
        case changeWithPINThere
        case authentication
    }

    private static let (old, new, wrong) = ("123456", "654321", "000000")
    /// The results after which the card may have changed the PIN, because its answer was lost.
    private static let uncertain: Set<String> = ["Change_Pin_No_SetEidPinCommand_Response"]

    @Test("A cut link before any message costs no try of the card", arguments: Dialogue.allCases)
    func matrix(_ dialogue: Dialogue) async throws {
        let cable = try Cable()
        let stage = try await RemoteStage.paired(cable: cable)
        let whole = try await run(dialogue, stage, cable, cutBefore: nil)
        #expect(whole.final.isSuccess, "\(whole)")
        #expect(whole.messages > 10)
        var outcomes: [String: Int] = [:]
        for index in stride(from: 0, to: whole.messages, by: FullTables.areWanted ? 1 : 3) {
            let cell = try await run(dialogue, stage, cable, cutBefore: index)
            #expect(cell.wasCut, "\(dialogue), \(index)")
            #expect(cell.violations.isEmpty, "\(dialogue), cut before message \(index): \(cell)")
            outcomes[cell.final.name, default: 0] += 1
        }
        let cells = outcomes.values.reduce(0, +)
        // A PIN change begins again after a cut before its last answer, an authentication after a cut before the
        // service has data of the card.
        let begunAgain = dialogue == .authentication ? cells / 3 : cells - 3
        #expect(outcomes["success", default: 0] >= begunAgain, "\(outcomes)")
        await stage.stop()
    }

    @Test("A device that leaves while its card does not answer makes room for the next one, which gets the card")
    func leavesMuteCard() async throws {
        let card = try VirtualCard()
        let isSent = OneShot<Void>()
        let backend = ScriptedReaders { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                // GET CHALLENGE, which does not identify a card.
                guard command.ins == 0x84 else { return try await card.answer(command) }
                isSent.fill(())
                // As a connection to pcscd, which gives up some seconds after its task was cancelled.
                await OneShot<Void>().value(whenCancelled: ())
                throw .cancelled
            } disconnect: { reset in
                if reset { await card.reset() }
            }
        }
        backend.add(ReaderDescription(name: "Desk"))
        let cable = try Cable()
        let stage = try await RemoteStage(
            isPaired: true,
            cable: cable,
            backends: [backend],
            desk: { $0.readers = ["Desk"] }
        )
        try await stage.insertWithoutLaptop(cable, into: "Desk") { backend.insert(into: "Desk") }
        let first = try await RawBorrower(stage, cable)
        try await first.hold("Desk")
        first.send(.transmit(handle: first.handle, apdu: [0x00, 0x84, 0x00, 0x00, 0x08]), first.context)
        await isSent.value
        first.link.close()
        // The desk announces itself while no device is connected.
        await cable.nextAnnouncement()
        let next = try await RawBorrower(stage, cable)
        try await next.hold("Desk")
        await stage.stop()
    }

    @Test("A badged-remote that is killed is started again: the card is shared again, and the port is open again")
    func killed() async throws {
        let stage = try await RemoteStage.paired()
        func kill(_ driver: RemoteDriver) async throws {
            await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
            let process = try #require(driver.process)
            Glibc.kill(process, SIGKILL)
            await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }
            try await until { driver.process.map { $0 != process } ?? false }
        }
        try await kill(stage.sharing.driver)
        try await kill(stage.lenders.driver)
        // The laptop has another port now, because the tests leave the choice to the kernel.
        await stage.changes.wait { stage.lenders.port != 0 }
        await stage.stop()
    }

    private struct Final {
        var isSuccess = false
        /// `success`, or the reason of a failure.
        var name = "none"
    }

    private struct Cell {
        var final = Final()
        var violations: [String] = []
        var messages = 0
        var wasCut = false
    }

    private func run(
        _ dialogue: Dialogue,
        _ stage: RemoteStage,
        _ cable: Cable,
        cutBefore index: Int?
    ) async throws -> Cell {
        await stage.desk.withdraw()
        try await stage.seesCard(false)
        var card: VirtualEIDDescription = dialogue == .authentication ? .card() : .quick()
        card.hasKeypad = dialogue == .changeWithPINThere
        try await stage.desk.insert(card)
        try await stage.seesCard()
        let client = try stage.laptop.connect()
        cable.cut(before: index)
        var cell = Cell()
        await client.send(
            dialogue == .authentication
                ? #"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/"}"#
                : #"{"cmd":"RUN_CHANGE_PIN","handleInterrupt":false}"#
        )
        var typed: [String] = []
        while cell.final.name == "none", let message = await client.next() {
            try await answer(message, dialogue, stage, client, &cell, &typed)
        }
        (cell.messages, cell.wasCut) = (cable.messages, cable.wasCut)
        cable.cut(before: nil)
        await check(dialogue, stage, typed, &cell)
        client.close()
        return cell
    }

    private func answer(
        _ message: JSON,
        _ dialogue: Dialogue,
        _ stage: RemoteStage,
        _ client: TestClient,
        _ cell: inout Cell,
        _ typed: inout [String]
    ) async throws {
        switch message["msg"]?.string {
        case "ENTER_PIN":
            await checkTries(stage, typed, &cell)
            guard typed.count < 8 else {
                cell.violations.append("the PIN is asked again and again")
                return await client.send(#"{"cmd":"CANCEL"}"#)
            }
            guard dialogue != .changeWithPINThere else {
                typed.append(Self.old)
                return await client.send(#"{"cmd":"SET_PIN"}"#)
            }
            let isChanged = await hasPIN(Self.new, stage)
            let isFirst = typed.isEmpty && dialogue == .changeWithPINHere
            typed.append(isFirst ? Self.wrong : isChanged ? Self.new : Self.old)
            await client.send(#"{"cmd":"SET_PIN","value":"\#(typed.last ?? "")"}"#)
        case "ENTER_NEW_PIN":
            let value = dialogue == .changeWithPINThere ? "" : #","value":"\#(Self.new)""#
            await client.send(#"{"cmd":"SET_NEW_PIN"\#(value)}"#)
        case "ENTER_CAN", "ENTER_PUK":
            cell.violations.append("\(message)")
            await client.send(#"{"cmd":"CANCEL"}"#)
        case "ACCESS_RIGHTS": await client.send(#"{"cmd":"ACCEPT"}"#)
        case "CHANGE_PIN":
            guard let success = message["success"]?.bool else { return }
            cell.final = Final(isSuccess: success, name: success ? "success" : message["reason"]?.string ?? "no reason")
        case "AUTH":
            guard let major = message["result"]?["major"]?.string else { return }
            let success = major.hasSuffix("#ok")
            cell.final = Final(
                isSuccess: success,
                name: success ? "success" : message["result"]?["reason"]?.string ?? "no reason"
            )
        default: break
        }
    }

    private func hasPIN(_ pin: String, _ stage: RemoteStage) async -> Bool {
        await stage.desk.readers?.cardHasPIN(Secret(pin.utf8), in: "Simulator") ?? false
    }

    /// Checks that the card has verified each typed PIN at most once.
    private func checkTries(_ stage: RemoteStage, _ typed: [String], _ cell: inout Cell) async {
        guard let card = await stage.desk.readers?.cardState(in: "Simulator") else {
            return cell.violations.append("no card")
        }
        if card.judgedPINs > typed.count { cell.violations.append("\(card.judgedPINs) PINs of \(typed.count) judged") }
        let least = 3 - typed.count { $0 == Self.wrong }
        if card.retryCounter < least { cell.violations.append("\(card.retryCounter) tries instead of \(least)") }
    }

    private func check(_ dialogue: Dialogue, _ stage: RemoteStage, _ typed: [String], _ cell: inout Cell) async {
        await checkTries(stage, typed, &cell)
        guard let card = await stage.desk.readers?.cardState(in: "Simulator") else {
            return cell.violations.append("no card")
        }
        // The right PIN was typed last, and after it the card has three tries.
        if card.retryCounter != 3 { cell.violations.append("\(card.retryCounter) tries at the end") }
        guard dialogue != .authentication else {
            if !cell.final.isSuccess, cell.final.name != "Card_Removed" { cell.violations.append(cell.final.name) }
            return
        }
        if !cell.final.isSuccess, !Self.uncertain.contains(cell.final.name) { cell.violations.append(cell.final.name) }
        if cell.final.isSuccess, dialogue == .changeWithPINHere, await !hasPIN(Self.new, stage) {
            cell.violations.append("the PIN has not changed")
        }
    }
}
