// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing

private let info =
    #"{"VersionInfo":{"Implementation-Version":"7.1","Name":"badged"},"badged":{"drivers":["pcsc","virtual"],"#
    + #""protocol":1,"scanners":[]},"msg":"INFO"}"#
private let health =
    #"{"checks":[{"name":"pcscd","ok":true},{"advice":"plug a reader in","name":"reader","ok":false}],"msg":"HEALTH"}"#
private let allGood = #"{"checks":[{"name":"pcscd","ok":true}],"msg":"HEALTH"}"#

@Suite("badgectl: status, health, readers", .timeLimit(.minutes(5))) struct QueryTests {
    @Test("status shows badged, its readers and its health")
    func status() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_INFO", info)
            peer.answer(
                "GET_READER_LIST",
                Say.list(Say.reader("A", left: 2), Say.reader("B", left: nil, insertable: true))
            )
            peer.answer("GET_HEALTH", health)
        }
        let program = try badgectl(peer, "status")
        #expect(await program.exitCode == 0)
        #expect(
            program.text(.output) == """
                badged 7.1 (protocol 1)
                  drivers  pcsc, virtual
                  reader   A: eID card, 2 PIN tries left
                  reader   B: virtual card, not inserted
                  health   1 check failed, see badgectl health

                """
        )
        #expect(program.text(.error) == "")
    }

    @Test("status shows a user without the permission readers what this user may do")
    func statusWithoutPermission() async throws {
        let refusal = #","granted":["agent"],"missing":["readers"],"msg":"ACCESS_DENIED"}"#
        let peer = try ScriptedPeer { peer in
            peer.tellsPermissions(#""agent""#)
            peer.answer("GET_READER_LIST", #"{"error":"GET_READER_LIST""# + refusal)
            peer.answer("GET_HEALTH", #"{"error":"GET_HEALTH""# + refusal)
        }
        let program = try badgectl(peer, "status")
        #expect(await program.exitCode == 0, "\(program.everything)")
        let output = program.text(.output)
        for row in [
            "reader   not shown: ", "you may  agent\n", "health   not shown: you lack the permission readers\n",
        ] {
            #expect(output.contains(row), "\(output)")
        }
    }

    @Test("With --json the messages are unchanged, wherever the option stands", arguments: [true, false])
    func json(isFirst: Bool) async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_INFO", info)
            peer.answer("GET_READER_LIST", Say.list())
            peer.answer("GET_HEALTH", health)
        }
        let program = try isFirst ? badgectl(peer, "--json", "status") : badgectl(peer, "status", "--json")
        #expect(await program.exitCode == 0)
        let lines = program.text(.output).split(separator: "\n")
        #expect(lines.count == 3)
        for (line, message) in zip(lines, [info, Say.list(), health]) {
            #expect(line.hasPrefix(message.dropLast() + ",\"request\":"))
        }
    }

    @Test("health ends with 0 when no check fails, else with 1 and the advice")
    func healthChecks() async throws {
        let good = try ScriptedPeer { $0.answer("GET_HEALTH", allGood) }
        let passing = try badgectl(good, "health")
        await passing.ends(0, printing: "good pcscd\n")
        let bad = try ScriptedPeer { $0.answer("GET_HEALTH", health) }
        let failing = try badgectl(bad, "health")
        await failing.ends(1, printing: "good pcscd\nBAD  reader: plug a reader in\n")
        #expect(failing.text(.error).hasPrefix("badgectl: error: 1 of 2 checks failed\nhint: "))
    }

    @Test("health ends with 5 when only an optional part is missing, and with 1 when something is broken, too")
    func optionalParts() async throws {
        let missing =
            #"{"name":"bluetoothAdapter","ok":false,"optional":true,"cause":"there is none","advice":"plug one in"}"#
        let checks = #"{"name":"pcscd","ok":true},\#(missing)"#
        let host = try ScriptedPeer { $0.answer("GET_HEALTH", #"{"checks":[\#(checks)],"msg":"HEALTH"}"#) }
        let program = try badgectl(host, "health")
        await program.ends(5, printing: "good pcscd\nnone bluetoothAdapter: there is none: plug one in\n")
        #expect(program.text(.error).hasPrefix("Nothing is broken."))
        let broken = #"{"name":"store","ok":false,"advice":"restore it"}"#
        let both = try ScriptedPeer { $0.answer("GET_HEALTH", #"{"checks":[\#(missing),\#(broken)],"msg":"HEALTH"}"#) }
        let other = try badgectl(both, "health")
        await other.ends(1, sayingFirst: "badgectl: error: 1 of 2 checks failed\n")
    }

    @Test("readers --identify shows what an unknown card says about itself")
    func identify() async throws {
        let reader = #""attached":true,"card":{},"insertable":false,"keypad":false,"name":"R""#
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_READER_LIST", Say.list(reader, Say.reader("B", left: nil)))
            let identity = #""atr":"3bff","uid":"0102","applications":[{"aid":"A0","name":"PIV"}],"fault":"It left""#
            peer.answer("IDENTIFY_CARD", #"{"msg":"CARD_IDENTITY","name":"R",\#(identity)}"#)
        }
        let program = try badgectl(peer, "readers", "--identify")
        #expect(await program.exitCode == 0, "\(program.everything)")
        for words in ["R\n  card ", "3B FF", "01 02", "PIV (A0)", "It left"] {
            #expect(program.text(.output).contains(words), "\(program.everything)")
        }
    }

    @Test("A refusal names the permission, and the line that grants it")
    func denied() async throws {
        let answer =
            #"{"error":"GET_READER_LIST","granted":["cards","agent"],"missing":["readers"],"msg":"ACCESS_DENIED"}"#
        let peer = try ScriptedPeer { $0.answer("GET_READER_LIST", answer) }
        let program = try badgectl(peer, "readers")
        await program.ends(4, saying: "this user lacks the permission readers\nhint: in /etc/badged/badged.conf, ")
        #expect(program.text(.error).contains(" = cards, agent, readers\""))
    }

    @Test("health shows the cause of a failure, and does not call good what could not be checked")
    func unknown() async throws {
        let checks =
            #"{"name":"bluetooth","ok":false,"cause":"no connection to the D-Bus","advice":"systemctl start dbus"},"#
            + #"{"name":"bluetoothAdapter","ok":false,"unknown":true,"cause":"unknown until bluetooth is good"}"#
        let peer = try ScriptedPeer { $0.answer("GET_HEALTH", #"{"checks":[\#(checks)],"msg":"HEALTH"}"#) }
        let program = try badgectl(peer, "health")
        #expect(await program.exitCode == 1)
        #expect(
            program.text(.output) == """
                BAD  bluetooth: no connection to the D-Bus: systemctl start dbus
                ?    bluetoothAdapter: unknown until bluetooth is good

                """
        )
        #expect(program.text(.error).hasPrefix("badgectl: error: 1 of 2 checks failed\n"))
    }

    @Test(
        "health says for how long a check has failed",
        arguments: [
            (0, "1 s"), (1999, "1 s"), (119_999, "119 s"), (120_000, "2 min"), (7_199_999, "119 min"),
            (7_200_000, "2 h"), (172_799_999, "47 h"), (172_800_000, "2 days"), (864_000_000, "10 days"),
        ]
    )
    func healthAge(milliseconds: Int, words: String) async throws {
        let check = #"{"advice":"plug one in","errorAgo":\#(milliseconds),"name":"bluetoothAdapter","ok":false}"#
        let peer = try ScriptedPeer { $0.answer("GET_HEALTH", #"{"checks":[\#(check)],"msg":"HEALTH"}"#) }
        let failing = try badgectl(peer, "health")
        await failing.ends(1, printing: "BAD  bluetoothAdapter for \(words): plug one in\n")
    }

    @Test(
        "A reader is described in words",
        arguments: [
            (Say.reader(), "R  eID card\n"), (Say.reader(left: 2), "R  eID card, 2 PIN tries left\n"),
            (Say.reader(left: 1), "R  eID card, 1 PIN try left, needs the CAN first\n"),
            (Say.reader(left: 0), "R  eID card, PIN blocked, needs the PUK\n"),
            (Say.reader(left: nil), "R  no card\n"),
            (Say.reader(left: nil, insertable: true), "R  virtual card, not inserted\n"),
            (Say.reader(keypad: true), "R  eID card, keypad\n"),
            (#""attached":true,"card":{},"insertable":false,"keypad":false,"name":"R""#, "R  unknown card\n"),
            (Say.keycard(#""version":null,"initialised":false"#), "R  Keycard, new\n"),
            (Say.keycard(#""version":"3.1","initialised":true,"keyUID":null"#), "R  Keycard 3.1, no keys\n"),
            (
                Say.keycard(#""version":"4.0","initialised":true,"keyUID":"00","pinTries":3,"pukTries":5"#),
                "R  Keycard 4.0\n"
            ),
            (
                Say.keycard(#""version":"4.0","initialised":true,"keyUID":"00","pinTries":1,"pukTries":5"#),
                "R  Keycard 4.0, 1 PIN try left\n"
            ),
            (
                Say.keycard(#""version":"4.0","initialised":true,"keyUID":"00","pinTries":0,"pukTries":5"#),
                "R  Keycard 4.0, PIN blocked, needs the PUK\n"
            ),
            (
                Say.keycard(#""version":"4.0","initialised":true,"keyUID":"00","pinTries":0,"pukTries":0"#),
                "R  Keycard 4.0, PIN and PUK used up\n"
            ),
            (
                #""attached":true,"busy":true,"card":null,"insertable":false,"keypad":false,"name":"R""#,
                "R  no card, in use by another program\n"
            ),
            (
                #""attached":true,"card":{"deactivated":true,"inoperative":false,"retryCounter":0},"name":"R""#,
                "R  eID card, online function switched off\n"
            ),
            (
                #""attached":true,"card":{"deactivated":false,"inoperative":true,"retryCounter":0},"name":"R""#,
                "R  eID card, PUK used up\n"
            ),
        ]
    )
    func readers(reader: String, words: String) async throws {
        let peer = try ScriptedPeer { $0.answer("GET_READER_LIST", Say.list(reader)) }
        let program = try badgectl(peer, "readers")
        await program.ends(0, printing: words)
    }

    @Test("readers --watch shows the readers, then each change once, until Ctrl-C ends it with 130")
    func watch() async throws {
        let peer = try ScriptedPeer { peer in
            // The list contains this change already.
            peer.send(Say.event(Say.reader("A", left: nil)))
            peer.answer("GET_READER_LIST", Say.list(Say.reader("A", left: nil)))
            peer.send(Say.event(Say.reader("A", left: nil)))
            peer.send(Say.event(Say.reader("A", left: 3)))
            peer.send(#"{"attached":false,"msg":"READER","name":"A"}"#)
        }
        let program = try badgectl(peer, "readers", "--watch")
        #expect(await program.prints("gone\n", on: .output))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(program.text(.output) == "A: no card\nA: eID card\nA: gone\n")
        #expect(program.text(.error) == "")
    }

    @Test("readers --watch --names shows the name of each reader that comes, once")
    func watchNames() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_READER_LIST", Say.list(Say.reader("A", left: nil)))
            peer.send(Say.event(Say.reader("A", left: 3)))
            peer.send(#"{"attached":false,"msg":"READER","name":"A"}"#)
            peer.send(Say.event(Say.reader("B", left: nil)))
            peer.send(Say.event(Say.reader("A", left: 3)))
        }
        let program = try badgectl(peer, "readers", "--watch", "--names")
        #expect(await program.prints("B\nA\n", on: .output))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(program.text(.output) == "A\nB\nA\n")
    }

    @Test("readers --watch goes on when badged is restarted, and shows what has changed meanwhile")
    func watchGoesOn() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_READER_LIST", Say.list(Say.reader("A"), Say.reader("B", left: nil)))
            peer.hangUp()
        } others: { peer in
            peer.answer("GET_READER_LIST", Say.list(Say.reader("B", left: 2)))
        }
        let program = try badgectl(peer, "readers", "--watch")
        #expect(await program.prints("B: eID card, 2 PIN tries left\n", on: .output))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(
            program.text(.output) == "A: eID card\nB: no card\nA: gone\nB: eID card, 2 PIN tries left\n"
        )
        #expect(program.text(.error).contains("badged has closed the connection. Waiting until it runs again.\n"))
    }

    @Test(
        "A user without permission gets the status 4",
        arguments: [["readers"], ["readers", "--watch"], ["readers", "--json"]]
    )
    func denied(arguments: [String]) async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_READER_LIST", #"{"error":"GET_READER_LIST","msg":"ACCESS_DENIED"}"#)
        }
        let program = try RunningProgram("badgectl", arguments + ["--socket", peer.path])
        await program.ends(4, sayingFirst: "badgectl: error: badged does not allow this to this user\n")
    }

    @Test("A server of another protocol is reported as such", arguments: ["SSH-2.0-x\r\n", "[]\n"])
    func malformed(text: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.send(raw: text)
        }
        let program = try badgectl(peer, "status")
        await program.ends(3, saying: "does not speak badged's protocol")
    }
}
