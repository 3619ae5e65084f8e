// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import ReadersVirtual
import Secrets
import TestSupport
import Text
import Wire

/// One cell of the fault matrix: a dialogue in which one command goes wrong, and the dialogue after it.
struct FaultCell: Sendable {
    let dialogue: Dialogue
    let fault: Fault
    /// The command that it hits, counted from the insertion of the card.
    let index: Int
    /// What the dialogue is without the fault.
    let plan: Plan

    /// A dialogue without a fault.
    struct Plan: Sendable {
        /// One letter for each command that the card sees.
        let commands: [Character]
        let questions: [String]
        /// Commands by which the card is identified.
        let identification: Int

        /// The command that sets the new PIN.
        var change: Int? { commands.lastIndex(of: "C") }
    }

    enum Outcome: Character, CaseIterable, Sendable {
        case unnoticed = "="
        case askedAgain = "a"
        case failed = "f"
        case failedButChanged = "L"
        case gaveUp = "v"
        case violated = "!"

        var meaning: String {
            switch self {
            case .unnoticed: "success, the client notices nothing"
            case .askedAgain: "the client is asked again, then success"
            case .failed: "success:false with a reason, PIN unchanged"
            case .failedButChanged: "success:false with a reason, the answer to the change is lost: PIN changed"
            case .gaveUp: "asked in vain, CANCEL"
            case .violated: "a rule is broken"
            }
        }
    }

    struct Result: Sendable {
        let cell: FaultCell
        let outcome: Outcome
        let reason: String?
        let violations: [String]
    }

    @Loop func run(_ server: TestServer, _ reader: String) async throws -> Result {
        guard let readers = server.readers else { throw Scene.Broken() }
        let faults = [VirtualCardDescription.Fault(afterAPDU: index, action: fault.action)]
        if dialogue.isInsertedBefore {
            let watcher = try server.connect()
            try await readers.insert(dialogue.quickCard(faults), into: reader)
            // Otherwise nobody ever sees the card before it is gone.
            if !(fault.removesCard && index < plan.identification) { await watcher.waitForCard(in: reader) }
            watcher.close()
        }

        var violations: [String] = []
        let user = try HonestUser(
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
        // Still nothing more for the first client.
        let late = await user.client.exchange().filter { $0["msg"] == .string("CHANGE_PIN") }
        if !late.isEmpty { violations.append("a late final message") }
        violations += leaks(in: user.client)
        user.client.close()
        return Result(
            cell: self,
            outcome: outcome(final, isChanged: isChanged, user, violations),
            reason: final?.reason,
            violations: violations
        )
    }

    /// What the client is told must be what happened.
    @Loop private func judge(
        _ final: (success: Bool, reason: String?)?,
        isChanged: Bool,
        _ user: HonestUser
    ) -> [String] {
        guard let final else { return [] }
        var violations: [String] = []
        let hitsChange = index == plan.change
        if final.success, !isChanged { violations.append("success although the PIN is not changed") }
        if final.success, final.reason != nil { violations.append("success with a reason") }
        if !final.success, final.reason == nil { violations.append("failure without a reason") }
        if !final.success, isChanged, !(hitsChange && fault.executes) {
            violations.append("failure although the card said that the PIN is changed")
        }
        if hitsChange, final.success { violations.append("success although the change was not confirmed") }
        if fault.losesCard, !hitsChange, !final.success { violations.append("a lost card ended the workflow") }
        if user.hasGivenUp { violations.append("asked in vain") }
        if fault.removesCard, !user.questions.contains("INSERT_CARD"), index < (plan.change ?? 0) {
            violations.append("the card was not asked for")
        }
        return violations
    }

    /// The reader is usable at once, by somebody else, with the PIN that the card has.
    @Loop private func changeAgain(_ server: TestServer, _ reader: String, truePIN: String) async throws -> [String] {
        let tries = await server.cardState(reader)?.retryCounter ?? -1
        let next = try HonestUser(
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
        Dialogue.secrets.filter { client.hasHeard($0) }.map { "\($0) stands in a message" }
    }

    @Loop private func outcome(
        _ final: (success: Bool, reason: String?)?,
        isChanged: Bool,
        _ user: HonestUser,
        _ violations: [String]
    ) -> Outcome {
        guard violations.isEmpty, let final else { return .violated }
        if user.hasGivenUp { return .gaveUp }
        if !final.success { return isChanged ? .failedButChanged : .failed }
        return user.questions == plan.questions ? .unnoticed : .askedAgain
    }
}

extension TestClient {
    /// Returns when a card is seen in the reader, of whatever kind.
    func waitForCard(in reader: String) async {
        while let message = await next("READER") {
            guard message["name"]?.string == reader else { continue }
            if let card = message["card"], card != .null { return }
        }
    }
}
