// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Glibc
import TestSupport
import Testing

@testable import badgectl

@Suite("badgectl: the command line", .timeLimit(.minutes(5))) struct CommandLineTests {
    @Test(
        "Wrong usage ends with 2, an error and a hint",
        arguments: [
            (["nonsense"], "unknown command nonsense", "badgectl --help"),
            (["--nonsense"], "unknown option --nonsense", "badgectl --help"),
            (["chnge-pin"], "unknown command chnge-pin", "did you mean change-pin? badgectl --help"),
            (["stat"], "unknown command stat", "did you mean status? "),
            (["--sokket", "/x", "status"], "unknown option --sokket", "did you mean --socket? "),
            (["readers", "--wath"], "unknown option --wath", "did you mean --watch? "),
            // --for belongs to other commands.
            (["change-pin", "--frob"], "unknown option --frob", "badgectl change-pin --help"),
            (["documents", "anchor"], "documents has no action anchor", "did you mean anchors? "),
            (["help", "documents", "x"], "documents has no action x", "badgectl documents --help"),
            (["help", "documents", "anchors", "x"], "documents has no action x", "badgectl documents --help"),
            (
                ["closest", "moton"],
                "moton is not one of proximity, motion, seamless, applicationSpecific, enhancedTap",
                "did you mean motion? "
            ),
            (
                ["help", "statis"],
                "statis is not one of \((CommandTable.commands.map(\.name) + HelpTopic.names).joined(separator: ", "))",
                "did you mean status? "
            ),
            (
                ["change-pin", "--timeout", "long"], "--timeout needs a number of seconds from 0 to 86400",
                "--timeout 2.5"
            ),
            (["-x", "status"], "unknown option -x", "badgectl --help"),
            (["help", "wallet", "stup"], "wallet has no action stup", "did you mean setup? badgectl wallet --help"),
            (["help", "wallet", "setup", "x"], "wallet has no action x", "badgectl wallet --help"),
            (["help", "status", "x"], "status has no action x", "badgectl status --help"),
            (["status", "--watch"], "status has no option --watch", "badgectl status --help"),
            (["keys", "new", "--type", "totp"], "keys has no option --type", "badgectl keys --help"),
            (
                ["wallet", "setup", "--words", "13"], "--words 13: not one of 12, 15, 18, 21, 24",
                "badgectl wallet --help"
            ),
            (["status", "--json=yes"], "--json takes no value", "badgectl status --help"),
            (["status", "--socket"], "--socket needs PATH", "badgectl status --help"),
            (["status", "now"], "unexpected argument now", "badgectl status --help"),
            (["completion"], "completion needs bash, zsh, fish", "badgectl completion --help"),
            (["completion", "tcsh"], "tcsh is not one of bash, zsh, fish", "badgectl completion --help"),
            (["completion", "bash", "zsh"], "unexpected argument zsh", "badgectl completion --help"),
            (
                ["send", "--for", "soon", "--socket", "/x"], "--for needs a number of seconds from 0 to 86400",
                "--for 2.5"
            ),
            (["closest", "motion", "--code", "x"], "--code cannot be x", "from 0 to 16777215"),
            (["--socket=", "status"], "the path of the socket is empty", "1 to 107 bytes"),
        ] as [([String], String, String)]
    )
    func usage(arguments: [String], text: String, hint: String) async throws {
        let program = try RunningProgram("badgectl", arguments)
        await program.ends(2, printing: "")
        let lines = program.text(.error).split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first == "badgectl: error: \(text)")
        #expect(lines.last?.hasPrefix("hint: ") == true)
        #expect(lines.last?.contains(hint) == true)
    }

    @Test("the help has each command in one group, and each action has a help of its own")
    func helpByAction() async throws {
        let all = Help.text(for: nil)
        var place = all.startIndex
        for group in CommandGroup.allCases {
            let heading = try #require(all.range(of: "\n\(group.rawValue):\n"))
            #expect(heading.lowerBound > place)
            place = heading.lowerBound
        }
        for command in CommandTable.commands {
            #expect(all.split(separator: "\n").count { $0.hasPrefix("  \(command.name) ") } == 1, "\(command.name)")
            for action in command.actions {
                let text = Help.text(for: command, action)
                #expect(text.hasPrefix("Usage: badgectl \(command.name) \(action.usage) [OPTION...]\n"))
                #expect(action.options.allSatisfy { text.contains("  \($0) ") })
            }
        }
        #expect(all.split(separator: "\n").allSatisfy { $0.count <= Layout.columns })
        var texts: Set<String> = []
        for arguments in [
            ["help", "wallet", "setup"], ["wallet", "setup", "--help"], ["help", "wallet", "setup", "--help"],
        ] {
            let program = try RunningProgram("badgectl", arguments)
            #expect(await program.exitCode == 0)
            texts.insert(program.text(.output))
        }
        let text = try #require(texts.first)
        #expect(texts.count == 1 && text.contains("--own-puk") && !text.contains("--contract"))
        #expect(text.contains("setup shows the words") && !text.contains("prepare and save need no card"))
    }

    @Test(
        "Without badged every command says how to start it, and ends with 3",
        arguments: [
            ["status"], ["health"], ["readers"], ["readers", "--watch"], ["change-pin"], ["send"],
            ["status", "--json"],
        ]
    )
    func unreachable(arguments: [String]) async throws {
        let program = try RunningProgram("badgectl", arguments + ["--socket", "/nowhere/badged.sock"])
        await program.ends(3, printing: "")
        #expect(
            program.text(.error) == """
                badgectl: error: badged is not running: no program listens on /nowhere/badged.sock
                hint: start it: systemctl start badged; or name another socket with --socket

                """
        )
    }

    @Test(
        "Without --socket badgectl uses the socket of the system or of the user",
        .enabled(if: access("/run/badged/badged.sock", F_OK) != 0, "the badged of this machine would answer"),
        arguments: [
            ["XDG_RUNTIME_DIR": "/nowhere/u"], [:],
        ]
    )
    func socketPath(environment: [String: String]) async throws {
        let program = try RunningProgram("badgectl", ["status"], environment: environment)
        let path = environment.isEmpty ? "/run/badged/badged.sock" : "/nowhere/u/badged/badged.sock"
        await program.ends(3, saying: "no program listens on \(path)\n")
    }

    @Test("BADGED_SOCKET names the socket, and --socket wins")
    func environment() async throws {
        let environment = ["BADGED_SOCKET": "/nowhere/env.sock", "XDG_RUNTIME_DIR": "/nowhere/u"]
        let program = try RunningProgram("badgectl", ["status"], environment: environment)
        await program.ends(3, saying: "no program listens on /nowhere/env.sock\n")
        let other = try RunningProgram("badgectl", ["status", "--socket", "/nowhere/x"], environment: environment)
        await other.ends(3, saying: "no program listens on /nowhere/x\n")
    }

    @Test("badgectl help shows the same as --help")
    func helpCommand() async throws {
        let program = try RunningProgram("badgectl", ["help"])
        #expect(await program.exitCode == 0)
        let whole = try RunningProgram("badgectl", ["--help"])
        #expect(await whole.exitCode == 0)
        #expect(program.text(.output) == whole.text(.output))
        let command = try RunningProgram("badgectl", ["help", "scan"])
        #expect(await command.exitCode == 0)
        #expect(command.text(.output).hasPrefix("Usage: badgectl scan [OPTION...]\n"))
    }

    @Test("The help names every command and option, wherever --help stands")
    func help() async throws {
        for arguments in [["--help"], ["-h"], ["--socket", "/x", "--help"]] {
            let program = try RunningProgram("badgectl", arguments)
            #expect(await program.exitCode == 0)
            let text = program.text(.output)
            for command in CommandTable.commands { #expect(text.contains("\n  \(command.name)")) }
            for option in CommandTable.global { #expect(text.contains("\n  \(option.name)")) }
            for line in text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
        }
        for command in CommandTable.commands {
            for arguments in [[command.name, "--help"], ["--help", command.name]] {
                let program = try RunningProgram("badgectl", arguments)
                #expect(await program.exitCode == 0)
                let text = program.text(.output)
                #expect(text.hasPrefix("Usage: badgectl \(command.name)"))
                for option in command.options + CommandTable.global { #expect(text.contains("\n  \(option.name)")) }
                for line in text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
            }
        }
    }

    /// The parser finds an option by its name before it knows the command.
    @Test("an option takes a value in all commands or in none")
    func shapes() {
        for (name, options) in Dictionary(grouping: CommandTable.commands.flatMap(\.options), by: \.name) {
            #expect(Set(options.map { $0.value != nil }).count == 1, "\(name)")
        }
    }

    @Test("--version shows the version")
    func version() async throws {
        let program = try RunningProgram("badgectl", ["--version"])
        #expect(await program.exitCode == 0)
        #expect(program.text(.output).wholeMatch(of: /badgectl [0-9]+\.[0-9]+\.[0-9]+([~+][^\n]+)?\n/) != nil)
    }

    @Test("The shell of the completions understands them", arguments: CompletionCommand.shells)
    func completion(shell: String) async throws {
        let program = try RunningProgram("badgectl", ["completion", shell])
        #expect(await program.exitCode == 0)
        // Only where the shell is installed.
        for path in ["/bin/\(shell)", "/usr/bin/\(shell)"] where access(path, X_OK) == 0 {
            let check = try RunningProgram(path, ["-n"], input: program.text(.output))
            #expect(await check.exitCode == 0, "\(check.text(.error))")
            break
        }
    }

    private static func completed(_ words: [String]) async throws -> [String] {
        let program = try RunningProgram("badgectl", ["__complete"] + words)
        #expect(await program.exitCode == 0)
        return program.text(.output).split(separator: "\n").map(String.init)
    }

    @Test(
        "a file that cannot be written is noticed before anything is asked",
        arguments: [
            ["document", "--portrait"], ["document", "--record"], ["mdoc", "--item", "portrait", "--portrait"],
            ["scan", "--plot"], ["report"], ["report", "--card"],
        ],
        ["/none/file", "/etc"]
    )
    func unwritable(arguments: [String], path: String) async throws {
        let program = try RunningProgram("badgectl", ["--socket", "/none/badged.sock"] + arguments + [path])
        await program.ends(1, saying: "badgectl: error: cannot write \(path): ")
    }

    @Test(
        "a pipe and a link get no data of a person, and nobody waits for a reader of a pipe",
        arguments: [
            ["document", "--portrait"], ["document", "--record"], ["mdoc", "--item", "portrait", "--portrait"],
        ],
        [("pipe", "it is a pipe"), ("link", "it is a symbolic link")]
    )
    func personal(arguments: [String], file: (name: String, reason: String)) async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/\(file.name)"
        if file.name == "pipe" { mkfifo(path, 0o600) } else { symlink("\(folder.path)/nothing", path) }
        let program = try RunningProgram("badgectl", ["--socket", "/none/badged.sock"] + arguments + [path])
        await program.ends(1, saying: "badgectl: error: cannot write \(path): \(file.reason)")
    }

    @Test(
        "a device gets no data of a person",
        arguments: [
            ["document", "--portrait"], ["document", "--record"], ["mdoc", "--item", "portrait", "--portrait"],
        ]
    )
    func device(arguments: [String]) async throws {
        let program = try RunningProgram("badgectl", ["--socket", "/none/badged.sock"] + arguments + ["/dev/null"])
        await program.ends(1, saying: "badgectl: error: cannot write /dev/null: it is not a plain file")
    }

    @Test("a program is no folder for the files of a chip, and no phone is asked for a picture that cannot come")
    func refusedBefore() async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/program"
        try FileContent.write([], to: path)
        chmod(path, 0o755)
        let files = try RunningProgram("badgectl", ["--socket", "/none/s", "document", "--files", path])
        await files.ends(1, saying: "badgectl: error: cannot write to \(path): Not a directory")
        for question in [["--over", "18"], ["--item", "family_name"]] {
            let arguments = ["--socket", "/none/s", "mdoc", "--portrait", "\(folder.path)/face"] + question
            let program = try RunningProgram("badgectl", arguments)
            await program.ends(2, saying: "badgectl: error: --portrait needs the element portrait")
        }
    }

    @Test("readers --identify is not ignored beside other options", arguments: ["--watch", "--names"])
    func identify(option: String) async throws {
        let program = try RunningProgram("badgectl", ["--socket", "/none/s", "readers", "--identify", option])
        await program.ends(2, saying: "badgectl: error: --identify and \(option) exclude each other")
    }

    @Test(
        "yes and no are taken in both languages",
        arguments: [("y", "n"), (" YES ", "No"), ("j", "nein"), ("Ja", "N ")]
    )
    func answers(yes: String, no: String) {
        #expect(yes.isYes && !yes.isNo)
        #expect(no.isNo && !no.isYes)
    }

    @Test("what others may read is replaced by a file of the user alone")
    func replaced() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/old"
        try FileContent.write(Array("old".utf8), to: path)
        chmod(path, 0o644)
        try FileContent.writePersonal(Array("new".utf8), to: path)
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try FileContent.read(path, limit: 1024) == Array("new".utf8))
    }

    @Test("a disk that is full leaves the old file, and nothing else", arguments: [true, false])
    func fullDisk(isPersonal: Bool) throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/old"
        try FileContent.write(Array("old".utf8), to: path)
        let full: FileContent.Write = { bytes, file in
            _ = Output.write(Array(bytes.prefix(1)), to: file)
            errno = ENOSPC
            return false
        }
        let error = #expect(throws: CommandFailure.self) {
            if isPersonal {
                try FileContent.writePersonal(Array("new".utf8), to: path, by: full)
            } else {
                try FileContent.write(Array("new".utf8), to: path, by: full)
            }
        }
        #expect(error?.text.contains("No space left on device") == true)
        #expect(try FileContent.read(path, limit: 1024) == Array("old".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["old"])
    }

    @Test("a file that is written again keeps its rights, and a link leads to its file")
    func rewritten() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/plot.svg"
        try FileContent.write(Array("old".utf8), to: path)
        chmod(path, 0o644)
        try FileContent.write(Array("new".utf8), to: path)
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o644)
        let link = "\(folder.path)/link"
        symlink(path, link)
        try FileContent.write(Array("by the link".utf8), to: link)
        #expect(try FileContent.read(path, limit: 1024) == Array("by the link".utf8))
        #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["link", "plot.svg"])
    }

    @Test("a pipe that nobody reads is refused at once")
    func pipe() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/pipe"
        mkfifo(path, 0o600)
        #expect(throws: CommandFailure.self) { try FileContent.create(path) }
    }

    @Test(
        "the help of a command with words after it",
        arguments: [
            "documents anchors", "mdoc anchors", "anchors import", "documents anchors import", "documents anchors list",
            "documents anchors remove", "mdoc anchors import", "mdoc anchors list",
        ]
    )
    func secondWord(words: String) async throws {
        let parts = words.split(separator: " ").map(String.init)
        let program = try RunningProgram("badgectl", ["help"] + parts)
        #expect(await program.exitCode == 0)
        #expect(program.text(.output).hasPrefix("Usage: badgectl \(parts[0]) "), "\(program.everything)")
        #expect(try await Self.completed(["help", parts[0], ""]) == ["words", parts[1]])
    }

    @Test("Every command and every option is completed, and says what it is")
    func everything() async throws {
        let commands = try await Self.completed([""])
        #expect(commands == ["words"] + CommandTable.commands.map { "\($0.name)\t\($0.summary)" })
        for command in CommandTable.commands {
            let options = command.options + CommandTable.global
            let expected = ["words"] + options.map { "\($0.name)\t\($0.summary)" }
            #expect(try await Self.completed([command.name, "-"]) == expected)
        }
    }

    @Test(
        "a command line is completed at its last word",
        arguments: [
            (["rea"], "readers"), (["--socket", "/x", "rea"], "readers"), (["--socket=/x", "rea"], "readers"),
            (["--socket", "=", "/x", "rea"], "readers"), (["change-pin", "--re"], "--reader"), (["send", "--rea"], ""),
            (["completion", "f"], "fish"), (["--ver"], "--version"), (["scan", "--code", ""], ""),
            (["scan", "--type", "sea"], "seamless"), (["scan", "--type=sea"], "--type=seamless"),
            (["scan", "--type", "=", "sea"], "seamless"), (["wallet", "--words", "="], "=12 =15 =18 =21 =24"),
            (["closest", "mot"], "motion"), (["help", "capt"], "capture"), (["help", "exit"], "exit-codes"),
            (["help", "wallet", "un"], "unblock unpair"), (["wallet", "un"], "unblock unpair"),
            (["wallet", "--key"], "--key-uid"), (["wallet", "unblock", "--key"], ""),
            (["wallet", "sign", "/etc/hostn"], ""), (["remote", "list", "--na"], "--names"), (["nothing", "x"], ""),
            (["--", "rea"], "readers"), (["wallet", "sign", "--", "--y"], ""),
        ]
    )
    func words(words: [String], expected: String) async throws {
        let found = try await Self.completed(words)
        #expect(found.first == "words")
        #expect(found.dropFirst().map { $0.prefix { $0 != "\t" } }.joined(separator: " ") == expected)
    }

    @Test(
        "where a file is wanted, the shell completes its name",
        arguments: [
            ["capture", "/etc/hostn"], ["scan", "--replay", ""], ["scan", "--replay=/x"], ["--socket", ""],
            ["wallet", "contract", ""], ["wallet", "save", ""], ["mpin", "sign", "USER", ""],
            ["endpoint", "setup", ""],
        ]
    )
    func files(words: [String]) async throws { #expect(try await Self.completed(words) == ["files"]) }

    /// A list that badged sends for completions.
    enum Names: String, Sendable {
        case readers = "GET_READER_LIST"
        case keys = "GET_KEYS"
        case devices = "GET_REMOTE"

        private static func device(_ name: String, _ byte: String) -> String {
            let fingerprint = String(repeating: byte, count: 32)
            return #"{"fingerprint":"\#(fingerprint)","name":"\#(name)","paired":true,"connected":false}"#
        }

        var answer: String {
            switch self {
            case .readers: Say.list(Say.reader("Reader A"), Say.reader("Reader B"))
            case .keys:
                #"{"msg":"KEYS","keys":[{"id":"aa","protocol":"pkoc","label":"Office","active":true},"#
                    + #"{"id":"bb","protocol":"pkoc","label":"","active":true}]}"#
            case .devices:
                #"{"msg":"REMOTE","enabled":true,"share":true,"lenders":[\#(Self.device("Tablet", "ab")),"#
                    + #"\#(Self.device("Phone", "cd"))],"borrowers":[\#(Self.device("Phone", "cd"))],"#
                    + #""used":[],"pairing":false}"#
            }
        }
    }

    @Test(
        "the names of readers, keys and devices come from badged",
        arguments: [
            (["auth", "--reader", ""], .readers, ["Reader A", "Reader B"]),
            (["auth", "--reader", "Reader\\ B"], .readers, ["Reader B"]),
            (["auth", "--reader=Reader A"], .readers, ["--reader=Reader A"]),
            (["change-pin", "--reader", "X"], .readers, []), (["keys", "export", ""], .keys, ["Office", "bb"]),
            (["open", "--key", "Of"], .keys, ["Office"]), (["remote", "forget", ""], .devices, ["Phone", "Tablet"]),
            (["remote", "pair", "T"], .devices, ["Tablet"]),
        ] as [([String], Names, [String])]
    )
    func names(words: [String], names: Names, expected: [String]) async throws {
        let peer = try ScriptedPeer { peer in peer.answer(names.rawValue, names.answer) }
        #expect(try await Self.completed(["--socket", peer.path] + words) == ["words"] + expected)
    }

    @Test("without badged there are no names")
    func noNames() async throws {
        let program = try RunningProgram(
            "badgectl",
            ["__complete", "--socket", "/nonexistent", "auth", "--reader", ""]
        )
        #expect(await program.exitCode == 3)
        #expect(program.text(.output).isEmpty)
    }

    @Test(
        "bash completes words and files",
        arguments: [
            (["rea"], "readers"), (["wallet", "un"], "unblock unpair"), (["capture", "/etc/hostn"], "/etc/hostname"),
            (["scan", "--replay", "/etc/hostn"], "/etc/hostname"), (["scan", "--code", ""], ""),
        ]
    )
    func bash(words: [String], expected: String) async throws {
        let quoted = (["\(RunningProgram.programs)/badgectl"] + words).map { "'\($0)'" }.joined(separator: " ")
        let script = """
            \(CompletionCommand.script(for: "bash"))
            COMP_WORDS=(\(quoted)); COMP_CWORD=\(words.count); _badgectl; echo "${COMPREPLY[@]}"
            """
        let program = try RunningProgram("/bin/bash", [], input: script)
        #expect(await program.exitCode == 0)
        #expect(program.text(.output) == expected + "\n")
    }

    @Test("bash completes the names of the readers, quoted", arguments: ["", "Re", "X"])
    func readers(word: String) async throws {
        let peer = try ScriptedPeer { peer in
            let list = Say.list(Say.reader("Reader A"), Say.reader("Reader B 2"), Say.reader("$(false)"))
            peer.answer("GET_READER_LIST", list)
        }
        let script = """
            \(CompletionCommand.script(for: "bash"))
            COMP_WORDS=('\(RunningProgram.programs)/badgectl' --socket '\(peer.path)' auth --reader '\(word)')
            COMP_CWORD=5; _badgectl; printf '%s\\n' "${COMPREPLY[@]}"
            """
        let program = try RunningProgram("/bin/bash", [], input: script)
        #expect(await program.exitCode == 0)
        let all = ["Reader\\ A", "Reader\\ B\\ 2", "\\$\\(false\\)"]
        let expected = word.isEmpty ? all : word == "Re" ? Array(all[..<2]) : []
        #expect(program.text(.output) == expected.joined(separator: "\n") + "\n")
    }
}
