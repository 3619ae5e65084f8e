// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Concurrency
import Host
import OSDP
import Server
import TestSupport
import Testing
import Text

@testable import CredentialFeature
@testable import badgectl

@Suite("What door panels and readers in the wall say", .timeLimit(.minutes(5)))
@Loop struct DoorPanelTests {
    private static func stage() async throws -> CredentialStage {
        try await CredentialStage(moreFeatures: { _ in [DoorPanels()] })
    }

    private static let start = #"{"cmd":"START_DOOR_PANELS"}"#
    private static let tap =
        #"{"cmd":"REPORT_TAP","reader":"osdp hall","bits":26,"data":"bb032180","format":"wiegand"}"#
    private static let green =
        #""leds":[{"color":"green","otherColor":"black","on":500,"off":400}],"text":["Open"],"outputs":[true]"#

    private static func report(_ members: String, _ panel: String = "front") -> String {
        #"{"cmd":"REPORT_PANEL","panel":"\#(panel)","link":"secure",\#(members)}"#
    }

    @Test("a card at a reader in the wall is a CREDENTIAL that proves nothing, for those who may see it")
    func reportedTap() async throws {
        let stage = try await Self.stage()
        let watcher = try await stage.watcher()
        let reporter = try stage.server.connect(uid: 1001, .report)
        let stranger = try stage.server.connect(uid: 1002, [.readers, .cards])
        #expect(await reporter.ask(Self.tap, "REPORTED")?["number"] == .number("1"))
        let message = try #require(await watcher.next("CREDENTIAL")).withoutPlace
        let expected: JSON = """
            {"msg":"CREDENTIAL","reader":"osdp hall","protocol":"raw","verified":false,"reason":"noProof",\
            "raw":{"bits":26,"data":"bb032180","format":"wiegand"}}
            """
        #expect(message == expected)
        #expect(await stranger.ask(Self.tap, "ACCESS_DENIED") != nil)
        #expect(!stranger.hasReceived("bb0321"))
        #expect(!stage.server.logged.contains { $0.contains("bb0321") })
        // The next tap has the next number, whoever reports it.
        #expect(await reporter.ask(Self.tap, "REPORTED")?["number"] == .number("2"))
    }

    @Test("a tap has the time at which it was read, also when its report comes late", arguments: [0, 25_000, -25_000])
    func timeOfTap(_ age: Int64) async throws {
        let stage = try await Self.stage()
        let watcher = try await stage.watcher()
        let reporter = try stage.server.connect(uid: 1001, .report)
        let (begin, wall) = (Loop.bootClock, Loop.wallClock)
        let uptime = begin - age
        let members = #""reader":"osdp hall","bits":8,"data":"01","format":"wiegand","uptime":\#(uptime)"#
        #expect(await reporter.ask(#"{"cmd":"REPORT_TAP",\#(members)}"#, "REPORTED")?["error"] == nil)
        let message = try #require(await watcher.next("CREDENTIAL"))
        let told = try #require(message["uptime"]?.int)
        let time = try #require(message["time"]?.int)
        // A time that is still to come is now.
        #expect(age < 0 ? (Int(begin)...Int(Loop.bootClock)).contains(told) : told == Int(uptime))
        #expect((Int(wall - max(0, age)) - 1...Int(Loop.wallClock - max(0, age)) + 1).contains(time))
    }

    @Test(
        "a report that is no tap of a reader in the wall is refused, and nobody is told",
        arguments: [
            #""reader":"Simulator","bits":8,"data":"01","format":"wiegand""#,
            #""reader":"osdp hall","bits":0,"data":"","format":"wiegand""#,
            #""reader":"osdp hall","bits":1025,"data":"01","format":"wiegand""#,
            #""reader":"osdp hall","bits":8,"data":"0102","format":"wiegand""#,
            #""reader":"osdp hall","bits":8,"data":"x1","format":"wiegand""#,
            #""reader":"osdp hall","bits":8,"data":"01","format":"verified""#,
        ]
    )
    func wrongTap(_ members: String) async throws {
        let stage = try await Self.stage()
        let watcher = try await stage.watcher()
        let reporter = try stage.server.connect(uid: 1001, .report)
        #expect(await reporter.ask(#"{"cmd":"REPORT_TAP",\#(members)}"#, "REPORTED")?["error"]?.string != nil)
        #expect(await reporter.ask(Self.tap, "REPORTED")?["number"] == .number("1"))
        #expect(await watcher.next("CREDENTIAL")?["number"] == .number("1"))
    }

    @Test("a panel is shown at its change and to those who come later, and a sound only once")
    func panel() async throws {
        let stage = try await Self.stage()
        let early = try stage.server.connect(uid: 1002, .readers)
        #expect(await early.ask(Self.start, "DOOR_PANELS")?["watching"] == .bool(true))
        let reporter = try stage.server.connect(uid: 1001, .report)
        let beep = #","beep":{"on":200,"off":100,"count":2}"#
        #expect(await reporter.ask(Self.report(Self.green + beep), "REPORTED") != nil)
        let shown: JSON = #"{"msg":"DOOR_PANEL","panel":"front","link":"secure",\#(Self.green)\#(beep)}"#
        #expect(await early.next("DOOR_PANEL") == shown)
        let late = try stage.server.connect(uid: 1003, .readers)
        _ = await late.ask(Self.start, "DOOR_PANELS")
        let state: JSON = #"{"msg":"DOOR_PANEL","panel":"front","link":"secure",\#(Self.green)}"#
        #expect(await late.next("DOOR_PANEL") == state)
        // The same state is no news; the next message is about another panel.
        _ = await reporter.ask(Self.report(Self.green), "REPORTED")
        _ = await reporter.ask(Self.report(#""text":[]"#, "back"), "REPORTED")
        #expect(await late.next("DOOR_PANEL")?["panel"] == .string("back"))
    }

    @Test("a panel is closed when its reporter leaves or loses the permission")
    func closed() async throws {
        let stage = try await Self.stage()
        let watcher = try stage.server.connect(uid: 1002, .readers)
        _ = await watcher.ask(Self.start, "DOOR_PANELS")
        let reporter = try stage.server.connect(uid: 1001, .report)
        _ = await reporter.ask(Self.report(Self.green), "REPORTED")
        #expect(await watcher.next("DOOR_PANEL")?["link"] == .string("secure"))
        let other = try stage.server.connect(uid: 1003, .report)
        #expect(
            await other.ask(Self.report(Self.green), "REPORTED")?["error"]
                == .string("another client reports this panel")
        )
        func check() async -> JSON? {
            await watcher.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array?
                .first { $0["name"] == .string("panel front") }
        }
        #expect(await check()?["ok"] == .bool(true))
        reporter.close()
        #expect(await watcher.next("DOOR_PANEL") == #"{"msg":"DOOR_PANEL","panel":"front","link":"closed"}"#)
        // Who comes later, the metrics and the log know it as well.
        let late = try stage.server.connect(uid: 1004, .readers)
        #expect(await late.ask(Self.start, "DOOR_PANELS")?["watching"] == .bool(true))
        #expect(await late.next("DOOR_PANEL") == #"{"msg":"DOOR_PANEL","panel":"front","link":"closed"}"#)
        func panels(_ link: String) async -> JSON? {
            await watcher.ask(#"{"cmd":"GET_METRICS"}"#, "METRICS")?["metrics"]?.array?
                .first { $0["name"] == .string("badged_panels") }?["samples"]?.array?
                .first { $0["labels"]?["link"] == .string(link) }?["value"]
        }
        #expect(await panels("closed") == .number("1"))
        #expect(await panels("secure") == .number("0"))
        #expect(
            stage.server.logged.contains {
                $0.contains("panel 'front' is closed: the program that reported it has gone")
            }
        )
        // The check does not vanish with the program that made it.
        #expect(await check()?["cause"] == .string("the program that reported it has gone"))
        #expect(await other.ask(Self.report(Self.green), "REPORTED")?["error"] == nil)
        #expect(await check()?["ok"] == .bool(true))
    }

    @Test("a panel that is gone is closed, leaves the health of badged, and another client may report it")
    func gone() async throws {
        let stage = try await Self.stage()
        let watcher = try stage.server.connect(uid: 1002, .readers)
        _ = await watcher.ask(Self.start, "DOOR_PANELS")
        let reporter = try stage.server.connect(uid: 1001, .report)
        let stranger = try stage.server.connect(uid: 1003, .report)
        let gone = #"{"cmd":"REPORT_PANEL","panel":"front","link":"closed","gone":true}"#
        // Nobody knows it yet.
        #expect(await reporter.ask(gone, "REPORTED")?["error"] == nil)
        _ = await reporter.ask(Self.report(Self.green), "REPORTED")
        #expect(await watcher.next("DOOR_PANEL")?["link"] == .string("secure"))
        #expect(await stranger.ask(gone, "REPORTED")?["error"] == .string("another client reports this panel"))
        #expect(await reporter.ask(gone, "REPORTED")?["error"] == nil)
        #expect(await watcher.next("DOOR_PANEL") == #"{"msg":"DOOR_PANEL","panel":"front","link":"closed"}"#)
        let checks = try #require(await watcher.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array)
        #expect(!checks.contains { $0["name"] == .string("panel front") })
        #expect(await stranger.ask(Self.report(Self.green), "REPORTED")?["error"] == nil)
    }

    @Test(
        "a report that is no panel is refused",
        arguments: [
            #""leds":[{"color":1}]"#, #""leds":[{"color":"green","otherColor":"black"}]"#, #""leds":5"#,
            #""text":["123456789012345678901234567890123"]"#, #""text":["\u001b[2J"]"#, #""text":["a\u202eb"]"#,
            #""text":["T\u00fcr"]"#, #""text":["a\u0000b"]"#, #""text":["a\u007f"]"#, #""text":["a\nb"]"#,
            #""leds":[{"color":"\u001b"}]"#, #""leds":[{"color":"pink"}]"#,
            #""leds":[{"color":"red","otherColor":"\u202e","on":1,"off":1}]"#, #""outputs":["on"]"#,
            #""beep":{"on":1}"#,
            #""beep":{"on":1,"off":-1,"count":0}"#, #""confirmed":-1"#, #""text":["","","","","","","","",""]"#,
        ]
    )
    func wrongPanel(_ members: String) async throws {
        let stage = try await Self.stage()
        let reporter = try stage.server.connect(uid: 1001, .report)
        #expect(await reporter.ask(Self.report(members), "REPORTED")?["error"]?.string != nil)
    }

    @Test(
        "a name with more than printable ASCII is refused, so nobody is shown control characters",
        arguments: [#"\u001b[2J"#, #"a\u202eb"#, #"T\u00fcr"#, #"a\u200bb"#, "", #"a\u0000"#, #"a\u007f"#, #"a\nb"#]
    )
    func wrongName(_ name: String) async throws {
        let stage = try await Self.stage()
        let reporter = try stage.server.connect(uid: 1001, .report)
        #expect(await reporter.ask(Self.report(#""text":[]"#, name), "REPORTED")?["error"]?.string != nil)
        let tap = Self.tap.replacing("osdp hall", with: "osdp \(name)")
        #expect(await reporter.ask(tap, "REPORTED")?["error"]?.string != nil)
        #expect(await reporter.ask(Self.report(#""text":[]"#, "A-1_b.c"), "REPORTED")?["error"] == nil)
    }

    @Test("health and metrics say which panel is silent")
    func health() async throws {
        let stage = try await Self.stage()
        let reporter = try stage.server.connect(uid: 1001, [.report, .readers])
        _ = await reporter.ask(Self.report(#""confirmed":3,"dropped":1,"faults":7"#), "REPORTED")
        let silent = #"{"cmd":"REPORT_PANEL","panel":"back","link":"silent"}"#
        _ = await reporter.ask(silent, "REPORTED")
        _ = await reporter.ask(#"{"cmd":"REPORT_PANEL","panel":"side","link":"refused"}"#, "REPORTED")
        let checks = try #require(await reporter.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array)
        #expect(checks.first { $0["name"] == .string("panel front") }?["ok"] == .bool(true))
        #expect(checks.first { $0["name"] == .string("panel back") }?["cause"] == .string("the other side is silent"))
        let refused = checks.first { $0["name"] == .string("panel side") }
        #expect(refused?["cause"] == .string("it opens no secure channel, and gets no card"))
        let metrics = try #require(await reporter.ask(#"{"cmd":"GET_METRICS"}"#, "METRICS")?["metrics"]?.array)
        let cards = metrics.first { $0["name"] == .string("badged_panel_cards_total") }?["samples"]?.array
        #expect(cards?.map { $0["value"] } == [.number("3"), .number("1"), .number("0")])
    }

    @Test("the client library reads both messages")
    func clientLibrary() throws {
        func message(_ line: String) throws -> any ServerMessage {
            try Array(line.utf8).withUnsafeBytes { try Event($0) }.message
        }
        let raw = try message(
            #"{"msg":"CREDENTIAL","reader":"osdp hall","protocol":"raw","verified":false,"reason":"noProof","#
                + #""raw":{"bits":26,"data":"bb032180","format":"wiegand"}}"#
        )
        let credential = try #require(raw as? Credential)
        #expect(credential.raw == .init(bits: 26, data: [0xBB, 0x03, 0x21, 0x80], format: "wiegand"))
        #expect(CredentialsCommand.line(credential) == "osdp hall: 26 bits bb032180, proves nothing")
        let shown = try #require(
            try message(#"{"msg":"DOOR_PANEL","panel":"front","link":"secure",\#(Self.green)}"#) as? DoorPanel
        )
        #expect(shown.leds.map(\.color) == ["green"] && shown.leds.first?.on == 500 && shown.beep == nil)
        #expect(shown.text == ["Open"] && shown.outputs == [true])
    }

    @Test("badgectl shows the number that a panel would get, or why it gets none")
    func shownNumbers() throws {
        func line(_ members: String, _ format: String) throws -> String {
            let text = #"{"msg":"CREDENTIAL","reader":"Desk",\#(members)}"#
            let message = try Array(text.utf8).withUnsafeBytes { try Event($0) }.message
            let words = format.split(separator: " ").map(String.init)
            return CredentialsCommand.line(
                try #require(message as? Credential),
                as: try CardFormat(words: words),
                named: format
            )
        }
        let tag =
            #""protocol":"tag","verified":false,"reason":"noProof","tag":{"uid":"04760643","type":"mifareClassic1K"}"#
        #expect(try line(tag, "h10301") == "Desk: h10301, 26 bits: bb032180")
        #expect(try line(tag, "key64") == "Desk: no number as key64: it has shown no key")
        let failed = #""protocol":"pkoc-se1","verified":false,"reason":"wrongSignature""#
        #expect(try line(failed, "key64") == "Desk: no credential, wrong signature, pkoc-se1")
    }
}
