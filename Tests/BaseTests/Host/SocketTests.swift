// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing

@testable import Host

private let nobodyKnown = NameService(user: { _ in nil }, group: { _ in nil })

private func mode(_ path: String) -> UInt32? { FileIdentity(path: path).map { $0.mode & 0o7777 } }

private func refusal(_ body: () throws(StartError) -> ListeningSocket) -> StartError? {
    do {
        _ = try body()
        return nil
    } catch { return error }
}

@Suite("The listening socket", .timeLimit(.minutes(5)))
struct SocketTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/s/badged.sock" }

    init() throws {
        folder = try TemporaryFolder()
        mkdir(folder.path + "/s", 0o700)
    }

    /// Connects a client, which must succeed.
    private func expectAnswer(at path: String) throws {
        close(try UnixSocket.connect(to: path))
    }

    @Test("clients connect, and close removes the socket file")
    func lifecycle() throws {
        let socket = try ListeningSocket.bind(to: path, names: nobodyKnown)
        try expectAnswer(at: path)
        #expect(fcntl(socket.descriptor, F_GETFL) & O_NONBLOCK != 0)
        #expect(fcntl(socket.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        #expect(!socket.isFromSystemd && socket.path == path)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/s") == ["badged.sock"])
        socket.close()
        socket.close()
        #expect(FileIdentity(path: path) == nil)
    }

    @Test("the mode is 0660 for group badged or root, and 0600 for any other group")
    func modes() throws {
        let group = getegid()
        let given = try ListeningSocket.bind(
            to: path,
            names: NameService(user: { _ in nil }, group: { $0 == "badged" ? group : nil })
        )
        #expect(mode(path) == 0o660)
        given.close()
        let own = try ListeningSocket.bind(to: path, names: nobodyKnown)
        #expect(mode(path) == (group == 0 ? 0o660 : 0o600))
        own.close()
    }

    @Test("a stale socket file of a dead daemon is replaced")
    func stale() throws {
        close(try UnixSocket.bind(to: path))
        let socket = try ListeningSocket.bind(to: path, names: nobodyKnown)
        try expectAnswer(at: path)
        socket.close()
    }

    @Test("a socket file of a running daemon is not replaced, and the error names the process")
    func living() throws {
        let first = try ListeningSocket.bind(to: path, names: nobodyKnown)
        let error = refusal { () throws(StartError) in try ListeningSocket.bind(to: path, names: nobodyKnown) }
        #expect(error?.message.contains("(process \(getpid())) listens on \(path)") == true, "\(error?.message ?? "")")
        try expectAnswer(at: path)
        first.close()
    }

    @Test("close does not remove a socket file that another process has replaced")
    func replaced() throws {
        let first = try ListeningSocket.bind(to: path, names: nobodyKnown)
        unlink(path)
        let second = try ListeningSocket.bind(to: path, names: nobodyKnown)
        first.close()
        try expectAnswer(at: path)
        second.close()
    }

    @Test("a file that is not a socket is never removed")
    func noSocket() throws {
        try Data("precious".utf8).write(to: URL(filePath: path))
        let error = refusal { () throws(StartError) in try ListeningSocket.bind(to: path, names: nobodyKnown) }
        #expect(error?.message.contains("is not a socket") == true)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
    }

    @Test("invalid paths are refused with a reason")
    func paths() {
        let long = folder.path + "/" + String(repeating: "x", count: 107)
        let error = refusal { () throws(StartError) in try ListeningSocket.bind(to: long, names: nobodyKnown) }
        #expect(error?.message.contains("has \(long.utf8.count) bytes") == true)
    }

    @Test("a missing folder of a chosen path is an error and is not created", arguments: ["a/c.sock", "a/b/c.sock"])
    func missingFolder(name: String) throws {
        var options = CommandLineOptions()
        options.socketPath = folder.path + "/" + name
        var configuration = Configuration()
        configuration.socketPath = folder.path + "/" + name
        for (options, configuration) in [
            (options, Configuration()), (CommandLineOptions(), configuration),
        ] {
            let error = refusal { () throws(StartError) in
                try ListeningSocket.open(options: options, configuration: configuration) { _ in nil }
            }
            #expect(error?.message.contains("\(folder.path)/a") == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("does not exist") == true)
            #expect(!FileManager.default.fileExists(atPath: folder.path + "/a"))
        }
    }

    @Test("the folder of the usual path is created: /run/badged for others to pass, the folder of a user private")
    func usualFolder() throws {
        ListeningSocket.makeFolder(of: folder.path + "/badged/badged.sock")
        #expect(mode(folder.path + "/badged") == (geteuid() < 1000 ? 0o755 : 0o700))
    }

    @Test("of many concurrent attempts to bind one path, one succeeds and the others fail")
    func race() async throws {
        let path = folder.path + "/race.sock"
        let winners = await withTaskGroup(of: ListeningSocket?.self) { group in
            for _ in 0..<32 { group.addTask { try? ListeningSocket.bind(to: path, names: nobodyKnown) } }
            var all: [ListeningSocket] = []
            for await socket in group { if let socket { all.append(socket) } }
            return all
        }
        #expect(winners.count == 1)
        try expectAnswer(at: path)
    }

    @Test("the default path depends on the user")
    func usualPlace() throws {
        let runtime: Environment = { $0 == "XDG_RUNTIME_DIR" ? "/run/user/1000" : nil }
        #expect(try ListeningSocket.usualPath(user: 0, environment: runtime) == "/run/badged/badged.sock")
        #expect(try ListeningSocket.usualPath(user: 999, environment: runtime) == "/run/badged/badged.sock")
        #expect(try ListeningSocket.usualPath(user: 1000, environment: runtime) == "/run/user/1000/badged/badged.sock")
        #expect(throws: StartError.self) { try ListeningSocket.usualPath(user: 1000, environment: { _ in nil }) }
    }

    @Test("--socket overrides the configuration, and sockets passed to another process are ignored")
    func choice() throws {
        var (options, configuration) = (CommandLineOptions(), Configuration())
        options.socketPath = folder.path + "/1"
        configuration.socketPath = folder.path + "/2"
        let environment: Environment = { ["LISTEN_PID": "1", "LISTEN_FDS": "1"][$0] }
        let first = try ListeningSocket.open(options: options, configuration: configuration, environment: environment)
        #expect(first.path == folder.path + "/1")
        options.socketPath = nil
        let second = try ListeningSocket.open(options: options, configuration: configuration, environment: environment)
        #expect(second.path == folder.path + "/2")
    }

    @Test("more than one passed socket is refused")
    func passed() {
        let pid = String(getpid())
        let two: Environment = { ["LISTEN_PID": pid, "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b"][$0] }
        #expect(
            refusal { () throws(StartError) in
                try ListeningSocket.open(
                    options: CommandLineOptions(),
                    configuration: Configuration(),
                    environment: two
                )
            }?.message == "systemd passes 2 sockets (a:b), badged serves one"
        )
    }
}
