// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import TestSupport
import Testing

/// Tests every fault at every command of every dialogue; without `FullTables.areWanted`, each pair of dialogue, fault and
/// index.
@Suite("Fault matrix", .timeLimit(.minutes(15)))
struct FaultMatrixTests {
    @Test("every fault at every command gives correct messages and costs no try")
    @Loop func matrix() async throws {
        var cells: [FaultCell] = []
        for dialogue in Dialogue.all {
            let plan = try await Self.plan(dialogue)
            for fault in Fault.allCases {
                for index in 0..<plan.count {
                    cells.append(FaultCell(dialogue: dialogue, fault: fault, index: index, plan: plan))
                }
            }
        }
        #expect(cells.count > 500)
        cells = FullTables.rows(of: cells) { [$0.dialogue.name, $0.fault.rawValue, "\($0.index)"] }
        try await sweep(cells) {
            try await TestServer.started()
        } run: { cell, server in
            let violations = try await cell.run(server, "Simulator")
            #expect(violations == [], "\(cell.dialogue.name), \(cell.fault.rawValue) at \(cell.index)")
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
        let commands = recorder.recorded.map(\.command)
        return FaultCell.Plan(
            count: commands.count,
            identification: identification,
            change: commands.lastIndex { $0.ins == 0x2C && $0.p1 != 0x03 }
        )
    }
}
