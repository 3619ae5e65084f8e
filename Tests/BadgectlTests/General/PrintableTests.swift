// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

/// Names from devices and readers reach a terminal without control characters.
@Suite("badgectl: control characters", .timeLimit(.minutes(5))) struct PrintableTests {
    /// Clears the screen, forges a line, turns the direction of writing, and sets the title by a C1 character.
    private static let name = #"R\u001b[2J\ngood \u202ex\u009d0;t\u0007\u2028"#
    private static let escaped = #"R\u{1b}[2J\u{a}good \u{202e}x\u{9d}0;t\u{7}\u{2028}"#
    private static let info =
        #"{"VersionInfo":{"Implementation-Version":"1\u001b[1m","Name":"badged\nx"},"badged":{"drivers":["\u001bd"]},"#
        + #""msg":"INFO"}"#
    private static let health =
        #"{"checks":[{"advice":"plug \#(name) in","name":"usb \#(name)","ok":false}],"msg":"HEALTH"}"#

    private static func isPlain(_ program: RunningProgram) -> Bool {
        (program.text(.output) + program.text(.error)).unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control: scalar == "\n"
            case .format, .lineSeparator, .paragraphSeparator: false
            default: true
            }
        }
    }

    @Test("readers and status show the name of a reader in one line")
    func readers() async throws {
        let list = Say.list(Say.reader(Self.name))
        let peer = try ScriptedPeer { $0.answer("GET_READER_LIST", list) }
        let readers = try badgectl(peer, "readers")
        await readers.ends(0, printing: "\(Self.escaped)  eID card\n")
        let status = try ScriptedPeer { peer in
            peer.answer("GET_INFO", Self.info)
            peer.answer("GET_READER_LIST", list)
            peer.answer("GET_HEALTH", Self.health)
        }
        let program = try badgectl(status, "status")
        #expect(await program.exitCode == 0)
        #expect(Self.isPlain(program) && program.text(.output).contains(Self.escaped), "\(program.everything)")
        #expect(program.text(.output).hasPrefix(#"badged\u{a}x 1\u{1b}[1m"#))
    }

    @Test("readers --watch shows a changed name in one line")
    func watch() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_READER_LIST", Say.list(Say.reader("A")))
            peer.send(Say.event(Say.reader(Self.name)))
        }
        let program = try badgectl(peer, "readers", "--watch")
        // badgectl waits for the next badged, so it does not end.
        #expect(await program.prints("\(Self.escaped): eID card\n", on: .output))
        #expect(Self.isPlain(program))
    }

    @Test("health shows a check and its advice in one line")
    func health() async throws {
        let peer = try ScriptedPeer { $0.answer("GET_HEALTH", Self.health) }
        let program = try badgectl(peer, "health")
        await program.ends(1, printing: "BAD  usb \(Self.escaped): plug \(Self.escaped) in\n")
    }

    @Test("an error of badged is shown in one line")
    func error() async throws {
        let peer = try ScriptedPeer { peer in
            peer.hasAnchors()
            peer.answer("RUN_AUTH", #"{"error":"no \#(Self.name)","msg":"AUTH"}"#)
        }
        let program = try badgectl(peer, "auth", "https://a.example/")
        #expect(await program.exitCode == 1)
        #expect(Self.isPlain(program) && program.text(.error).contains(Self.escaped), "\(program.everything)")
    }

    @Test("a workflow shows the name of a reader in one line")
    func workflow() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(#"{"error":"wrong \#(Self.name)","msg":"INSERT_CARD"}"#)
            peer.needCard(Say.list(Say.reader(Self.name, left: nil, insertable: true)))
            peer.answer("SET_CARD", Say.event(Say.reader(Self.name)))
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin")
        _ = await program.exitCode
        #expect(Self.isPlain(program) && program.everything.contains(Self.escaped), "\(program.everything)")
    }

    @Test("--json writes the messages unchanged")
    func json() async throws {
        let list = Say.list(Say.reader(Self.name))
        let peer = try ScriptedPeer { $0.answer("GET_READER_LIST", list) }
        let program = try badgectl(peer, "--json", "readers")
        #expect(await program.exitCode == 0)
        #expect(program.text(.output).hasPrefix(list.dropLast()))
    }
}
