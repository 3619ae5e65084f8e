// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text

private let idle = #"{"msg":"STATUS","progress":null,"state":null,"workflow":null}"#
private func running(_ state: String?) -> String {
    let state = state.map { "\"\($0)\"" } ?? "null"
    return #"{"msg":"STATUS","progress":0,"state":\#(state),"workflow":"CHANGE_PIN"}"#
}

@Suite("badgectl: send", .timeLimit(.minutes(5))) struct SendTests {
    @Test("send passes lines and messages unchanged, and ends when everything is answered")
    func asTheyAre() async throws {
        let messages = [
            #"{ "msg" : "X", "a":"\u00e4", "n":1.50 }"#, #"{"msg":"INFO","request":"mine"}"#, Say.event(Say.reader()),
        ]
        let peer = try ScriptedPeer { peer in
            peer.command("GET_INFO")
            for message in messages { peer.send(raw: message + "\r\n") }
            peer.answer("GET_STATUS", idle)
        }
        let input = "{ \"cmd\":\"A\" }\nnonsense \u{1}\n\n{\"cmd\":\"GET_INFO\",\"request\":\"mine\"}"
        let program = try badgectl(peer, "send", input: input)
        #expect(await program.exitCode == 0)
        #expect(program.text(.output) == messages.map { $0 + "\n" }.joined())
        let received = await peer.received()
        #expect(received.dropLast().joined(separator: "\n") == input)
    }

    @Test(
        "send waits for the end of a running workflow",
        arguments: [
            Say.changed, Say.cancelled, #"{"msg":"AUTH","result":{"major":"ok"}}"#,
            #"{"msg":"AUTH","url":"https://x"}"#,
        ]
    )
    func workflow(end: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN")
            peer.send(end.contains("AUTH") ? #"{"msg":"AUTH"}"# : Say.started)
            peer.answer("GET_STATUS", running(nil))
            peer.send(Say.event(Say.reader()))
            peer.send(end)
        }
        let program = try badgectl(peer, "send", input: "{\"cmd\":\"RUN\"}\n")
        #expect(await program.exitCode == 0)
        #expect(program.text(.output).hasSuffix(end + "\n"))
    }

    @Test("At API level 1, which has no STATUS, the messages show whether a workflow runs")
    func levelOne() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(Say.started)
            peer.answer("GET_STATUS", #"{"error":"GET_STATUS","msg":"UNKNOWN_COMMAND"}"#)
            peer.send(Say.cancelled)
        }
        let program = try badgectl(peer, "send", input: "{\"cmd\":\"RUN_CHANGE_PIN\"}\n")
        await program.ends(0, printing: "\(Say.started)\n\(Say.cancelled)\n")
    }

    @Test("A question after the end of the input ends send with 1", arguments: [true, false])
    func unanswered(isOpen: Bool) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(Say.started)
            if isOpen { peer.send(Say.enter("PIN", Say.reader())) }
            peer.answer("GET_STATUS", running(isOpen ? "ENTER_PIN" : nil))
            if !isOpen { peer.send(Say.enter("PIN", Say.reader())) }
        }
        let program = try badgectl(peer, "send", input: "{\"cmd\":\"RUN_CHANGE_PIN\"}\n")
        #expect(await program.exitCode == 1)
        #expect(program.text(.output).hasSuffix(Say.enter("PIN", Say.reader()) + "\n"))
        #expect(
            program.text(.error).hasPrefix(
                "badgectl: error: the workflow waits after ENTER_PIN, but the input has ended\nhint: "
            )
        )
    }

    @Test("A question that the last line answers is not open any more")
    func answered() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(Say.started)
            peer.send(Say.enter("PIN", Say.reader()))
            peer.command("SET_PIN")
            peer.answer("GET_STATUS", running(nil))
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "send", input: nil)
        program.type("{\"cmd\":\"RUN_CHANGE_PIN\"}\n")
        #expect(await program.prints("ENTER_PIN", on: .output))
        program.type("{\"cmd\":\"SET_PIN\",\"value\":\"123456\"}\n")
        program.endInput()
        #expect(await program.exitCode == 0)
        #expect(!program.everything.contains("123456"))
    }

    @Test("--wait ends at the first message of that name, before or after the end of the input")
    func wait() async throws {
        for isEarly in [true, false] {
            let peer = try ScriptedPeer { peer in
                peer.command("RUN_CHANGE_PIN")
                if isEarly { peer.send(Say.enter("PIN", Say.reader())) }
                peer.answer("GET_STATUS", running("ENTER_PIN"))
                if !isEarly { peer.send(Say.enter("PIN", Say.reader())) }
            }
            let program = try badgectl(peer, "send", "--wait", "ENTER_PIN", input: "{\"cmd\":\"RUN_CHANGE_PIN\"}\n")
            await program.ends(0, showing: "ENTER_PIN")
        }
    }

    @Test(
        "--for ends after its time, with 1 if the message of --wait did not come",
        arguments: [(["--for", "0.5"], Int32(0)), (["--for=0.5", "--wait", "READER"], Int32(1))]
    )
    func time(arguments: [String], code: Int32) async throws {
        let peer = try ScriptedPeer { peer in
            peer.send(Say.insertCard)
            peer.answer("GET_STATUS", idle)
        }
        let program = try RunningProgram("badgectl", ["--socket", peer.path, "send"] + arguments, input: nil)
        #expect(await program.prints(Say.insertCard, on: .output))
        let start = ContinuousClock.now
        program.endInput()
        #expect(await program.exitCode == code)
        #expect(.now - start >= .milliseconds(500))
        #expect(program.text(.output) == Say.insertCard + "\n")
        if code == 1 { #expect(program.text(.error).hasPrefix("badgectl: error: no READER came in time\n")) }
    }

    @Test("During the time of --for send shows messages")
    func messagesDuringTime() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_STATUS", idle)
            peer.send(Say.insertCard)
        }
        let program = try badgectl(peer, "send", "--for", "3600")
        #expect(await program.prints(Say.insertCard, on: .output))
        #expect(await program.exitCode(after: SIGINT) == 130)
    }

    @Test("When badged closes, send shows the last messages and ends with 3")
    func closed() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("X")
            peer.send(Say.insertCard)
            peer.hangUp()
        }
        let program = try badgectl(peer, "send", input: "{\"cmd\":\"X\"}\n")
        #expect(await program.exitCode == 3)
        #expect(program.text(.output) == Say.insertCard + "\n")
        #expect(program.text(.error).hasPrefix("badgectl: error: badged has closed the connection\n"))
    }

    @Test("Megabytes arrive complete and in order in both directions")
    func large() async throws {
        let count = 2000
        let peer = try ScriptedPeer { peer in
            let padding = String(repeating: "p", count: 2000)
            for number in 0..<count {
                _ = peer.command()
                peer.send(#"{"msg":"N","n":\#(number),"p":"\#(padding)"}"#)
            }
            peer.answer("GET_STATUS", idle)
        }
        let padding = String(repeating: "q", count: 1000)
        let input = (0..<count).map { "{\"cmd\":\"N\",\"n\":\($0),\"q\":\"\(padding)\"}\n" }.joined()
        let program = try badgectl(peer, "send", input: input)
        #expect(await program.exitCode == 0)
        let numbers = program.text(.output).split(separator: "\n").compactMap { (try? JSON($0.utf8))?["n"]?.int }
        #expect(numbers == Array(0..<count))
        #expect(await peer.received().dropLast().joined(separator: "\n") + "\n" == input)
    }

    @Test("Ctrl-C ends send with 130")
    func interrupted() async throws {
        let peer = try ScriptedPeer { peer in
            peer.send(Say.insertCard)
        }
        let program = try badgectl(peer, "send", input: nil)
        #expect(await program.prints("INSERT_CARD", on: .output))
        #expect(await program.exitCode(after: SIGINT) == 130)
    }
}
