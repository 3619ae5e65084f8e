// SPDX-License-Identifier: GPL-3.0-or-later
import FoundationEssentials
import Glibc
import TestSupport
import Testing
import Text

@testable import badgectl

/// A folder of programs that badgectl finds in its PATH; deinit removes it.
private final class Programs: Sendable {
    let folder = "/tmp/badgectl-programs-\(UUID().uuidString)"

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    var environment: [String: String] { ["PATH": "\(folder):/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "dumb"] }

    private func add(_ name: String, _ script: String) throws {
        let path = "\(folder)/\(name)"
        try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(filePath: path))
        chmod(path, 0o755)
    }

    /// Adds a fake of pinentry: it answers GETPIN and CONFIRM with the lines of `answers`, and writes each command to a log.
    func addPinentry(_ answers: [String], flavor: String = "qt:curses") throws {
        try Data(answers.map { $0 + "\n" }.joined().utf8).write(to: URL(filePath: "\(folder)/answers"))
        try add(
            "pinentry",
            """
            echo "OK this is a fake of pinentry"
            while read -r command text; do
                echo "$command $text" >>"\(folder)/log"
                case $command in
                    GETPIN) echo "D $(sed -n 1p "\(folder)/answers")"; sed -i 1d "\(folder)/answers"; echo OK ;;
                    CONFIRM) sed -n 1p "\(folder)/answers"; sed -i 1d "\(folder)/answers" ;;
                    GETINFO) echo "D \(flavor)"; echo OK ;;
                    OPTION) echo "ERR 83886254 Unknown option" ;;
                    BYE) echo OK; exit ;;
                    *) echo OK ;;
                esac
            done
            """
        )
    }

    /// Adds a fake of pinentry that writes these lines, ignores all commands, and reads up to the end.
    func addPinentry(saying answers: String) throws {
        try Data(answers.utf8).write(to: URL(filePath: "\(folder)/answers"))
        try add("pinentry", "cat \"\(folder)/answers\"; cat >/dev/null")
    }

    /// Adds a fake of pinentry that carries out these commands of the shell for GETPIN.
    func addPinentry(reacting commands: String) throws {
        let script = "while read -r line; do case $line in GETPIN) \(commands); continue ;; esac; echo OK; done"
        try add("pinentry", "echo OK; " + script)
    }

    /// Adds the pinentry of this machine that asks in a terminal.
    func addTerminalPinentry() throws {
        try FileManager.default.createSymbolicLink(
            atPath: "\(folder)/pinentry",
            withDestinationPath: "/usr/bin/pinentry-curses"
        )
    }

    /// Adds a fake of notify-send: it writes its texts to standard error.
    func addNotifySend() throws { try add("notify-send", #"shift 2; echo "notification: $*" >&2"#) }

    /// The commands that pinentry has got.
    var log: [String] {
        let bytes = FileManager.default.contents(atPath: "\(folder)/log") ?? Data()
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

@Suite("badgectl: pinentry and notifications", .timeLimit(.minutes(5))) struct PinentryTests {
    private static let url = "https://a.example/token"

    @Test(
        "With --pinentry windows show the service, ask for consent and PIN, and report a wrong PIN"
    )
    func windows() async throws {
        let programs = try Programs()
        try programs.addPinentry(["ERR 83886194 Not confirmed", "1%32", "111111", "12345%36"])
        let peer = try ScriptedPeer.authentication { peer in
            peer.answer("SET_ACCESS_RIGHTS", Say.rights(#""Address","FamilyName""#))
            peer.command("ACCEPT")
            peer.ask("PIN")
            peer.send(Say.event(Say.reader(left: 2)))
            peer.ask("PIN", Say.reader(left: 2))
            peer.send(Say.authenticated)
        }
        let program = try badgectl(peer, "auth", Self.url, "--pinentry", environment: programs.environment)
        await program.ends(0, printing: "https://a.example/back?ResultMajor=ok\n")
        // The third button grants only the required rights.
        #expect(await peer.received().contains { $0.contains("SET_ACCESS_RIGHTS") && $0.contains(#""chat":[]"#) })
        #expect(values(await peer.received()).suffix(2) == ["SET_PIN 111111", "SET_PIN 123456"])
        let log = programs.log
        let consent = try #require(log.first { $0.hasPrefix("SETDESC") })
        #expect(consent.contains("website  https://a.example%0A"))
        #expect(consent.contains("Terms of usage:%0AA company%0AMain street 1"))
        #expect(log.contains("SETNOTOK Only what is required"))
        #expect(log.contains("SETERROR The PIN has 6 digits."))
        let service = "Service: A [2Jservice%0AWebsite: https://a.example%0APurpose: Test"
        #expect(log.contains("SETDESC The card needs the PIN.%0A%0A\(service)"))
        #expect(log.contains("SETDESC That PIN was wrong.%0A2 tries are left.%0A%0A\(service)"))
        for digits in ["111111", "123456"] { #expect(!(program.everything + log.joined()).contains(digits)) }
    }

    @Test("with --yes the window for the PIN has the service and the tries, and not the consent that was not asked for")
    func agreedBefore() async throws {
        let programs = try Programs()
        try programs.addPinentry(["111111", "123456"])
        let peer = try ScriptedPeer.authentication { peer in
            peer.command("ACCEPT")
            peer.ask("PIN")
            peer.send(Say.event(Say.reader(left: 1)))
            peer.ask("PIN", Say.reader(left: 1))
            peer.send(Say.authenticated)
        }
        let program = try badgectl(peer, "auth", Self.url, "--yes", "--pinentry", environment: programs.environment)
        await program.ends(0, printing: "https://a.example/back?ResultMajor=ok\n")
        #expect(program.text(.error).contains("issuer"))
        let windows = programs.log.filter { $0.hasPrefix("SETDESC") }
        #expect(windows.count == 2 && windows.allSatisfy { $0.contains("%0A%0AService: A") && !$0.contains("issuer") })
        #expect(windows.last?.hasPrefix("SETDESC That PIN was wrong.%0AThis is the last try.") == true)
    }

    @Test("a window leaves out what was said first, and not the tries, when its line is full")
    func notes() {
        let long = String(repeating: "word ", count: 150)
        let end = "\n\nService: A"
        #expect(PinentrySource.description(["A", "2 tries are left."], end) == "A\n2 tries are left." + end)
        let text = PinentrySource.description([long, long, "2 tries are left."], end)
        #expect(Pinentry.escaped(text).hasSuffix("2 tries are left.%0A%0AService: A"))
    }

    @Test(
        "the real pinentry of a terminal asks for consent, optional data and the PIN, in pages where it has little room",
        .enabled(if: access("/usr/bin/pinentry-curses", X_OK) == 0, "needs the package pinentry-curses"),
        arguments: [UInt16(40), 16],
        ["\r", "\t\r", "\t\t\r"]
    )
    func curses(rows: UInt16, keys: String) async throws {
        let programs = try Programs()
        try programs.addTerminalPinentry()
        let isAgreed = keys != "\t\t\r"
        let peer = try ScriptedPeer.authentication { peer in
            if keys == "\t\r" { peer.answer("SET_ACCESS_RIGHTS", Say.rights(#""Address","FamilyName""#)) }
            guard isAgreed else {
                peer.command("CANCEL")
                return peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
            }
            peer.command("ACCEPT")
            peer.ask("PIN")
            peer.send(Say.authenticated)
        }
        let program = try RunningProgram(
            "badgectl",
            ["--socket", peer.path, "auth", Self.url, "--pinentry"],
            hasTerminal: true,
            columns: 80,
            rows: rows,
            environment: programs.environment.merging(["TERM": "xterm"]) { $1 }
        )
        if rows < 24 { #expect(await program.prints("<Next page>", typing: "\r"), "\(program.everything)") }
        #expect(await program.prints("<Only what is required>"), "\(program.everything)")
        #expect(await program.prints("<Cancel>", typing: keys))
        if isAgreed {
            #expect(await program.prints("The card needs the PIN."), "\(program.everything)")
            #expect(await program.prints("<Cancel>", typing: "123456\r"))
        }
        #expect(await program.exitCode == (isAgreed ? 0 : 1), "\(program.everything)")
        let commands = await peer.commands()
        #expect(commands.contains("SET_PIN") == isAgreed && commands.contains("CANCEL") == !isAgreed)
        #expect(commands.contains("SET_ACCESS_RIGHTS") == (keys == "\t\r"))
        #expect(!program.everything.contains("123456"))
    }

    @Test("the pages for a terminal have as many lines and columns as it has room for, and nothing is lost")
    func room() {
        let text = (0..<30).map { "line \($0) " + String(repeating: "word ", count: 20) }.joined(separator: "\n")
        let room = Pinentry.Room(lines: 7, columns: 36)
        let pages = Pinentry.pages(text, title: "Terms", in: room)
        for page in pages {
            let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count <= 7 && lines.allSatisfy { $0.count <= 36 } && lines[0] == "Terms")
        }
        let words = pages.flatMap { $0.split(separator: "\n").dropFirst() }.flatMap { $0.split(separator: " ") }
        #expect(words == text.split { " \n".contains($0) })
    }

    @Test(
        "where a window has no third button, a second window asks for the optional data",
        arguments: ["gnome3:curses", "", "new"],
        [true, false]
    )
    func secondWindow(flavor: String, isGranted: Bool) async throws {
        let programs = try Programs()
        let answer = isGranted ? "OK" : "ERR 83886179 Operation cancelled"
        try programs.addPinentry(["OK", answer, "123456"], flavor: flavor)
        let peer = try ScriptedPeer.authentication { peer in
            if !isGranted { peer.answer("SET_ACCESS_RIGHTS", Say.rights(#""Address","FamilyName""#)) }
            peer.command("ACCEPT")
            peer.ask("PIN")
            peer.send(Say.authenticated)
        }
        let program = try badgectl(peer, "auth", Self.url, "--pinentry", environment: programs.environment)
        await program.ends(0, printing: "https://a.example/back?ResultMajor=ok\n")
        #expect(await peer.received().contains { $0.contains(#""chat":[]"#) } == !isGranted)
        let log = programs.log
        #expect(!log.contains { $0.hasPrefix("SETNOTOK") })
        #expect(log.contains("SETCANCEL Only what is required") && log.contains("SETOK Give these, too"))
        let question = log.first { $0.hasPrefix("SETDESC The service does not require these data.") }
        #expect(question?.contains("%0A        ") == true && question?.contains("family name") == false)
    }

    @Test("a person who does not agree is asked nothing about the optional data")
    func disagreed() async throws {
        let programs = try Programs()
        try programs.addPinentry(["ERR 83886179 Operation cancelled"], flavor: "gnome3:curses")
        let peer = try ScriptedPeer.authentication { peer in
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
        }
        let program = try badgectl(peer, "auth", Self.url, "--pinentry", environment: programs.environment)
        await program.ends(1, saying: "badgectl: error: not agreed: the service got no data\n")
        #expect(programs.log.count { $0.hasPrefix("CONFIRM") } == 1)
    }

    @Test("Cancel in the window for consent agrees to nothing")
    func cancelled() async throws {
        let programs = try Programs()
        try programs.addPinentry(["ERR 83886179 Operation cancelled"])
        let peer = try ScriptedPeer.authentication { peer in
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
        }
        let program = try badgectl(peer, "auth", Self.url, "--pinentry", environment: programs.environment)
        await program.ends(1, saying: "badgectl: error: not agreed: the service got no data\n")
    }

    @Test("When the card leaves, the window of its question closes")
    func withdrawn() async throws {
        let programs = try Programs()
        // A pinentry whose window stays open. The signal of badgectl ends its sleep.
        try programs.addPinentry(reacting: "exec sleep 600")
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("PIN", Say.reader()))
            peer.send(Say.event(Say.reader(left: nil)))
            peer.needCard()
            peer.send(Say.failed("Card_Removed"))
        }
        let program = try badgectl(peer, "change-pin", "--pinentry", environment: programs.environment)
        // Standard error ends only when pinentry has ended, too.
        #expect(await program.exitCode == 1)
    }

    @Test("The real pinentry-tty asks for the PIN on the terminal, and does not show it")
    func realPinentry() async throws {
        let programs = try Programs()
        try FileManager.default.createSymbolicLink(
            atPath: programs.folder + "/pinentry",
            withDestinationPath: "/usr/bin/pinentry-tty"
        )
        let peer = try ScriptedPeer.pinChange(asking: "PIN") { $0.send(Say.failed("Card_Removed")) }
        let program = try badgectl(
            peer,
            "change-pin",
            "--pinentry",
            hasTerminal: true,
            environment: programs.environment
        )
        #expect(await program.prints("The card needs the PIN."))
        #expect(await program.prints("PIN:", typing: "123456\n"))
        #expect(await program.exitCode == 1, "\(program.everything)")
        #expect(values(await peer.received()) == ["SET_PIN 123456"])
        #expect(!program.everything.contains("123456"))
    }

    @Test("PUK and words do not stay in the terminal of a pinentry without windows", arguments: ["tty", "gtk2:curses"])
    func revealed(flavor: String) async throws {
        let programs = try Programs()
        try programs.addPinentry(["123456", "OK", "OK", "able absorb access"], flavor: flavor)
        let peer = try ScriptedPeer { $0.playSetup() }
        let program = try badgectl(
            peer,
            "wallet",
            "setup",
            "--pinentry",
            hasTerminal: true,
            environment: programs.environment.merging(["TERM": "xterm"]) { $1 }
        )
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(programs.log.contains { $0.contains("1234 5678 9012") })
        #expect(program.text(.terminal).split(separator: "\u{1b}[H\u{1b}[2J\u{1b}[3J").count == 3)
    }

    /// The user at a window with buttons.
    private struct Buttons: AnswerSource {
        let answer: Choice.Answer

        func ask(_ form: TypedSecretForm) async -> TypedAnswer { .noTerminal }
        func askToContinue() async -> TypedAnswer { .noTerminal }
        func ask(_ prompt: String) async -> TypedAnswer { .noTerminal }
        func reveal(_ text: String) async -> TypedAnswer { .noTerminal }
        func choose(_ choice: Choice) async -> Choice.Answer? { choice.yes == "Delete" ? answer : nil }
    }

    @Test(
        "a window asks before something is deleted",
        arguments: [
            (.yes, nil), (.no, "to go on, choose Delete"), (.cancelled, "to go on, choose Delete"),
            (.failed, CommandFailure.noPinentry.hint), (.tooLong, CommandFailure.tooLongForWindows.hint),
        ] as [(Choice.Answer, String?)]
    )
    func confirmation(answer: Choice.Answer, hint: String?) async throws {
        let invocation = try Invocation.parse(["mpin", "delete", "alice"])
        var failure: CommandFailure?
        do {
            try await Confirmation.ask(Buttons(answer: answer), invocation, "This deletes alice.", notDone: "no") { _ in
            }
        } catch {
            failure = error as? CommandFailure
        }
        #expect(failure?.hint == hint)
    }

    @Test("Without pinentry --pinentry is an error, as with --pin-stdin")
    func missing() async throws {
        let peer = try ScriptedPeer { _ in }
        let arguments = ["--socket", peer.path, "auth", Self.url, "--pinentry"]
        let program = try RunningProgram("badgectl", arguments, environment: ["PATH": "/nowhere"])
        await program.ends(1, sayingFirst: "badgectl: error: pinentry cannot be used here\nhint: install ")
        let both = try RunningProgram("badgectl", arguments + ["--pin-stdin"])
        #expect(await both.exitCode == 2)
    }

    /// Plays a browser's authentication.
    private func browserStarts(_ peer: ScriptedPeer.Connection) {
        peer.servesBrowsers()
        peer.send(#"{"msg":"AUTH"}"#)
        peer.send(Say.rights())
        peer.answer("GET_CERTIFICATE", Say.certificate)
        peer.command("ACCEPT")
        peer.send(Say.insertCard)
        peer.answer("GET_READER_LIST", Say.list(Say.reader(left: nil)))
        peer.ask("PIN")
        peer.send(Say.authenticated)
    }

    @Test("On a desktop the agent needs no terminal: notifications say what to do, and pinentry asks")
    func desktop() async throws {
        let programs = try Programs()
        try programs.addPinentry(["OK", "123456"])
        try programs.addNotifySend()
        let peer = try ScriptedPeer { browserStarts($0) }
        var environment = programs.environment
        environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nowhere"
        let program = try badgectl(peer, "agent", "--pinentry", environment: environment)
        for _ in 0..<2 { #expect(await program.prints("Waiting for browsers.", on: .error)) }
        #expect(await program.exitCode(after: SIGINT) == 130)
        let lines = program.text(.error).split(separator: "\n")
        for text in [
            "A browser asks you to prove your identity.", "Put the ID card on the reader.",
            "The service has received the data.",
        ] { #expect(lines.contains("notification: ID card \(text)"), "\(lines)") }
        #expect(values(await peer.received()) == ["SET_USER_INTERFACE -", "SET_PIN 123456"])
        let service = "Service: A [2Jservice%0AWebsite: https://a.example%0APurpose: Test"
        #expect(programs.log.contains("SETDESC The card needs the PIN.%0A%0A\(service)"), "\(programs.log)")
    }

    @Test("When badged is restarted, the agent registers again")
    func restart() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("SET_USER_INTERFACE", #"{"active":true,"msg":"USER_INTERFACE"}"#)
            peer.hangUp()
        } others: { peer in
            peer.servesBrowsers()
        }
        let program = try badgectl(peer, "agent")
        #expect(await program.prints("Waiting until it runs again.", on: .error))
        #expect(await program.prints("Waiting for browsers.", on: .error))
        #expect(await program.exitCode(after: SIGINT) == 130)
    }

    @Test("Texts of services cannot add commands of pinentry or markup of notifications")
    func escaping() {
        #expect(Pinentry.escaped("a%\nGETPIN\r") == #"a%25%0AGETPIN\u{d}"#)
        #expect(Pinentry.escaped("a\r\nGETPIN\u{1B}[2J") == #"a\u{d}%0AGETPIN\u{1b}[2J"#)
        #expect(Pinentry.escaped(String(repeating: "\n", count: 5000)).utf8.count <= 1000)
        #expect(Notifier.markup("<b>&") == "&lt;b&gt;&amp;")
        // A mark behind a sign makes another character of both, but no other byte.
        for mark in ["\u{301}", "\u{200D}", "\u{FE0F}", "\u{1F3FB}"] {
            let escaped = Array(Pinentry.escaped("%\(mark)1B[2J\n\(mark)%0AGETPIN").utf8)
            #expect(escaped.starts(with: "%25".utf8) && !escaped.contains(0x0A))
            // Three signs: two of the text, and the line end.
            #expect(
                escaped.split(separator: 0x25).map { Array($0.prefix(2)) } == ["25", "0A", "25"].map { Array($0.utf8) }
            )
            let markup = Notifier.markup("<\(mark)b>\(mark)&\(mark)")
            #expect(markup.utf8.allSatisfy { $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">") })
            #expect(markup.utf8.starts(with: "&lt;".utf8))
        }
        #expect(Notifier.markup("a\u{1B}[2J\u{202E}") == #"a\u{1b}[2J\u{202e}"#)
        let name = String(repeating: "\u{323}\u{301}", count: 2000)
        let shown = Pinentry.pages("a\(name)\nthe end").flatMap { $0.utf8.filter { $0 != 0x0A } }
        #expect(shown == Array("a\(name)the end".utf8), "nothing is cut")
        let pages = Pinentry.pages((0..<100).map { "line \($0) of the terms" }.joined(separator: "\n"))
        #expect(pages.count > 1 && pages.allSatisfy { Pinentry.escaped($0).utf8.count <= 1000 })
        #expect(pages.joined(separator: "\n").hasSuffix("line 99 of the terms"))
    }

    @Test("A service cannot fill more windows than a person reads")
    func pages() throws {
        func lines(_ count: Int) -> String {
            (0..<count).map { "line \($0) of the terms of usage" }.joined(separator: "\n")
        }
        func pages(_ text: Int, _ appendix: Int) -> [String]? {
            PinentrySource.pages(
                Choice(
                    text: lines(text),
                    appendix: Choice.Appendix(title: "Terms", text: lines(appendix), elsewhere: "elsewhere"),
                    yes: "Agree"
                )
            )
        }
        let short = try #require(pages(20, 20))
        #expect(short.last?.hasSuffix("line 19 of the terms of usage") == true)
        let long = try #require(pages(20, 5000))
        #expect(long.count <= 10 && long.last?.hasSuffix("line 19 of the terms of usage\n\nelsewhere") == true)
        // Each page of foreign words says whose they are, and nothing of it is cut.
        let some = try #require(pages(20, 100))
        let foreign = some.filter { $0.hasPrefix("Terms, in the words of the service:\nline") }
        #expect(foreign.count > 2 && some.allSatisfy { Pinentry.escaped($0).utf8.count <= 1000 })
        #expect(foreign.map { $0.split(separator: "\n").count - 1 }.reduce(0, +) == 100)
        #expect(
            some.allSatisfy { !Pinentry.escaped($0).hasSuffix("...") && Pinentry.escaped($0).hasSuffix($0.suffix(4)) }
        )
        // What must be read is never cut.
        #expect(pages(5000, 1) == nil)
    }

    @Test("JSON on a terminal has escapes for what could control it, and means the same")
    func json() throws {
        let text = "{\"a\":\"\u{9B}2J\u{202E}x\u{7F}\u{2028}\u{E0001}\u{E9}\\n\"}"
        let shown = text.printableJSON
        #expect(shown == #"{"a":"\u009b2J\u202ex\u007f\u2028\udb40\udc01é\n"}"#)
        #expect(try JSON(shown.utf8) == JSON(text.utf8))
    }

    @Test("A web page cannot cause notifications without end")
    func notifications() {
        var limit = NotificationLimit()
        let start = ContinuousClock.now
        let shown = (0..<600).count { limit.admits(start + .milliseconds(100 * $0)) }
        #expect(shown == 10)
        let isLaterShown = limit.admits(start + .seconds(61))
        #expect(isLaterShown)
    }

    @Test(
        "A pinentry that breaks the protocol is one that cannot be used",
        arguments: ["OK\nINQUIRE QUALITY\n", "OK\n# \(String(repeating: "x", count: 1000))\n", "hello\n"]
    )
    func broken(answers: String) async throws {
        let programs = try Programs()
        try programs.addPinentry(saying: answers)
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("PIN", Say.reader()))
            peer.command("CANCEL")
            peer.send(Say.failed("User_Cancelled"))
        }
        let program = try badgectl(peer, "change-pin", "--pinentry", environment: programs.environment)
        #expect(await program.exitCode == 1)
        let error = "badgectl: error: pinentry cannot be used here\n"
        #expect(program.text(.error).contains(error), "\(program.everything)")
    }

    // MARK: send --pinentry

    private static let asks =
        #"{"cmd":"ASK_SECRET","request":"r","kind":"PIN","question":7,"digits":[5,6],"#
        + #""title":"T","description":"Für <b>wen</b>","prompt":"P:","advice":"Sechs Ziffern","ok":"Weiter","cancel":"Ende","show":"Zeigen"}"#

    @Test("send --pinentry asks for a secret with the words of its program, and only badged gets the secret")
    func sendAsks() async throws {
        let programs = try Programs()
        try programs.addPinentry(["1%32", "12345%36"])
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(Say.started)
            peer.send(Say.enter("PIN", Say.reader()))
            peer.command("SET_PIN")
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "send", "--pinentry", input: nil, environment: programs.environment)
        program.type("{\"cmd\":\"RUN_CHANGE_PIN\"}\n")
        #expect(await program.prints("ENTER_PIN", on: .output))
        program.type(Self.asks + "\n")
        // The answer of badged may come first.
        let answers = [#"{"msg":"SECRET_ASKED","outcome":"sent","request":"r"}"#, Say.changed]
        try await until { answers.allSatisfy { program.text(.output).contains($0) } }
        program.endInput()
        #expect(await program.exitCode == 0)
        #expect(values(await peer.received()) == ["SET_PIN 123456"])
        #expect(await peer.received().contains { $0.contains(#""question":7"#) })
        let log = programs.log
        #expect(log.contains("OPTION default-tt-visi=Zeigen"))
        for line in ["SETTITLE T", "SETDESC Für <b>wen</b>", "SETPROMPT P:", "SETERROR Sechs Ziffern", "SETOK Weiter"] {
            #expect(log.contains(line))
        }
        #expect(!(program.everything + log.joined()).contains("123456"))
    }

    @Test(
        "send --pinentry says why there is no secret",
        arguments: [
            ("echo ERR 83886179 cancelled", asks, "cancelled"), ("exit", asks, "failed"), (nil, asks, "failed"),
            ("exit", asks.replacing("[5,6]", with: "[]"), "invalid"),
            ("exit", asks.replacing("PIN", with: "X"), "invalid"),
        ]
    )
    func sendAsksInVain(reaction: String?, line: String, outcome: String) async throws {
        let programs = try Programs()
        if let reaction { try programs.addPinentry(reacting: reaction) }
        let peer = try ScriptedPeer { _ in }
        let environment = ["PATH": programs.folder, "LC_ALL": "C.UTF-8"]
        let program = try badgectl(peer, "send", "--pinentry", input: nil, environment: environment)
        program.type(line + "\n")
        #expect(await program.prints(#""outcome":"\#(outcome)""#, on: .output))
        program.endInput()
        #expect(await program.exitCode == 0)
    }

    @Test("send --pinentry closes a window whose prompt is over", arguments: [Say.cancelled, Say.insertCard, nil])
    func sendWithdraws(message: String?) async throws {
        let programs = try Programs()
        try programs.addPinentry(reacting: "echo a window is open >&2; exec sleep 600")
        let peer = try ScriptedPeer { peer in
            peer.command("SHOWN")
            if let message { peer.send(message) }
        }
        let program = try badgectl(peer, "send", "--pinentry", input: nil, environment: programs.environment)
        program.type(Self.asks + "\n")
        #expect(await program.prints("a window is open", on: .error))
        program.type("{\"cmd\":\"SHOWN\"}\n")
        if message == nil { program.endInput() }
        #expect(await program.prints(#""outcome":"void""#, on: .output))
        program.endInput()
        // Standard error ends only when pinentry has ended, too.
        #expect(await program.exitCode == 0)
    }

    @Test(
        "send --pinentry finds the address of a service in a link",
        arguments: [
            ("eid://127.0.0.1:24727/eID-Client?tcTokenURL=https%3A%2F%2Fa.example%2Ft", #""https://a.example/t""#),
            ("eid://x", "null"),
        ]
    )
    func sendFindsService(link: String, address: String) async throws {
        let peer = try ScriptedPeer { _ in }
        let program = try badgectl(peer, "send", "--pinentry", input: nil)
        program.type("{\"cmd\":\"FIND_SERVICE\",\"request\":1,\"link\":\"\(link)\"}\n")
        #expect(await program.prints(#"{"msg":"SERVICE","tcTokenURL":\#(address),"request":1}"#, on: .output))
        program.endInput()
        #expect(await program.exitCode == 0)
    }
}
