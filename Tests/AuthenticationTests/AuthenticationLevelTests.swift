// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import EIDServer
import Server
import Synchronization
import TestSupport
import Testing
import Text

/// Workflows of BadgedClient at each API level, against the program badged and an eID-Server.
@Suite("BadgedClient at each API level", .timeLimit(.minutes(5)))
struct LevelTests {
    /// Answers all questions, and collects the percentages of STATUS.
    private struct CardHolder: EIDUser {
        let badged: DaemonConnection
        let level: Int
        let progress = Progress()

        final class Progress: Sendable {
            let percentages = Mutex<[Int]>([])
        }

        func answer(_ question: SecretQuestion) async -> SecretBox? {
            let digits = question.kind == .newPIN ? "654321" : "123456"
            return SecretBox(Secret(digits.utf8))
        }

        func agree(to request: ConsentRequest) async -> [String]? { ["GivenNames"] }

        func insertCard(error: String?, reader: String?) async {
            if level < 2 { try? await badged.setAPILevel(2) }
            _ = try? await badged.setCard(in: "Simulator")
            if level < 2 { try? await badged.setAPILevel(level) }
        }

        func progress(_ percent: Int) async { progress.percentages.withLock { $0.append(percent) } }
    }

    @Test("BadgedClient changes a PIN and authenticates", arguments: [1, 2, 3])
    func client(level: Int) async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let badged = try await DaemonConnection.connect(to: daemon.path)
        try await badged.setAPILevel(level)
        #expect(try await badged.readers().map(\.name) == ["Simulator"])
        if level == 1 {
            await #expect(throws: ClientError.unknownCommand("GET_STATUS")) { try await badged.status() }
        } else {
            #expect(try await badged.status() == WorkflowStatus())
        }
        let url = try eidServer.tcTokenURL(["required": "FamilyName", "optional": "GivenNames,Address"])
        let authenticating = CardHolder(badged: badged, level: level)
        let result = try await badged.authenticate(tcTokenURL: url, user: authenticating)
        #expect(result.isSuccess, "\(result)")
        #expect(eidServer.report()?["outcome"] == .string("ok"))
        let percentages = authenticating.progress.percentages.withLock { $0 }
        #expect(percentages.suffix(4) == (level == 1 ? [] : [20, 40, 60, 80]))
        let changing = CardHolder(badged: badged, level: level)
        #expect(try await badged.changePIN(user: changing).success)
        // Both runs of PACE have the same percentage.
        #expect(changing.progress.percentages.withLock { $0 } == (level == 1 ? [] : [0]))
        #expect(try await badged.apiLevels().current == level)
    }
}
