// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import TestSupport
import Testing

/// What `--check-config` of each program says of paths that cannot work.
@Suite("--check-config", .timeLimit(.minutes(5))) struct CheckConfigTests {
    /// What a path has to lead to.
    enum Need: Sendable {
        /// Files that are read, some of them secret.
        case file
        case folderToRead, folderToWrite
        case socketToMake, socketToUse
        case device

        /// What cannot be used.
        var wrong: [Thing] {
            switch self {
            case .file: [.fifo, .zero, .folder, .danglingLink, .belowFile]
            case .folderToRead: [.fifo, .zero, .file, .danglingLink, .belowFile, .devices]
            case .folderToWrite: [.fifo, .zero, .file, .danglingLink, .belowFile, .devices, .missing]
            case .socketToMake: [.fifo, .zero, .file, .folder, .danglingLink, .belowFile, .longPath]
            case .socketToUse: [.fifo, .zero, .file, .folder, .longPath]
            case .device: [.fifo, .file, .folder]
            }
        }

        /// What can be used; nil: it has to have a certain content.
        var right: Thing? {
            switch self {
            case .file: nil
            case .folderToRead, .folderToWrite: .folder
            case .socketToMake, .socketToUse: .missing
            case .device: .zero
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
                sections[index].lines.append("\(key) = \(path)")
            } else {
                sections.append((section, ["\(key) = \(path)"]))
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
        Setting(program: "badged", section: "keys", key: "tpm_device", need: .device),
        Setting(program: "badged-mqtt", section: "broker", key: "ca", need: .file),
        Setting(program: "badged-mqtt", section: "broker", key: "certificate", need: .file),
        Setting(program: "badged-mqtt", section: "broker", key: "key", need: .file),
        Setting(program: "badged-mqtt", section: "broker", key: "password_file", need: .file),
        Setting(program: "badged-mqtt", section: "publish", key: "site_key", need: .file),
        Setting(program: "badged-mqtt", section: "queue", key: "folder", need: .folderToWrite),
        Setting(program: "badged-mqtt", section: "server", key: "socket", need: .socketToUse),
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

    @Test("a path that can work is right", arguments: settings.filter { $0.need.right != nil })
    func right(setting: Setting) async throws {
        let folder = try TemporaryFolder()
        let thing = try #require(setting.need.right)
        let (code, program) = try await Self.check(setting, try thing.path(in: folder), folder)
        #expect(code == 0 && program.text(.output).contains("is right"), "\(program.everything)")
    }
}
