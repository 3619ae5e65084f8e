// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import ReadersVirtual
import Server
import TestSupport
import Text
import VirtualEID

/// A cell of the fault matrix: a dialogue with a fault at one command, and the dialogue of the next client.
struct FaultCell: Sendable {
    let dialogue: Dialogue
    let fault: Fault
    /// The index of the faulty command, counted from the insertion of the card.
    let index: Int
    /// The dialogue without the fault.
    let plan: Plan

    /// The commands of a dialogue without a fault.
    struct Plan: Sendable {
        let count: Int
        /// The number of commands that identify the card.
        let identification: Int
        /// The index of the command that sets the new PIN.
        let change: Int?
    }

    /// Runs both dialogues and returns the violations.
    @Loop func run(_ server: TestServer, _ reader: String) async throws -> [String] {
        guard let readers = server.readers else { throw ScriptedClient.Broken() }
        let faults = [VirtualCardFault(afterAPDU: index, action: fault.action)]
        if dialogue.isInsertedBefore {
            let watcher = try server.connect()
            guard try await readers.insert(dialogue.quickCard(faults), into: reader) else {
                throw ScriptedClient.Broken()
            }
            // A fault that removes the card during identification leaves no card to wait for.
            if !(fault.removesCard && index < plan.identification) { await watcher.waitForCard(in: reader) }
            watcher.close()
        }

        var violations: [String] = []
        let user = try PINChangeUser(
            server,
            reader,
            triesAtStart: dialogue.retryCounter,
            truePIN: dialogue.firstPIN,
            newPIN: Dialogue.newPIN,
            card: dialogue.isInsertedBefore ? nil : dialogue.json(fault, at: index)
        ) { [dialogue] in dialogue.mistakes.contains($0) ? Dialogue.wrongPIN : dialogue.firstPIN }
        await user.changePIN()
        violations += user.violations
        let final = user.finals.first
        if user.finals.count != 1 { violations.append("\(user.finals.count) final messages") }
        if await server.cardState(reader)?.faultsLeft != 0 { violations.append("the fault has not happened") }

        let isChanged = await readers.cardHasPIN(Secret(Dialogue.newPIN.utf8), in: reader)
        let isOld = await readers.cardHasPIN(Secret(dialogue.firstPIN.utf8), in: reader)
        if isChanged == isOld { violations.append("the card has neither the old nor the new PIN") }
        violations += judge(final, isChanged: isChanged, user)

        violations += try await changeAgain(server, reader, truePIN: isChanged ? Dialogue.newPIN : dialogue.firstPIN)
        // The first client must not receive a second final message.
        let late = await user.client.exchange().filter { $0["msg"] == .string("CHANGE_PIN") }
        if !late.isEmpty { violations.append("a late final message") }
        violations += leaks(in: user.client)
        user.client.close()
        return violations
    }

    /// Compares the final message with the state of the card and returns the violations.
    @Loop private func judge(
        _ final: (success: Bool, reason: String?)?,
        isChanged: Bool,
        _ user: PINChangeUser
    ) -> [String] {
        guard let final else { return [] }
        var violations: [String] = []
        let hitsChange = index == plan.change
        if final.success, !isChanged { violations.append("success although the PIN is not changed") }
        if final.success, final.reason != nil { violations.append("success with a reason") }
        if !final.success, final.reason == nil { violations.append("failure without a reason") }
        if !final.success, isChanged, !(hitsChange && fault.executes) {
            violations.append("failure although the card confirmed the new PIN")
        }
        if hitsChange, final.success { violations.append("success although the change was not confirmed") }
        if fault.losesCard, !hitsChange, !final.success { violations.append("a lost card ended the workflow") }
        if user.hasGivenUp { violations.append("too many questions") }
        if fault.removesCard, !user.questions.contains("INSERT_CARD"), index < (plan.change ?? 0) {
            violations.append("the card was not requested")
        }
        return violations
    }

    /// Changes the PIN again with another client, which needs a free reader, and returns the violations.
    @Loop private func changeAgain(_ server: TestServer, _ reader: String, truePIN: String) async throws -> [String] {
        let tries = await server.cardState(reader)?.retryCounter ?? -1
        let next = try PINChangeUser(
            server,
            reader,
            triesAtStart: tries,
            truePIN: truePIN,
            newPIN: Dialogue.newerPIN
        ) { _ in truePIN }
        await next.changePIN()
        var violations = next.violations.map { "the next client: \($0)" }
        if next.finals.count != 1 || next.finals.first?.success != true {
            violations.append("the next client: \(next.finals)")
        }
        if next.questions.contains("INSERT_CARD with error") { violations.append("the next client: card not usable") }
        if !(await server.hasPIN(Dialogue.newerPIN, reader)) { violations.append("the next client: PIN not changed") }
        violations += leaks(in: next.client)
        next.client.close()
        return violations
    }

    @Loop private func leaks(in client: TestClient) -> [String] {
        Dialogue.secrets.filter { client.hasReceived($0) }.map { "\($0) stands in a message" }
    }
}

extension TestClient {
    /// Waits until the reader has a card of any type.
    func waitForCard(in reader: String) async {
        while let message = await next("READER") {
            guard message["name"]?.string == reader else { continue }
            if let card = message["card"], card != .null { return }
        }
    }
}
