// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import TestSupport
import Testing
import Text

/// What `--check-config` of each program says of paths that cannot work.
@Suite("--check-config", .timeLimit(.minutes(5))) struct CheckConfigTests {
    /// What a path has to lead to.
    enum Need: Sendable {
        /// Files that are read, some of them secret.
        case file
        case folderToRead, folderToWrite
        case socketToMake, socketToUse
        case tpm, serialLine

        /// What cannot be used.
        var wrong: [Thing] {
            switch self {
            case .file: [.fifo, .zero, .folder, .danglingLink, .belowFile]
            case .folderToRead: [.fifo, .zero, .file, .danglingLink, .belowFile, .devices]
            case .folderToWrite: [.fifo, .zero, .file, .danglingLink, .belowFile, .devices, .missing]
            case .socketToMake: [.fifo, .zero, .file, .folder, .danglingLink, .belowFile, .longPath]
            case .socketToUse: [.fifo, .zero, .file, .folder, .longPath]
            case .tpm, .serialLine: [.fifo, .zero, .file, .folder]
            }
        }

        /// What can be used; nil: it has to have a certain content.
        var right: Thing? {
            switch self {
            case .file: nil
            case .folderToRead, .folderToWrite: .folder
            case .socketToMake, .socketToUse, .tpm: .missing
            case .serialLine: .terminal
            }
        }
    }

    /// What is at a path.
    enum Thing: Sendable, CaseIterable {
        case file, folder, fifo, danglingLink, missing
        /// Below a file, which is no folder.
        case belowFile
        /// A device that has bytes without end.
        case zero
        /// What every process may open; a pseudo terminal is a line, too.
        case terminal
        /// The folder of the devices.
        case devices
        /// Longer than the path of a socket may be.
        case longPath

        func path(in folder: TemporaryFolder) throws -> String {
            let path = "\(folder.path)/\(self)"
            switch self {
            case .file: try folder.write("file", [])
            case .folder: #expect(mkdir(path, 0o700) == 0 || errno == EEXIST)
            case .fifo: #expect(mkfifo(path, 0o600) == 0 || errno == EEXIST)
            case .danglingLink: #expect(symlink("\(folder.path)/nothing", path) == 0 || errno == EEXIST)
            case .missing: break
            case .belowFile: return try folder.write("above", []) + "/below"
            case .zero: return "/dev/zero"
            case .terminal: return "/dev/tty"
            case .devices: return "/dev"
            case .longPath: return path + String(repeating: "x", count: 100)
            }
            return path
        }
    }

    struct Setting: Sendable, CustomTestStringConvertible {
        let program: String
        let section: String
        let key: String
        let need: Need

        var testDescription: String { "\(program) [\(section)] \(key)" }

        /// The lines of a configuration that is right but for this path. `folder` is one to write to.
        func lines(_ path: String, _ folder: String) -> String {
            var sections: [(name: String, lines: [String])] = []
            let value = key == "devices" ? "pn532_uart:\(path):115200" : path
            switch program {
            case "badged-mqtt":
                sections = [("broker", ["url = mqtts://localhost:1"]), ("queue", ["folder = \(folder)"])]
                // Both belong together.
                if key == "key" { sections[0].lines.append("certificate = \(path)") }
                if key == "certificate" { sections[0].lines.append("key = \(path)") }
                if key == "password_file" { sections[0].lines.append("user = a") }
            case "badged-osdp":
                sections = [("panel front", ["install = 1"]), ("server", ["folder = \(folder)"])]
                if key != "device" { sections[0].lines.append("tcp = 127.0.0.1:1") }
            default: break
            }
            if let index = sections.firstIndex(where: { $0.name == section }) {
                sections[index].lines.removeAll { $0.hasPrefix("\(key) = ") }
                sections[index].lines.append("\(key) = \(value)")
            } else {
                sections.append((section, ["\(key) = \(value)"]))
            }
            return sections.map { "[\($0.name)]\n" + $0.lines.map { $0 + "\n" }.joined() }.joined()
        }
    }

    private static let settings: [Setting] = [
        Setting(program: "badged", section: "credentials", key: "site_key", need: .file),
        Setting(program: "badged", section: "credentials", key: "allow_list", need: .file),
        Setting(program: "badged", section: "wallet", key: "node_ca", need: .file),
        Setting(program: "badged", section: "keys", key: "issuer_ca", need: .file),
        Setting(program: "badged", section: "virtual", key: "cvca", need: .file),
        Setting(program: "badged", section: "ble", key: "replay", need: .file),
        Setting(program: "badged", section: "eid", key: "trust_anchors", need: .folderToRead),
        Setting(program: "badged", section: "documents", key: "anchors", need: .folderToRead),
        Setting(program: "badged", section: "mdoc", key: "anchors", need: .folderToRead),
        Setting(program: "badged", section: "keys", key: "issuer", need: .folderToRead),
        Setting(program: "badged", section: "server", key: "socket", need: .socketToMake),
        Setting(program: "badged", section: "keys", key: "tpm_device", need: .tpm),
        Setting(program: "badged", section: "nfc", key: "devices", need: .serialLine),
        Setting(program: "badged-mqtt", section: "broker", key: "ca", need: .file),
        Setting(program: "badged-mqtt", section: "broker", key: "certificate", need: .file),
        Setting(program: "badged-mqtt", section: "broker", key: "key", need: .file),
        Setting(program: "badged-mqtt", section: "broker", key: "password_file", need: .file),
        Setting(program: "badged-mqtt", section: "publish", key: "site_key", need: .file),
        Setting(program: "badged-mqtt", section: "queue", key: "folder", need: .folderToWrite),
        Setting(program: "badged-mqtt", section: "server", key: "socket", need: .socketToUse),
        Setting(program: "badged-osdp", section: "panel front", key: "device", need: .serialLine),
        Setting(program: "badged-osdp", section: "panel front", key: "key", need: .file),
        Setting(program: "badged-osdp", section: "server", key: "folder", need: .folderToWrite),
        Setting(program: "badged-osdp", section: "server", key: "socket", need: .socketToUse),
    ]

    private static func check(_ setting: Setting, _ path: String, _ folder: TemporaryFolder) async throws -> (
        code: Int32, output: RunningProgram
    ) {
        let file = try folder.write("config.conf", setting.lines(path, folder.path).utf8)
        chmod(file, 0o600)
        let arguments = setting.program == "badged" ? ["--check-config", file] : ["--config", file, "--check-config"]
        let program = try RunningProgram(setting.program, arguments)
        return (await program.exitCode, program)
    }

    @Test("a path that cannot work is an error that names it, and whose remedy helps", arguments: settings)
    func wrong(setting: Setting) async throws {
        let folder = try TemporaryFolder()
        for thing in setting.need.wrong {
            let path = try thing.path(in: folder)
            let (code, program) = try await Self.check(setting, path, folder)
            #expect(code == 78, "\(thing)")
            let error = program.text(.error)
            #expect(error.contains(path.split(separator: "/").last ?? ""), "\(thing): \(error)")
            #expect(error.contains("hint: ") && !error.contains("chmod"), "\(thing): \(error)")
        }
    }

    /// A file or a value with a wrong content, and what is told of it.
    struct Content: Sendable, CustomTestStringConvertible {
        let section: String
        let lines: String
        /// Written into the file FILE; nil: there is none.
        var file: [UInt8]?
        var words = ""
        var testDescription: String { "[\(section)] \(lines): \(words)" }

        init(_ section: String, _ lines: String, _ file: [UInt8]?, _ words: String) {
            self.section = section
            self.lines = lines
            self.file = file
            self.words = words
        }
    }

    /// A SEQUENCE like a certificate.
    private static let certificate = PEM.certificate.encode([0x30, 0x07, 0x30, 0x00, 0x30, 0x00, 0x03, 0x01, 0x00])
    private static let capture = Array("btsnoop\0".utf8) + [0, 0, 0, 1, 0, 0, 0x07, 0xD1]

    private static let contents: [Content] = [
        Content("wallet", "node_ca = FILE", [], "has no certificates in PEM"),
        Content("wallet", "node_ca = FILE", Array("garbage".utf8), "has no certificates in PEM"),
        Content("keys", "issuer_ca = FILE", [0x30, 0x03, 0x02, 0x01, 0x00], "has no certificates in PEM"),
        Content("keys", "issuer_ca = FILE", Array(PEM.publicKey.encode([0x30, 0x00]).utf8), "has no certificates"),
        Content("keys", "issuer_ca = FILE", Array(PEM.certificate.encode([0x30, 0x00]).utf8), "a damaged certificate"),
        Content(
            "wallet",
            "node_ca = FILE",
            Array((certificate + PEM.certificate.encode([0x30, 0x10])).utf8),
            "a damaged certificate"
        ),
        Content("virtual", "cvca = FILE", [], "is no trust point"),
        Content("virtual", "cvca = FILE", Array("garbage".utf8), "is no trust point"),
        Content("ble", "replay = FILE\nbackend = replay", [], "is not a capture file"),
        Content("ble", "replay = FILE\nbackend = replay", Array("garbage".utf8), "is not a capture file"),
        Content("ble", "replay = FILE\nbackend = replay", capture, "has"),
        Content("mdoc", "lists = http://example.org/list", nil, "cannot have 'http://example.org/list'"),
        Content("mdoc", "lists = list", nil, "cannot have 'list'"),
        Content("mdoc", "lists = ftp://example.org/list", nil, "cannot have"),
        Content("mdoc", "lists = file:///etc/passwd", nil, "cannot have"),
        Content(
            "mdoc",
            "lists = https://example.org/a, https://example.org/a",
            nil,
            "cannot have 'https://example.org/a'"
        ),
        Content("mdoc", "lists = https://name:word@example.org/a", nil, "cannot have"),
        Content(
            "mdoc",
            "lists = " + (0...32).map { "https://example.org/\($0)" }.joined(separator: ", "),
            nil,
            "more than 32 addresses"
        ),
    ]

    @Test("a content that cannot work is an error that says why", arguments: contents)
    func content(content: Content) async throws {
        let folder = try TemporaryFolder()
        if let file = content.file { chmod(try folder.write("content", file), 0o600) }
        let lines = content.lines.replacing("FILE", with: "\(folder.path)/content")
        let configuration = try folder.write("config.conf", Array("[\(content.section)]\n\(lines)\n".utf8))
        chmod(configuration, 0o600)
        let program = try RunningProgram("badged", ["--check-config", configuration])
        #expect(await program.exitCode == 78)
        let error = program.text(.error)
        #expect(error.contains(content.words) && error.contains("hint: "), "\(error)")
    }

    @Test("certificates in PEM and a trust point are right, and a damaged trust anchor is a warning")
    func rightContent() async throws {
        let folder = try TemporaryFolder()
        let text = "a comment\n" + Self.certificate + Self.certificate
        let authorities = try folder.write("ca.pem", Array(text.utf8))
        let anchors = folder.path + "/anchors"
        mkdir(anchors, 0o700)
        let point = TestPKI.path("cvca-next.cvcert")
        let lines = """
            [wallet]
            node_ca = \(authorities)
            [virtual]
            cvca = \(point)
            [eid]
            trust_anchors = \(anchors)

            """
        let configuration = try folder.write("config.conf", Array(lines.utf8))
        for path in [authorities, configuration] { chmod(path, 0o600) }
        let right = try RunningProgram("badged", ["--check-config", configuration, "--strict"])
        #expect(await right.exitCode == 0, "\(right.everything)")
        try folder.write("anchors/a.cvcert", Array("garbage".utf8))
        let warned = try RunningProgram("badged", ["--check-config", configuration])
        #expect(await warned.exitCode == 0 && warned.text(.error).contains("a.cvcert"), "\(warned.everything)")
        let strict = try RunningProgram("badged", ["--check-config", configuration, "--strict"])
        #expect(await strict.exitCode == 78)
    }

    @Test("a file that is no authority is a warning", arguments: ["documents", "mdoc"])
    func ignoredAuthority(section: String) async throws {
        let folder = try TemporaryFolder()
        let anchors = folder.path + "/anchors"
        mkdir(anchors, 0o700)
        let configuration = try folder.write("config.conf", Array("[\(section)]\nanchors = \(anchors)\n".utf8))
        chmod(configuration, 0o600)
        let right = try RunningProgram("badged", ["--check-config", configuration, "--strict"])
        #expect(await right.exitCode == 0, "\(right.everything)")
        try folder.write("anchors/country.crt", Array("garbage".utf8))
        let strict = try RunningProgram("badged", ["--check-config", configuration, "--strict"])
        #expect(await strict.exitCode == 78)
        let words = "config.conf, line 2: \(anchors)/country.crt: it is no certificate and no list"
        #expect(strict.text(.error).contains(words), "\(strict.everything)")
    }

    /// A file with several faults that have nothing to do with one another, and a part of what is told of each.
    struct Faults: Sendable, CustomTestStringConvertible {
        let program: String
        let lines: String
        let words: [String]
        var testDescription: String { "\(program): \(words)" }
    }

    private static let faults: [Faults] = [
        Faults(
            program: "badged-osdp",
            lines: """
                folder = /nothing
                [panel a]
                tcp = 127.0.0.1:1
                baud = 1
                [panel b]
                install = 1
                [reader c]
                tcp = 127.0.0.1:2
                [panel d]
                device = /dev/zero
                key = /nothing/d.key
                [format f]
                facility = 1
                [rules]
                rule = any -> nothing
                """,
            words: [
                "'folder' stands before the first section", "[panel] baud", "b has no line", "c has no key",
                "/dev/zero is no serial line", "/nothing/d.key", "format f: fields is missing", "[rules] rule",
            ]
        ),
        Faults(
            program: "badged-osdp",
            lines: "[panel a]\ndevice = here\ntext = 99\n[server]\nsocket = /etc/passwd\n",
            words: ["[panel] device", "[panel] text", "something else than a socket"]
        ),
        Faults(
            program: "badged-mqtt",
            lines: """
                url = mqtts://localhost
                [broker]
                url = http://localhost
                keepalive = 1
                certificate = /nothing/c.pem
                [publish]
                credentials = hashed
                host = a/b
                [queue]
                folder = /nothing
                """,
            words: [
                "'url' stands before the first section", "[broker] url", "[broker] keepalive", "/nothing/c.pem",
                "[broker] certificate and key belong together", "credentials = hashed needs a site key",
                "[publish] host", "events cannot be stored in /nothing",
            ]
        ),
        Faults(
            program: "badged-mqtt",
            lines: "[broker]\nurl = mqtts://localhost\nca = /nothing/ca.pem\n[server]\nsocket = /etc/passwd\n",
            words: ["/nothing/ca.pem", "something else than a socket"]
        ),
        Faults(
            program: "badged-mqtt",
            lines: "[broker]\nurl = mqtt://192.0.2.1\nplain = perhaps\nkey = k\n[queue]\nfolder = q\n",
            words: ["[broker] plain", "[broker] key", "[queue] folder"]
        ),
    ]

    @Test("each fault of a file is told, and nothing that only follows from another one", arguments: faults)
    func all(faults: Faults) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("config.conf", Array((faults.lines + "\n").utf8))
        chmod(file, 0o600)
        let program = try RunningProgram(faults.program, ["--config", file, "--check-config"])
        #expect(await program.exitCode == 78)
        let errors = program.text(.error).split(separator: "\n").filter { $0.contains("error: ") || $0.contains("<3>") }
        for words in faults.words {
            #expect(errors.count { $0.contains(words) } == 1, "\(words): \(program.everything)")
        }
        #expect(errors.count == faults.words.count, "\(program.everything)")
    }

    @Test("a path that can work is right", arguments: settings.filter { $0.need.right != nil })
    func right(setting: Setting) async throws {
        let folder = try TemporaryFolder()
        let thing = try #require(setting.need.right)
        let (code, program) = try await Self.check(setting, try thing.path(in: folder), folder)
        #expect(code == 0 && program.text(.output).contains("is right"), "\(program.everything)")
    }
}
