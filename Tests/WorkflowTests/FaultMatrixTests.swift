// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import ISO7816
import Readers
import TestSupport
import Testing

/// Tests every fault at every command of every dialogue; without `FullTables.areWanted`, each pair of dialogue, fault and
/// index.
@Suite("Fault matrix", .timeLimit(.minutes(15)))
struct FaultMatrixTests {
    /// The number of cells that run in parallel. Each has its own server; with one server each client would receive the
    /// READER messages of all cells.
    private static let workers = 4

    @Test("every fault at every command gives correct messages and costs no try")
    @Loop func matrix() async throws {
        var servers: [TestServer] = []
        for _ in 0..<Self.workers { servers.append(try await TestServer.started(readers: ["Simulator"])) }
        var cells: [FaultCell] = []
        for dialogue in Dialogue.all {
            let plan = try await Self.plan(dialogue)
            for fault in Fault.allCases {
                for index in plan.commands.indices {
                    cells.append(FaultCell(dialogue: dialogue, fault: fault, index: index, plan: plan))
                }
            }
        }
        #expect(cells.count > 500)
        cells = FullTables.rows(of: cells) { [$0.dialogue.name, $0.fault.rawValue, "\($0.index)"] }

        let start = ContinuousClock.now
        let queue = Queue(cells)
        let workers = servers.map { server in Task { @Loop in try await queue.work(server, "Simulator") } }
        try await withTaskCancellationHandler {
            for worker in workers { try await worker.value }
        } onCancel: {
            for worker in workers { worker.cancel() }
        }
        let table = FaultTable(queue.results)
        print(table.text)
        print("\(cells.count) cells in \(ContinuousClock.now - start), \(clock() / CLOCKS_PER_SEC) s of processor time")

        for result in queue.results where !result.violations.isEmpty {
            let cell = result.cell
            Issue.record(
                "\(cell.dialogue.name), \(cell.fault.rawValue) at \(cell.index): \(result.violations.joined(separator: "; "))"
            )
        }
        #expect(queue.results.count == cells.count)
        for line in servers.flatMap(\.logged) { #expect(Dialogue.secrets.allSatisfy { !line.contains($0) }, "\(line)") }
    }

    @Loop private final class Queue {
        var cells: ArraySlice<FaultCell>
        var results: [FaultCell.Result] = []

        init(_ cells: [FaultCell]) { self.cells = cells[...] }

        func work(_ server: TestServer, _ reader: String) async throws {
            while !Task.isCancelled, let cell = cells.popFirst() { results.append(try await cell.run(server, reader)) }
        }
    }

    /// Runs a dialogue without a fault and records the commands to the card.
    @Loop private static func plan(_ dialogue: Dialogue) async throws -> FaultCell.Plan {
        let recorder = try RecordingReaders()
        let server = try await TestServer.started(recorder)
        let watcher = try server.connect()
        #expect(try await recorder.insert(dialogue.quickCard(), into: "Simulator"))
        await watcher.waitForCard(in: "Simulator")
        let identification = recorder.recorded.count
        if !dialogue.isInsertedBefore {
            await recorder.removeCard(from: "Simulator")
            recorder.forget()
        }
        let user = try PINChangeUser(
            server,
            "Simulator",
            triesAtStart: dialogue.retryCounter,
            truePIN: dialogue.firstPIN,
            newPIN: Dialogue.newPIN
        ) { dialogue.mistakes.contains($0) ? Dialogue.wrongPIN : dialogue.firstPIN }
        await user.changePIN()
        #expect(user.finals.map(\.success) == [true])
        #expect(user.client.hasReceived(#""success":true"#))
        return FaultCell.Plan(
            commands: recorder.recorded.map { letter($0.command) },
            questions: user.questions,
            identification: identification
        )
    }

    /// Returns the letter of a command; `FaultTable` explains the letters.
    private static func letter(_ command: CommandAPDU) -> Character {
        switch (command.ins, command.p1) {
        case (0xA4, _): "S"
        case (0xB0, _): "R"
        case (0x22, _): command.endsChannel ? "E" : "M"
        case (0x86, _): command.isToken ? "T" : "P"
        case (0x2C, 0x03): "U"
        case (0x2C, _): "C"
        default: "?"
        }
    }
}

/// Formats the matrix as text.
private struct FaultTable {
    let results: [FaultCell.Result]

    init(_ results: [FaultCell.Result]) { self.results = results }

    var text: String {
        var lines = [
            "",
            "Fault matrix: the result of a fault at each command. The first line of a block shows the commands.",
            "  S select  R read  M MSE:Set AT  P step of PACE  T last step, which verifies the password",
            "  E end of a channel  U unblock with the PUK  C new PIN",
            "  .  not run; make test-all runs all cells",
        ]
        for outcome in FaultCell.Outcome.allCases { lines.append("  \(outcome.rawValue)  \(outcome.meaning)") }
        for dialogue in Dialogue.all {
            let own = results.filter { $0.cell.dialogue.name == dialogue.name }
            guard let plan = own.first?.cell.plan else { continue }
            lines.append("")
            lines.append(dialogue.name)
            lines.append("  " + padded("") + String(plan.commands))
            for fault in Fault.allCases {
                let row = Dictionary(grouping: own.filter { $0.cell.fault == fault }, by: \.cell.index)
                let outcomes = plan.commands.indices.map { row[$0]?.first?.outcome.rawValue ?? "." }
                lines.append("  " + padded(fault.rawValue) + String(outcomes))
            }
        }
        lines.append("")
        for outcome in FaultCell.Outcome.allCases {
            lines.append("\(results.count { $0.outcome == outcome }) \(outcome.meaning)")
        }
        let reasons = Dictionary(grouping: results.compactMap(\.reason)) { $0 }
        for (reason, all) in reasons.sorted(by: { $0.key < $1.key }) { lines.append("  \(all.count) \(reason)") }
        return lines.joined(separator: "\n")
    }

    private func padded(_ text: String) -> String {
        text + String(repeating: " ", count: max(1, 13 - text.count))
    }
}
