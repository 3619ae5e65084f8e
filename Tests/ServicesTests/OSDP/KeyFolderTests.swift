// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import TestSupport
import Testing

@testable import OSDP
@testable import badged_osdp

@Suite("What panels have set", .timeLimit(.minutes(5)))
struct KeyFolderTests {
    /// Of the test.
    private let whole: TemporaryFolder
    /// Of the service.
    private let state: String

    init() throws {
        whole = try TemporaryFolder()
        state = whole.path + "/state"
        #expect(mkdir(state, 0o700) == 0)
    }

    /// Writes a file of the service.
    private func write(_ name: String, _ content: String) throws {
        chmod(try whole.write("state/" + name, Array(content.utf8)), 0o600)
    }

    private func exists(_ name: String) -> Bool {
        var status = stat()
        return lstat("\(state)/\(name)", &status) == 0
    }

    /// Writes osdp.conf with one panel, which may set a key, address and baud rate.
    private func configure(_ folder: String) throws -> String {
        let text = "[panel front]\ntcp = 127.0.0.1:1\ncomset = yes\ninstall = 5\n[server]\nfolder = \(folder)\n"
        return try whole.write("osdp.conf", Array(text.utf8))
    }

    /// What badged-osdp starts with, or the errors that it ends with.
    private func start(_ folder: String) throws -> (settings: LineSettings?, errors: [StartError]) {
        let files = LineFiles(path: try configure(folder), folder: KeyFolder(path: folder))
        do throws(LineFiles.StartErrors) { return (try files.read(), []) } catch { return (nil, error.list) }
    }

    /// Runs badged-osdp to its end.
    private func run(_ arguments: String..., folder: String? = nil) async throws -> (Int32, RunningProgram) {
        let file = try configure(folder ?? state)
        let program = try RunningProgram("badged-osdp", ["--config", file] + arguments)
        return (await program.exitCode, program)
    }

    private static let key = "0123456789abcdef0123456789ABCDEF\n"

    @Test("key, address and baud rate that a panel has set count")
    func right() async throws {
        let empty = try #require(try start(state).settings?.peripherals.first)
        #expect(empty.key == nil && empty.address == 0 && empty.baud == 9600)
        #expect(KeyFolder(path: state).store(address: 126, baud: 230_400, of: "front"))
        try write("front.key", Self.key)
        let stored = try #require(try start(state).settings?.peripherals.first)
        #expect(stored.key != nil && stored.address == 126 && stored.baud == 230_400)
        let (code, program) = try await run("--check-config")
        #expect(code == 0, "\(program.everything)")
    }

    @Test(
        "a damaged file of address and baud rate is refused, and not taken for none",
        arguments: [
            "", "\n", "5", "5 9600", "5 9600\n\n", "5  9600\n", " 5 9600\n", "05 9600\n", "+5 9600\n", "127 9600\n",
            "5 9601\n", "5 960\n", "5 9600 \n", "5 9600\r\n", "\0\0\0\0\0\0\0",
            "5 9600\n" + String(repeating: "\0", count: 40),
        ]
    )
    func damagedLine(content: String) throws {
        try write("front.line", content)
        let (settings, errors) = try start(state)
        #expect(settings == nil && errors.count == 1)
        #expect(errors.first?.message.hasPrefix("\(state)/front.line is damaged") == true, "\(errors)")
        #expect(errors.first?.hint.contains("remove the file") == true && errors.first?.exitCode == 78)
    }

    /// What is at the place of a file that a panel has set.
    enum Obstacle: Sendable, CaseIterable {
        case danglingLink, circle, folder, fifo
        case missingFolder, danglingFolder, belowFile

        static let ofFile: [Obstacle] = [.danglingLink, .circle, .folder, .fifo]
        static let ofFolder: [Obstacle] = [.missingFolder, .danglingFolder, .belowFile]

        /// Returns the folder of the service.
        func make(_ name: String, in state: String) throws -> String {
            let path = "\(state)/\(name)"
            switch self {
            case .danglingLink: try #require(symlink("nothing", path) == 0)
            case .circle: try #require(symlink(name, path) == 0)
            case .folder: try #require(mkdir(path, 0o700) == 0)
            case .fifo: try #require(mkfifo(path, 0o600) == 0)
            case .missingFolder: return state + "/nothing"
            case .danglingFolder:
                try #require(symlink("nothing", state + "/link") == 0)
                return state + "/link"
            case .belowFile:
                try #require(mkfifo(state + "/file", 0o600) == 0)
                return state + "/file"
            }
            return state
        }
    }

    @Test("a key that may be there opens no install mode", arguments: Obstacle.allCases)
    func install(obstacle: Obstacle) throws {
        let folder = try obstacle.make("front.key", in: state)
        let (settings, errors) = try start(folder)
        #expect(settings == nil && errors.count == 1 && errors.first?.exitCode == 78)
        // Without the folder, that is told.
        #expect(errors.first?.message.contains(folder) == true, "\(errors)")
    }

    @Test("an address that may be there is not taken for none", arguments: Obstacle.allCases)
    func line(obstacle: Obstacle) throws {
        let folder = KeyFolder(path: try obstacle.make("front.line", in: state))
        let error = #expect(throws: StartError.self) { try folder.communication(of: "front") }
        #expect(error?.message.contains("\(folder.path)/front.line") == true, "\(error?.message ?? "")")
    }

    @Test("of a link to a key the key counts")
    func link() throws {
        try write("other", Self.key)
        try #require(symlink("other", state + "/front.key") == 0)
        #expect(try KeyFolder(path: state).key(of: "front") != nil)
    }

    // MARK: --check-config

    @Test(
        "--check-config refuses what the start refuses",
        arguments: [
            ("front.key", ""), ("front.key", "short"), ("front.key", "0123456789abcdef0123456789abcdeg"),
            ("front.key", "0000000000000000"), ("front.key", "303132333435363738393a3b3c3d3e3f"),
            ("front.line", "5 96"),
        ]
    )
    func checkContent(name: String, content: String) async throws {
        try write(name, content)
        #expect(try start(state).errors.count == 1)
        let (code, program) = try await run("--check-config")
        #expect(code == 78)
        let error = program.text(.error)
        #expect(error.contains("\(state)/\(name) is ") && error.contains("hint: "), "\(error)")
    }

    @Test("--check-config refuses a key that may be there", arguments: Obstacle.ofFile)
    func checkObstacle(obstacle: Obstacle) async throws {
        _ = try obstacle.make("front.key", in: state)
        let (code, program) = try await run("--check-config")
        #expect(code == 78 && program.text(.error).contains("\(state)/front.key"), "\(program.everything)")
    }

    @Test("root checks the files of the user of the service", .enabled(if: geteuid() == 0))
    func checkByRoot() async throws {
        try write("front.key", Self.key)
        for path in [state, state + "/front.key"] { try #require(chown(path, 1, 1) == 0) }
        let (right, first) = try await run("--check-config")
        #expect(right == 0, "\(first.everything)")
        try write("front.key", "")
        try #require(chown(state + "/front.key", 1, 1) == 0)
        let (empty, second) = try await run("--check-config")
        #expect(empty == 78 && second.text(.error).contains("front.key is no key"), "\(second.everything)")
        // Neither root nor the user of the service has this file.
        try write("front.key", Self.key)
        try #require(chown(state + "/front.key", 2, 2) == 0)
        let (foreign, third) = try await run("--check-config")
        #expect(foreign == 78 && third.text(.error).contains("belongs to another user"), "\(third.everything)")
    }

    // MARK: --forget

    @Test("--forget tells what it has removed, and fails when there is nothing")
    func forget() async throws {
        for name in ["front.key", "front.key.new", "front.line", "back.key"] { try write(name, Self.key) }
        let (code, program) = try await run("--forget", "front")
        let told = ["front.key", "front.key.new", "front.line"].map { "removed \(state)/\($0)\n" }.joined()
        #expect(code == 0 && program.text(.output) == told, "\(program.everything)")
        #expect(!exists("front.key") && !exists("front.key.new") && !exists("front.line") && exists("back.key"))
        let (again, second) = try await run("--forget", "front")
        #expect(again == 1 && second.text(.output).isEmpty)
        #expect(second.text(.error).contains("front has set nothing in \(state)"), "\(second.everything)")
    }

    @Test("--forget that cannot remove a file fails, and tells which one stays")
    func stays() async throws {
        try write("front.line", "5 9600\n")
        #expect(mkdir(state + "/front.key", 0o700) == 0)
        let (code, program) = try await run("--forget", "front")
        #expect(code == 1 && program.text(.output) == "removed \(state)/front.line\n", "\(program.everything)")
        #expect(program.text(.error).contains("cannot remove \(state)/front.key: "), "\(program.everything)")
        #expect(exists("front.key") && !exists("front.line"))
    }

    @Test("--forget removes a link, and not its target")
    func forgetsLink() async throws {
        try write("other", Self.key)
        try #require(symlink("other", state + "/front.key") == 0 && symlink("nothing", state + "/front.line") == 0)
        let (code, program) = try await run("--forget", "front")
        #expect(code == 0, "\(program.everything)")
        #expect(!exists("front.key") && !exists("front.line") && exists("other"))
    }

    @Test("--forget fails in a wrong folder", arguments: Obstacle.ofFolder)
    func wrongFolder(obstacle: Obstacle) async throws {
        let folder = try obstacle.make("front.key", in: state)
        let (code, program) = try await run("--forget", "front", folder: folder)
        #expect(code == 1 && program.text(.output).isEmpty)
        #expect(program.text(.error).contains("nothing is removed from \(folder): "), "\(program.everything)")
    }
}
