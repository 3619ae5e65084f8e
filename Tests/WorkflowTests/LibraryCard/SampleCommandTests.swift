// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Server
import TestSupport
import Testing
import Text

/// The feature of the sample in CONTRIBUTING.md. Tests/System/samples.sh compares the lines.
@Loop private final class SampleFeature: Feature {
    var commands: [CommandSpec] {
        [CommandSpec("GET_UPTIME", "UPTIME", permission: .readers, isForIdle: true, uptime)]
    }

    private func uptime(_ call: Call) -> Reply {
        call.reply { $0.member("seconds", 60) }
    }
}

@Suite("The sample command of CONTRIBUTING.md", .timeLimit(.minutes(5)))
@Loop struct SampleCommandTests {
    @Test("the command answers, and badged checks state and permission")
    func sample() async throws {
        let server = try await TestServer(moreFeatures: { _ in [SampleFeature()] })
        let client = try server.connect()
        let uptime = await client.ask(#"{"cmd":"GET_UPTIME","request":1}"#, "UPTIME")
        #expect(uptime == #"{"msg":"UPTIME","request":1,"seconds":60}"#)
        _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        #expect(await client.ask(#"{"cmd":"GET_UPTIME"}"#, "BAD_STATE")?["error"] == .string("GET_UPTIME"))
        let other = try await TestServer(permissions: [.cards], moreFeatures: { _ in [SampleFeature()] })
        let denied = await (try other.connect()).ask(#"{"cmd":"GET_UPTIME"}"#, "ACCESS_DENIED")
        #expect(denied?["error"] == .string("GET_UPTIME"))
    }
}
