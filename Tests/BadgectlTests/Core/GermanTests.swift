// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import Foundation
import Host
import TestSupport
import Testing

@testable import Text
@testable import badgectl

/// The catalogue of po/de.po, in a folder for BADGED_LOCALES.
private struct German {
    private let folder = Result { try TemporaryFolder() }
    let texts: [(key: String, value: String)]

    /// `isMarked`: instead of the German, each text is the English one in «marks», without the values in it.
    init(isMarked: Bool = false) throws {
        let source = URL(filePath: #filePath).pathComponents.dropLast(4).joined(separator: "/").dropFirst()
        let known = try Self.texts(String(contentsOfFile: "\(source)/po/de.po", encoding: .utf8))
        texts = isMarked ? known.map { $0.key.isEmpty ? $0 : ($0.key, Self.marked($0.key)) } : known
        let path = try folder.get().path + "/de/LC_MESSAGES"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Data(file).write(to: URL(filePath: path + "/badged.mo"))
    }

    private static func marked(_ text: String) -> String { "«\(text.replacing(/\{\d+\}/) { "»\($0.output)«" })»" }

    /// What makes a program German.
    var environment: [String: String] {
        get throws { ["LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de", "BADGED_LOCALES": try folder.get().path] }
    }

    /// The catalogue as msgfmt makes it.
    var file: [UInt8] {
        func word(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) } }
        var (keys, values, content): ([UInt8], [UInt8], [UInt8]) = ([], [], [])
        for text in texts {
            keys += word(text.key.utf8.count) + word(28 + 16 * texts.count + content.count)
            content += Array(text.key.utf8) + [0]
            values += word(text.value.utf8.count) + word(28 + 16 * texts.count + content.count)
            content += Array(text.value.utf8) + [0]
        }
        return [0x9504_12DE, 0, texts.count, 28, 28 + 8 * texts.count, 0, 0].flatMap(word) + keys + values + content
    }

    private static func texts(_ po: String) throws -> [(key: String, value: String)] {
        var texts: [(key: String, value: String)] = []
        var isValue = false
        for line in po.split(separator: "\n") where !line.hasPrefix("#") {
            if line.hasPrefix("msgid ") { texts.append(("", "")) }
            if line.hasPrefix("msg") { isValue = line.hasPrefix("msgstr ") }
            let quoted = Data(line.drop { $0 != "\"" }.utf8)
            let text = try JSONDecoder().decode(String.self, from: quoted)
            if isValue { texts[texts.count - 1].value += text } else { texts[texts.count - 1].key += text }
        }
        return texts
    }
}

private let slowly: Phrase = "phones find this host slowly"

/// The members of a message for a text of badged.
private func told(_ name: StaticString, _ phrase: Phrase) -> String {
    String(decoding: JSONWriter.bytes { $0.member(name, phrase) }.dropFirst().dropLast(), as: UTF8.self)
}

@Suite("badgectl: German", .timeLimit(.minutes(15))) struct GermanTests {
    @Test(
        "what badged says in English is told in German, with its names",
        arguments: [
            (
                #"{"msg":"HEALTH","checks":[{"name":"bluetooth","ok":true},{"name":"trustAnchors","ok":false,"#
                    + #""cause":"no country authority is trusted, so every authentication fails","#
                    + told(
                        "advice",
                        "install the newest AusweisApp (\("https://x/y")), then sudo badgectl anchors import"
                    )
                    + "}]}",
                """
                gut    Bluetooth
                FEHLER Zertifizierungsstellen: keiner Zertifizierungsstelle wird vertraut, deshalb schlägt jede Anmeldung fehl: \
                die neueste AusweisApp installieren (https://x/y), dann sudo badgectl anchors import

                """
            ),
            (
                #"{"msg":"HEALTH","checks":[{"name":"mdoc","ok":false,"optional":true,"#
                    + told(
                        "cause",
                        "\(slowly); \(Phrase("bluetoothd keeps a file about each phone in /var/lib/bluetooth"))"
                    )
                    + #","advice":"unknown words about [LE] A = 1"}]}"#,
                """
                fehlt  Telefone über Bluetooth: Telefone finden diesen Rechner langsam; bluetoothd behält eine Datei über jedes Telefon in \
                /var/lib/bluetooth: unknown words about [LE] A = 1

                """
            ),
            (
                #"{"msg":"HEALTH","checks":[{"name":"nfc pn532_uart:/dev/ttyUSB0","ok":true},"#
                    + #"{"name":"remote share","ok":true},{"name":"remote pairings","ok":true},{"name":"panel Tür","ok":true},"#
                    + #"{"name":"wallet card","ok":true},{"name":"new","ok":true},"#
                    + #"{"name":"bluetooth","ok":false,"optional":true,"errorAgo":300000,"#
                    + #""cause":"no connection to the system's D-Bus","advice":"systemctl start dbus"},"#
                    + #"{"name":"bluetoothAccess","ok":false,"unknown":true,"#
                    + told("cause", "unknown until \(Phrase("bluetooth")) is good")
                    + #"},{"name":"remote","ok":false,"optional":true,"#
                    + told(
                        "advice",
                        "the program \("badged-remote") ended unexpectedly; it is started again in \(4) s"
                    )
                    + "}]}",
                """
                gut    NFC pn532_uart:/dev/ttyUSB0
                gut    Verliehene Lesegeräte
                gut    Kopplungen
                gut    Türzentrale Tür
                gut    Wallet-Karte
                gut    new
                fehlt  Bluetooth seit 5 Min.: keine Verbindung zum D-Bus des Systems: systemctl start dbus
                ?      Zugriff auf Bluetooth: unbekannt, bis „Bluetooth“ gut ist
                fehlt  Lesegeräte über das Netz: das Programm badged-remote ist unerwartet beendet; es wird in 4 s neu \
                gestartet

                """
            ),
        ]
    )
    func health(answer: String, output: String) async throws {
        let german = try German()
        let peer = try ScriptedPeer { $0.answer("GET_HEALTH", answer) }
        let program = try badgectl(peer, "health", environment: german.environment)
        _ = await program.exitCode
        #expect(program.text(.output) == output)
    }

    /// The words of a text that are in no «marks», and that are no words of the command line or of a file.
    private func words(_ text: String, outside known: Set<String>) -> [String] {
        var rest = text
        while let close = rest.firstIndex(of: "»"), let open = rest[..<close].lastIndex(of: "«") {
            rest.replaceSubrange(open...close, with: " ")
        }
        let lines = rest.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        // The line below the purpose of an example is a command.
        let prose = lines.indices.filter { $0 == 0 || !lines[$0 - 1].hasPrefix("  #") }.map { lines[$0] }
        // A path, an address and a number are the same in each language.
        let texts = prose.flatMap { $0.split(whereSeparator: \.isWhitespace) }
            .filter { text in !text.contains { $0 == "/" || $0.isNumber } }
        let words = texts.flatMap { $0.split { !$0.isLetter && $0 != "-" } }.map(String.init)
        return words.filter { $0.count > 2 && $0 != $0.uppercased() && !$0.hasPrefix("--") && !known.contains($0) }
    }

    private static let names: Set<String> = {
        let commands = CommandTable.commands
        let choices = commands.flatMap { [$0.operand] + $0.options.map(\.value) }.compactMap { $0?.choices }
        return Set(
            ["badgectl", "help", "badged-report", "txt"] + commands.map(\.name)
                + commands.flatMap(\.actions).map(\.name)
                + choices.flatMap(\.self) + HelpTopic.names + Permissions.all.words
        )
    }()

    @Test(
        "each text of the help is translated",
        arguments: [["--help"]] + HelpTopic.names.map { ["help", $0] }
            + CommandTable.commands.map { ["help", $0.name] }
            + CommandTable.commands.flatMap { command in command.actions.map { ["help", command.name, $0.name] } }
    )
    func help(arguments: [String]) async throws {
        let marked = try German(isMarked: true)
        let program = try RunningProgram("badgectl", arguments, environment: marked.environment)
        #expect(await program.exitCode == 0)
        #expect(program.text(.output).contains("«"))
        #expect(words(program.text(.output), outside: Self.names) == [])
    }

    @Test("what commands say about cards, keys and devices is translated")
    func answers() async throws {
        let marked = try German(isMarked: true)
        let folder = try TemporaryFolder()
        try folder.write("badged.conf", Array("[eid]\ntrust_anchors = \(folder.path)\n".utf8))
        let daemon = try await RunningDaemon(
            ["--no-ble", "--no-nfc", "--config", folder.path + "/badged.conf"],
            in: folder,
            environment: ["STATE_DIRECTORY": folder.path + "/state"]
        )
        // Names of readers, keys, authorities, algorithms and files, and words of the protocol that people type.
        let names = """
            badged dev virtual scanners mgmt bluez Simulator Office pkoc UTO ecdsa-sha brainpoolP C UT O test documents \
            PACE-CAM CAM CA DG AES csca mdoc etc conf none file ISO \
            trustAnchors bluetooth network store documentAnchors mdocAnchors records remote announcements browserPort \
            spaces drivers
            """
        let known = Self.names.union(names.split { !$0.isLetter && $0 != "-" }.map(String.init))
        for (arguments, input) in [
            (["status"], ""), (["readers"], ""), (["readers", "--identify"], ""), (["health"], ""),
            (["document", "--pin-stdin", "--groups", "1"], "654321\n"), (["document", "--pin-stdin"], "111111\n"),
            (["change-pin", "--pin-stdin"], "12\n"), (["change-pin", "--pin-stdin"], "111111\n"), (["keys"], ""),
            (["keys", "new", "--label", "Office"], ""), (["keys"], ""), (["keys", "export", "Other"], ""),
            (["otp", "Office"], ""), (["keys", "delete", "Office"], ""), (["endpoint"], ""),
            (["wallet", "pin"], ""), (["wallet", "status"], ""), (["mpin", "users"], ""),
            (["mpin", "login", "Other"], ""),
            (["remote", "list"], ""), (["remote", "forget", "Other"], ""), (["scan"], ""), (["open"], ""),
            (["irk"], ""),
            (["agent"], ""), (["documents", "anchors", "list", "--folder", folder.path], ""),
            (["documents", "anchors", "import", "--folder", folder.path, "/none"], ""),
            (["documents", "anchors", "import", "--folder", folder.path, "/etc/passwd"], ""),
            (["anchors"], ""), (["anchors", "import", "/etc/passwd"], ""), (["report", "/none/none"], ""),
            (["metrics", "--output", "/none/none"], ""), (["scan", "--replay", "/etc/passwd"], ""),
            (["wallet", "transfer", "alice", "bob", "1.0 EOS", "--yes"], ""),
        ] as [([String], String)] {
            let program = try RunningProgram(
                "badgectl",
                ["--socket", daemon.path] + arguments,
                input: input,
                environment: marked.environment
            )
            _ = await program.exitCode
            let said = program.text(.output) + "\n" + program.text(.error)
            #expect(words(said, outside: known.union(["Other", "passwd"])) == [], "\(arguments): \(said)")
        }
    }

    @Test("what a new wallet card asks and shows is translated")
    func walletSetup() async throws {
        let marked = try German(isMarked: true)
        let peer = try ScriptedPeer { $0.playSetup() }
        let program = try badgectl(peer, "wallet", "setup", hasTerminal: true, environment: marked.environment)
        let known = Self.names.union(PlayedWallet.words + ["address"])
        for (prompt, answer) in [
            ("new PIN»: ", "123456"), ("Repeat the »«new PIN", "123456"), ("written it down: »", ""),
            ("written it down: »", ""), ("11«»: ", "able absorb access"),
        ] {
            #expect(await program.prints(prompt, typing: answer + "\n"), "\(program.everything)")
        }
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(words(program.dialogue + program.text(.output), outside: known) == [], "\(program.everything)")
    }

    @Test("what a card shall sign is shown in German, and its own names stay as they are")
    func facts() async throws {
        let german = try German()
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", PlayedWallet.ready())
            peer.command("WALLET_TRANSFER")
            peer.send(PlayedWallet.operationStarted("transfer"))
            peer.prompt(PlayedWallet.request(1), "CANCEL")
            peer.send(PlayedWallet.result("transfer", 0))
        }
        let program = try badgectl(
            peer,
            "wallet",
            "transfer",
            "alice",
            "bob",
            "1.31 EOS",
            hasTerminal: true,
            environment: german.environment
        )
        #expect(await program.prints("[j/N] ", typing: "n\n"), "\(program.everything)")
        #expect(await program.exitCode == 1)
        let rows = program.dialogue.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        for row in [
            "App D", "sagt an order", "Konto alice@active", "Aktion transfer aus eosio.token", "durch alice@active",
            "quantity 1.3100 EOS", "läuft ab 2026-11-22 17:30:00 UTC",
        ] {
            #expect(rows.contains(row), "\(row) in \(rows)")
        }
    }

    private static let remote =
        #"{"msg":"REMOTE","enabled":true,"share":true,"fingerprint":"00","lenders":[{"fingerprint":"11","#
        + #""name":"Telefon","paired":false,"connected":false,"pairing":true}],"borrowers":[],"used":[],"#
        + #""pairing":false}"#

    @Test("the pairing with a phone is German, and so is its failure", arguments: [["pair"], ["share", "--pair"]])
    func pairing(arguments: [String]) async throws {
        let german = try German()
        let peer = try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("GET_REMOTE", Self.remote)
            if arguments == ["pair"] {
                peer.command("PAIR_READER")
                peer.send(
                    #"{"msg":"ENTER_PAIRING_CODE","question":1,"name":"Telefon","fingerprint":"11","ownFingerprint":"00"}"#
                )
                peer.command("SET_PAIRING_CODE")
                peer.send(#"{"msg":"PAIR_READER","success":false,"error":"The card was removed"}"#)
            } else {
                peer.command("OPEN_PAIRING")
                peer.send(#"{"msg":"PAIRING_CODE","code":"0777","fingerprint":"00","seconds":120}"#)
                peer.send(#"{"msg":"OPEN_PAIRING","success":false,"error":"The card was removed"}"#)
            }
        }
        let program = try RunningProgram(
            "badgectl",
            ["remote", "--socket", peer.path, "--pin-stdin"] + arguments,
            input: "0778\n",
            environment: german.environment
        )
        await program.ends(1, saying: "badgectl: Fehler: Die Karte wurde entfernt\nRat: ")
        let said = program.text(.error)
        #expect(said.contains("Fingerabdruck") && said.contains("Die vier Ziffern schützen nicht"), "\(said)")
        for word in ["Pairing", "Type", "fingerprint", "host", "digits"] { #expect(!said.contains(word), "\(said)") }
    }

    @Test("a wrong PIN is named in plain German")
    func wrongSecret() async throws {
        let german = try German()
        let daemon = try await RunningDaemon(["--no-ble", "--no-nfc"], in: TemporaryFolder())
        let program = try badgectl(
            daemon,
            "change-pin",
            "--pin-stdin",
            input: "111111\n",
            environment: german.environment
        )
        await program.ends(1, saying: "badgectl: Fehler: PIN falsch: die PIN wurde nicht geändert\nRat: ")
        #expect(program.text(.error).contains("\nPIN falsch.\n"), "\(program.everything)")
    }

    @Test("the help about permissions names each of them")
    func permissions() { #expect(HelpTopic.permissionList.map(\.0) == Permissions.all.words) }

    @Test("the help about permissions has lines that badged takes")
    func accessLines() throws {
        let forms = HelpTopic.permissions.text.matches(of: /(\S+) = LIST/).map { String($0.1) }
        #expect(forms.count == 3)
        let folder = try TemporaryFolder()
        for form in forms {
            let line = form.replacing("NAME", with: "root") + " = readers"
            try Data("[access]\n\(line)\n".utf8).write(to: URL(filePath: folder.path + "/conf"))
            #expect(throws: Never.self, "\(line)") { try Configuration(path: folder.path + "/conf") }
        }
    }

    @Test("the help has each number that the manual page has for the end of badgectl")
    func exitCodes() throws {
        let source = URL(filePath: #filePath).pathComponents.dropLast(4).joined(separator: "/").dropFirst()
        let page = try String(contentsOfFile: "\(source)/docs/man/badgectl.1", encoding: .utf8)
        let part = try #require(
            page.components(separatedBy: ".SH EXIT STATUS").last?.components(separatedBy: ".SH").first
        )
        let numbers = part.matches(of: /(?m)^\\fB(\d+)\\fR$/).map { String($0.1) }
        #expect(Help.exitStatus.map(\.0) == numbers)
    }

    @Test(
        "each text about a wrong command line is translated",
        arguments: CommandTable.commands.flatMap { command in
            [
                [command.name, "--nonsense"], [command.name, "x1", "x2", "x3", "x4", "x5"],
                [command.name, "--timeout", "x"],
            ]
                + command.actions.map { [command.name, $0.name, "x1", "x2", "x3", "x4", "x5"] }
        } + [
            [], ["x1"], ["help", "x1"], ["--socket"], ["auth", "https:"], ["auth", "eid://x"], ["mdoc", "--over", "x"],
        ]
    )
    func usage(arguments: [String]) async throws {
        let marked = try German(isMarked: true)
        let folder = try TemporaryFolder()
        let socket = ["--socket", "\(folder.path)/none"]
        let program = try RunningProgram("badgectl", socket + arguments, environment: marked.environment)
        _ = await program.exitCode
        let known = Self.names.union(arguments.flatMap { $0.split { !$0.isLetter && $0 != "-" } }.map(String.init))
        #expect(arguments.isEmpty || program.text(.error).contains("«"))
        #expect(words(program.text(.error), outside: known) == [])
    }

    @Test("the consent is asked for in German, with what a service says below each other")
    func consent() async throws {
        let german = try German()
        let peer = try ScriptedPeer.authentication { peer in
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
        }
        let program = try badgectl(
            peer,
            "auth",
            "https://a.example/token",
            hasTerminal: true,
            environment: german.environment
        )
        #expect(await program.prints("[j/N", typing: "n\n"))
        #expect(await program.exitCode == 1)
        #expect(
            program.dialogue.hasPrefix(
                """
                Anbieter    A [2Jservice
                Webseite    https://a.example
                Zweck       Test
                Aussteller  An issuer
                gültig      2026-01-01 bis 2026-12-31
                Der Anbieter verlangt:
                """
            ),
            "\(program.dialogue)"
        )
    }

    @Test("a card without keys is confirmed with the words that the question names", arguments: [true, false])
    func reset(isRight: Bool) async throws {
        let german = try German()
        let peer = try ScriptedPeer { peer in
            guard isRight else { return }
            peer.command("RUN_WALLET")
            peer.send(PlayedWallet.complete("RESET_CARD", PlayedWallet.card))
        }
        let program = try badgectl(
            peer,
            "wallet",
            "reset-card",
            "--key-uid",
            "",
            hasTerminal: true,
            environment: german.environment
        )
        #expect(await program.prints("„keine Schlüssel“: "), "\(program.everything)")
        program.type(isRight ? "Keine Schlüssel\n" : "no keys\n")
        #expect(await program.exitCode == (isRight ? 0 : 1), "\(program.everything)")
    }

    @Test("what a cancelled workflow has changed on the card is told in German, in one language")
    func cancelledSetup() async throws {
        let german = try German()
        let change = told("change", "The card has the new PIN and PUK: keep both")
        let peer = try ScriptedPeer { peer in
            let message = PlayedWallet.interrupted("SETUP_DEVICE", "USER_CANCELED")
            peer.answer("RUN_WALLET", message.replacing(#""internalCode""#, with: change + #","internalCode""#))
        }
        let program = try badgectl(peer, "wallet", "setup", environment: german.environment)
        await program.ends(
            1,
            saying: "badgectl: Fehler: abgebrochen: die Karte wurde nicht eingerichtet. Die Karte hat"
        )
    }

    @Test("what is wrong with a file of a secret is German")
    func secretFile() async throws {
        let german = try German()
        let folder = try TemporaryFolder()
        let path = folder.path + "/pin"
        let arguments = [
            "--socket", "/none/s", "auth", "--automatic", "--rights", "all", "--pin-file", path, "https://a",
        ]
        let missing = try RunningProgram("badgectl", arguments, environment: german.environment)
        await missing.ends(1, saying: "Fehler: die Datei \(path) gibt es nicht\nRat: --pin-file berichtigen")
        try folder.write("pin", Array("123456".utf8))
        chmod(path, 0o644)
        let open = try RunningProgram("badgectl", arguments, environment: german.environment)
        await open.ends(1, saying: "Fehler: \(path) können andere Benutzer lesen\nRat: die Datei von --pin-file muss")
    }

    @Test("a wrong word gets its question in German")
    func suggestion() async throws {
        let german = try German()
        let program = try RunningProgram("badgectl", ["mdocs"], environment: german.environment)
        await program.ends(2, saying: "badgectl: Fehler: unbekannter Befehl mdocs\nRat: meinten Sie mdoc? ")
    }

    @Test(
        "refusals of badged are German",
        arguments: [
            (Failure(.init("A"), "there is no such key"), "diesen Schlüssel gibt es nicht"),
            (
                Failure(
                    .init("A"),
                    "badged cannot use its store: \(Phrase("there is no state folder ($STATE_DIRECTORY)"))",
                    advice: "check the folder and the disk"
                ),
                "badged kann seinen Speicher nicht benutzen: es gibt keinen Ordner für Daten ($STATE_DIRECTORY): "
            ),
            (
                Failure(.init("A"), "Remote readers are off", advice: "set [remote] enabled = yes"),
                "Lesegeräte über das Netz sind ausgeschaltet: "
            ),
            (
                Failure(.init("A"), "\(Phrase("the issuer")) cannot be reached: \("port 7 is closed")"),
                "badged hat abgelehnt: der Aussteller ist nicht erreichbar: port 7 is closed"
            ),
            // Nobody has translated it.
            (Failure(.init("A"), "a new text about \("a value")"), "badged hat abgelehnt: a new text about a value"),
        ]
    )
    func refusals(failure: Failure, words: String) async throws {
        let german = try German()
        let peer = try ScriptedPeer { $0.answer("GET_KEYS", #"{"msg":"INVALID",\#(told("error", failure.message))}"#) }
        let program = try badgectl(peer, "keys", "list", environment: german.environment)
        _ = await program.exitCode
        #expect(program.text(.error).contains(words), "\(program.everything)")
    }

    @Test("why a card cannot be asked is German")
    func identify() async throws {
        let german = try German()
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_READER_LIST", Say.list(Say.reader("B", left: 2)))
            peer.answer(
                "IDENTIFY_CARD",
                #"{"msg":"CARD_IDENTITY","name":"B","atr":"3b00","applications":[],"#
                    + told("fault", "The card in reader '\("B")' does not answer: take it out and put it in again")
                    + "}"
            )
        }
        let program = try badgectl(peer, "readers", "--identify", environment: german.environment)
        _ = await program.exitCode
        #expect(program.text(.output).contains("Die Karte im Lesegerät 'B'"), "\(program.everything)")
    }

    @Test("why an import leaves a file is German")
    func leftFiles() async throws {
        let german = try German()
        let folder = try TemporaryFolder()
        try folder.write("list.zip", [0x50, 0x4B, 5, 6])
        let program = try RunningProgram(
            "badgectl",
            ["mdoc", "anchors", "import", "--folder", folder.path, "\(folder.path)/list.zip"],
            environment: german.environment
        )
        _ = await program.exitCode
        #expect(program.text(.error).contains("list.zip: das ZIP-Archiv hat kein Verzeichnis"), "\(program.everything)")
        // What is known against a list.
        let faults = [
            DocumentAnchors.wrongSignature, DocumentAnchors.unknownRule, DocumentAnchors.notAnAuthority,
            DocumentAnchors.notChosen, DocumentAnchors.unusable,
        ]
        let reasons = AuthorityCheck.Reason.allCases.map(\.text) + faults.map(\.words)
        let known = Set(german.texts.filter { !$0.value.isEmpty }.map(\.key))
        #expect(reasons.map(\.key).filter { !known.contains($0) } == [])
    }

    @Test("elements of a phone that nobody asked for have their German names")
    func unasked() async throws {
        let german = try German()
        let document =
            #"{"docType":"org.iso.18013.5.1.mDL","verdict":"genuine","withheld":["given_name"],"#
            + #""unasked":["family_name"],"checks":{}}"#
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_READ_MDOC")
            peer.send(#"{"msg":"MDOC"}"#)
            peer.send(#"{"msg":"MDOC","success":true,"verdict":"genuine","documents":[\#(document)]}"#)
        }
        let program = try badgectl(peer, "mdoc", "--item", "given_name", environment: german.environment)
        _ = await program.exitCode
        let rows = program.text(.output).split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(rows.contains("nicht gefragt Familienname"), "\(program.everything)")
    }

    @Test("failures of the connection are German")
    func connection() async throws {
        let german = try German()
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/none"
        let program = try RunningProgram(
            "badgectl",
            ["--socket", path, "status"],
            environment: german.environment
        )
        let text = "Fehler: badged läuft nicht: kein Programm nimmt Verbindungen an \(path) an\nRat: starten: "
        await program.ends(3, saying: text)
    }

    @Test("a refused scan has its advice in German")
    func scan() async throws {
        let german = try German()
        let failure = Failure(
            .init("NoRadio"),
            "badged runs without the Bluetooth radio",
            advice: "set enabled = yes in [ble] of badged.conf, leave out the option --no-ble, and restart badged"
        )
        let answer =
            #"{"adapters":[],"msg":"SCAN","radio":false,"wanted":false,"# + told("error", failure.message) + "}"
        let peer = try ScriptedPeer { $0.answer("START_SCAN", answer) }
        let program = try badgectl(peer, "scan", environment: german.environment)
        await program.ends(
            1,
            saying: """
                Fehler: badged hat abgelehnt: badged läuft ohne Bluetooth
                Rat: in badged.conf unter [ble] enabled = yes setzen, die Option --no-ble weglassen und badged neu starten
                """
        )
    }

    @Test(
        "why a door reader was not opened is German, whether the opening had begun or not",
        arguments: [
            ("readerFailure", "the reader is revoked", "nicht geöffnet: der Türleser ist gesperrt (readerFailure)"),
            (
                "readerFailure", "the reader has ended the dialogue with error \(5)",
                "nicht geöffnet: der Türleser hat den Dialog mit dem Fehler 5 beendet (readerFailure)"
            ),
            (
                "bluetoothCommunicationFailed", "\(Phrase("the reader")) has ended the connection",
                "nicht geöffnet: der Leser hat die Verbindung beendet (bluetoothCommunicationFailed)"
            ),
            (
                "keyNotFound", "there is no active key \(Phrase("for PKOC readers")), or it has expired",
                "nicht geöffnet: es gibt keinen aktiven Schlüssel für Türleser mit PKOC, oder er ist abgelaufen (keyNotFound)"
            ),
            ("outOfRange", "the closest reader is not near enough", "der nächste Türleser ist nicht nah genug"),
        ] as [(status: String, reason: Phrase, words: String)],
        [true, false]
    )
    func opening(_ expected: (status: String, reason: Phrase, words: String), hasBegun: Bool) async throws {
        // A reader out of range is never connected.
        guard expected.status != "outOfRange" || !hasBegun else { return }
        let german = try German()
        let peer = try ScriptedPeer.opening { peer in
            peer.send(Say.doorReader)
            let members = #""openingType":"proximity","reader":"pkoc-A","state":"connecting","token":3"#
            if hasBegun { peer.answer("TRIGGER", #"{"msg":"OPENING",\#(members)}"#) }
            let result =
                #"{"msg":"OPENING_RESULT","durationMs":9,"status":"\#(expected.status)","#
                + #""token":\#(hasBegun ? "3" : "null"),"# + told("reason", expected.reason) + "}"
            if hasBegun { peer.send(result) } else { peer.answer("TRIGGER", result) }
        }
        let program = try badgectl(peer, "open", environment: german.environment)
        await program.ends(1, sayingFirst: "badgectl: Fehler: \(expected.words)\nRat: ")
    }

    @Test("a phrase that says something else than its text leaves the text in English")
    func hostile() async throws {
        let german = try German()
        let words = #"{"template":"Remote readers are off"}"#
        let peer = try ScriptedPeer {
            $0.answer("GET_KEYS", #"{"msg":"INVALID","error":"a new text","errorWords":\#(words)}"#)
        }
        let program = try badgectl(peer, "keys", "list", environment: german.environment)
        _ = await program.exitCode
        #expect(program.text(.error).contains("badged hat abgelehnt: a new text"), "\(program.everything)")
    }

    private static let lack: Phrase = .joined(
        [
            "no NFC reader is connected: connect one",
            "\("there is no Bluetooth adapter" as Phrase): \("plug one in" as Phrase)",
        ],
        by: "; "
    )
    private static let refusal =
        Failure(
            .init("ConnectionLost"),
            "The connection to the phone is lost: \("the phone refuses to go on: \("6F00")" as Phrase)",
            advice: "begin again"
        )
        .message

    @Test(
        "why no phone was read is told in German, with what helps",
        arguments: [
            (
                "EngagementUnsupported", Self.lack,
                "kein NFC-Lesegerät ist angeschlossen: eines anschließen; es gibt keinen Bluetooth-Adapter: einen anstecken"
            ),
            (
                "ConnectionLost", Self.refusal,
                "Die Verbindung zum Telefon ist abgerissen: das Telefon macht nicht weiter: 6F00: von vorn beginnen"
            ),
        ]
    )
    func phones(error: String, message: Phrase, output: String) async throws {
        let german = try German()
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_READ_MDOC")
            peer.send(#"{"msg":"MDOC"}"#)
            peer.send(#"{"msg":"MDOC","success":false,"error":"\#(error)","# + told("message", message) + "}")
        }
        let program = try badgectl(peer, "mdoc", "--over", "18", environment: german.environment)
        await program.ends(1, saying: output)
    }

    @Test(
        "a text that nobody knows stays as it is",
        arguments: ["plug one in; or not", "", "; ", "x\u{0}", "UDP port", "{0}"]
    )
    func unknown(text: String) { #expect(DaemonWords.text(text) == text) }
}
