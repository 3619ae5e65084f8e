// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Server
import TestSupport
import Testing
import Text
import Wire

/// The feature of the sample in CONTRIBUTING.md. Tests/System/samples.sh compares the lines.
@Loop private final class SampleFeature: Feature {
    let commands = [
        CommandSpec("GET_UPTIME", level: .two, permission: .readers) { session, command in
            guard session.workflow == nil else { return .badState }
            session.answer(UptimeMessage(seconds: 60), to: command)
            return .answered
        }
    ]
}

/// The answer to GET_UPTIME.
struct UptimeMessage: Message {
    static let name: StaticString = "UPTIME"
    let seconds: Int

    func write(to object: inout JSONWriter, _ level: APILevel) { object.member("seconds", seconds) }
}

@Suite("The sample command of CONTRIBUTING.md", .timeLimit(.minutes(5)))
@Loop struct SampleCommandTests {
    @Test("the command answers, and badged checks state, level and permission")
    func sample() async throws {
        let server = try await TestServer(moreFeatures: { _ in [SampleFeature()] })
        let client = try server.connect()
        let uptime = await client.ask(#"{"cmd":"GET_UPTIME","request":1}"#, "UPTIME")
        #expect(uptime == #"{"msg":"UPTIME","request":1,"seconds":60}"#)
        _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        #expect(await client.ask(#"{"cmd":"GET_UPTIME"}"#, "BAD_STATE")?["error"] == .string("GET_UPTIME"))
        let old = try server.connect()
        _ = await old.ask(#"{"cmd":"SET_API_LEVEL","level":1}"#, "API_LEVEL")
        #expect(await old.ask(#"{"cmd":"GET_UPTIME"}"#, "UNKNOWN_COMMAND") != nil)
        let other = try await TestServer(permissions: [.cards], moreFeatures: { _ in [SampleFeature()] })
        let denied = await (try other.connect()).ask(#"{"cmd":"GET_UPTIME"}"#, "ACCESS_DENIED")
        #expect(denied?["error"] == .string("GET_UPTIME"))
    }
}
