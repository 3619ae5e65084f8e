// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text

@testable import badgectl

private let info =
    #"{"VersionInfo":{"Implementation-Version":"7.1","Name":"badged"},"badged":{"drivers":["pcsc"],"#
    + #""permissions":["readers","cards"],"protocol":1,"scanners":["mgmt"]},"msg":"INFO"}"#
private let health =
    #"{"checks":[{"name":"pcscd","ok":true},{"cause":"it ended","advice":"plug in","name":"x","ok":false}],"msg":"HEALTH"}"#
private let metrics =
    #"{"metrics":[{"help":"H","name":"badged_cards","samples":[{"labels":{"kind":"eid"},"value":2}],"type":"gauge"}],"#
    + #""msg":"METRICS"}"#
private let recording = #"badged-recording 1\natr 3b00\nkind eid\n> 00a40400\n< 9000\nend\n"#

/// `badgectl report`: the file that a person reads before giving it away.
@Suite("badgectl: report", .timeLimit(.minutes(5))) struct ReportTests {
    /// Answers each command by its name, in whatever order they come.
    private static func peer(_ others: [String: String] = [:]) throws -> ScriptedPeer {
        let answers = [
            "GET_INFO": info, "GET_HEALTH": health, "GET_METRICS": metrics,
            "GET_READER_LIST": Say.list(Say.reader("Desk (21249203) 00 00", left: 2), Say.reader("B", left: nil)),
            "IDENTIFY_CARD": #"{"msg":"CARD_IDENTITY","name":"D","atr":"3b00","applications":[]}"#,
        ].merging(others) { $1 }
        return try ScriptedPeer { peer in
            while let command = peer.command() {
                guard let answer = command["cmd"]?.string.flatMap({ answers[$0] }) else { return peer.hangUp() }
                peer.send(answer, answering: command)
            }
        }
    }

    private static func text(_ path: String) throws -> String {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        return String(decoding: bytes[..<fread(&bytes, 1, bytes.count, file)], as: UTF8.self)
    }

    @Test("the report has its sections, and no number of a reader; only its user can read it")
    func sections() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/report.txt"
        let peer = try Self.peer()
        defer { withExtendedLifetime(peer) {} }
        let program = try badgectl(peer, "report", path)
        await program.ends(0, printing: "Written: \(path)\n")
        #expect(program.text(.error).contains("Read it, and delete what nobody shall see"))
        let text = try Self.text(path)
        for words in [
            "badged report 1\n", "\n[badged]\n  badged 7.1, protocol 1\n  drivers: pcsc\n",
            "\n  bad: x: it ended: plug in\n", "\n  good: pcscd\n", "\n  Desk (XXXXXXXX) 00 00: ",
            "\n    card: unknown\n", "\n    answer to reset: 3b00\n",
            "\n  badged_cards{kind=\"eid\"} 2\n", "\n[versions]\n  badgectl ", "\n  Linux ", "\n[USB devices]\n",
            "\n[settings]\n", "\n[log]\n",
        ] {
            #expect(text.contains(words), "\(words) in \(text)")
        }
        #expect(!text.contains("badged-recording"))
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test("with --card the report ends with the recording", arguments: ["--card", "--test-card"])
    func card(option: String) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/report.txt"
        let members = #""recording":"\#(recording)","fault":"It left""#
        let peer = try Self.peer([
            "GET_INFO": info.replacing(#""cards""#, with: #""cards","documents","credentials""#),
            "GET_READER_LIST": Say.list(Say.reader("A", left: nil), Say.reader("B", left: 2)),
            "RECORD_CARD": #"{"msg":"CARD_RECORDING","name":"B",\#(members)}"#,
        ])
        let program = try badgectl(peer, "report", path, option)
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(program.text(.error).contains("ends early: It left"))
        #expect(try Self.text(path).hasSuffix("\n\n" + recording.replacing(#"\n"#, with: "\n")))
    }

    private static let frames = #"badged-frames 1\ndriver pn532_uart\n> 00\nend\n"#
    private static let boards = Say.list(
        Say.reader("A", left: nil),
        Say.reader("B", left: nil) + #","driver":"nfc""#
    )

    @Test("with --board the report ends with the frames of the first NFC board, or of the named one")
    func board() async throws {
        let folder = try TemporaryFolder()
        for (name, options) in [("B", "--board"), ("A", "--reader=A")] {
            let path = folder.path + "/\(name).txt"
            let peer = try ScriptedPeer { peer in
                while let command = peer.command() {
                    let isBoard = command["name"]?.string == name && command["board"]?.bool == true
                    let answer =
                        switch command["cmd"]?.string {
                        case "GET_INFO": info
                        case "GET_READER_LIST": Self.boards
                        case "RECORD_CARD" where isBoard:
                            #"{"msg":"CARD_RECORDING","name":"\#(name)","recording":"\#(Self.frames)"}"#
                        case "GET_HEALTH": health
                        case "GET_METRICS": metrics
                        default: #"{"msg":"CARD_RECORDING","error":"another command"}"#
                        }
                    peer.send(answer, answering: command)
                }
            }
            let program = try badgectl(peer, "report", path, "--board", options)
            #expect(await program.exitCode == 0, "\(program.everything)")
            #expect(try Self.text(path).hasSuffix("\n\n" + Self.frames.replacing(#"\n"#, with: "\n")))
        }
    }

    @Test("without an NFC board, or if it cannot be recorded, --board fails, and writes nothing")
    func noBoard() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/report.txt"
        let peer = try Self.peer(["GET_READER_LIST": Say.list(Say.reader("A", left: 2))])
        let program = try badgectl(peer, "report", "--board", path)
        await program.ends(1, saying: "badgectl: error: no reader is an NFC board\nhint: badgectl health says")
        let answer = #"{"msg":"CARD_RECORDING","name":"B","recording":"","fault":"the board does not answer"}"#
        let other = try Self.peer(["GET_READER_LIST": Self.boards, "RECORD_CARD": answer])
        let failed = try badgectl(other, "report", "--board", path)
        await failed.ends(1, saying: "badgectl: error: the board cannot be recorded: the board does not answer\n")
        #expect(access(path, F_OK) != 0)
    }

    @Test("without a card --card fails, and writes nothing")
    func noCard() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/report.txt"
        let peer = try Self.peer(["GET_READER_LIST": Say.list(Say.reader("A", left: nil))])
        let program = try badgectl(peer, "report", "--card", path)
        await program.ends(1, saying: "badgectl: error: no reader has a card\nhint: put the card on the reader")
        #expect(access(path, F_OK) != 0)
        let other = try Self.peer()
        let denied = try badgectl(other, "report", "--test-card", path)
        await denied.ends(4, saying: "badgectl: error: this user lacks the permissions documents and credentials\n")
    }

    @Test("a report without badged says why badged is not there")
    func unreachable() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/report.txt"
        let program = try RunningProgram("badgectl", ["--socket", folder.path + "/none.sock", "report", path])
        #expect(await program.exitCode == 0, "\(program.everything)")
        let text = try Self.text(path)
        #expect(text.contains("\n[badged]\n  ") && text.contains("\n[versions]\n"), "\(text)")
    }

    @Test(
        "a file that is there, or that cannot be written, is noticed before badged records anything",
        arguments: ["report.txt", "none/report.txt", ""]
    )
    func exists(name: String) async throws {
        let folder = try TemporaryFolder()
        try folder.write("report.txt", Array("mine".utf8))
        let path = "\(folder.path)/\(name)"
        let peer = try Self.peer()
        defer { withExtendedLifetime(peer) {} }
        let program = try badgectl(peer, "report", "--card", path)
        await program.ends(1, saying: "badgectl: error: cannot write \(path): ")
        #expect(try Self.text("\(folder.path)/report.txt") == "mine")
    }

    @Test("a report that is interrupted leaves no file")
    func interrupted() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/report.txt"
        let peer = try ScriptedPeer { peer in
            peer.command("GET_INFO")
            close(creat(folder.path + "/asked", 0o600))
            // The answer does not come.
            peer.untilClosed()
        }
        defer { withExtendedLifetime(peer) {} }
        let program = try badgectl(peer, "report", "--card", path)
        try await until { access(folder.path + "/asked", F_OK) == 0 }
        #expect(access(path, F_OK) == 0)
        program.signal(SIGINT)
        #expect(await program.exitCode == 130)
        #expect(access(path, F_OK) != 0)
    }

    @Test("settings with names, paths, addresses and keys are written without their values")
    func settings() {
        let lines = [
            "[access]", "# /etc/badged/badged.conf, line 3", "alice = cards, agent", "# default", "default = none",
            "[ble]", "# /etc/badged/badged.conf, line 9", "backend = mgmt", "# default", "silence = 20",
            "[credentials]", "# f, line 1", "site_key = 00112233445566778899", "# f, line 2", "allow_list = /home/a/l",
            "# f, line 3", "aliro_fast = no", "[log]", "# f, line 5", "level = debug", "[virtual]", "# f, line 7",
            "readers = 3", "[eid]", "# f, line 8", "proxy = https://a:b@proxy.example", "# f, line 9", "empty = ",
        ]
        #expect(
            ReportFacts.settings(in: lines) == [
                "[access] somebody = cards, agent", "[ble] backend = mgmt", "[credentials] site_key = (set)",
                "[credentials] allow_list = (set)", "[credentials] aliro_fast = no", "[log] level = debug",
                "[virtual] readers = 3", "[eid] proxy = (set)", "[eid] empty = ",
            ]
        )
    }

    @Test(
        "names of the host and its user, addresses of radios and numbers of readers are replaced",
        arguments: [
            ("desk-7: alice logged in", "HOST: USER logged in"), ("malice and desk-70", "malice and desk-70"),
            ("from 7C:9A:1D:00:11:22 -60", "from 7C:9A:1D:XX:XX:XX -60"), ("7C:9A:1D:00:11", "7C:9A:1D:00:11"),
            ("REINER SCT RFID (4711081500) 01 00", "REINER SCT RFID (XXXXXXXXXX) 01 00"),
            ("badged (protocol 1) (readers)", "badged (protocol 1) (readers)"), ("/home/alice/x", "/home/USER/x"),
            ("élan (äöü)", "élan (äöü)"), ("", ""), ("12:34:56:78:9a:bc", "12:34:56:XX:XX:XX"),
        ]
    )
    func scrubbed(line: String, result: String) {
        #expect(ReportScrubber(host: "desk-7", user: "alice").hidden(line) == result)
    }

    @Test("lines of the log cannot be lines of a recording")
    func forged() {
        var report = Report()
        report.add("log", ["badged-recording 1", "atr 3b00\n> 00a40400"])
        for line in report.text.split(separator: "\n") {
            #expect(!line.hasPrefix("badged-recording") && !line.hasPrefix(">") && !line.hasPrefix("atr"))
        }
    }

    @Test(
        "the time grows with the line",
        arguments: Growth.alphabets.prefix(FullTables.areWanted ? .max : 12).map(\.text)
    )
    func growth(text: String) {
        let scrubber = ReportScrubber(host: "desk-7", user: "alice")
        #expect(Growth.isInProportion(from: 20_000, text) { _ = scrubber.hidden($0) })
    }
}
