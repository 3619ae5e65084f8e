// SPDX-License-Identifier: GPL-3.0-or-later
import Activation
import CLinux
import Concurrency
import Glibc
import Host
import Server

/// The browser port as a process of its own. It parses requests that any web page can send. So it shares no memory with
/// the daemon, and drops all rights that it does not need. badged starts it with the first connection, and passes it
/// one socket of its own and the listening sockets.
@main struct Program {
    private static let program = "badged-activation"
    private static let hint = "configure it in [activation] of badged.conf(5)"

    static func main() {
        signal(SIGPIPE, SIG_IGN)
        ProcessHardening.apply()
        let daemon = ChildProcess.firstDescriptor
        var origins: Set<String> = []
        var listeners: [Int32] = []
        var arguments = CommandLine.arguments.dropFirst()
        while let name = arguments.popFirst() {
            switch (name, arguments.popFirst()) {
            case ("--listeners", .some(let number)):
                listeners = (0..<min(max(Int32(number) ?? 0, 0), 2)).map { daemon + 1 + $0 }
            case ("--origin", .some(let origin)): origins.insert(origin)
            case ("--badged", .some(let version)):
                // The messages between the two programs may differ.
                guard version == Version.current else { refuse(version) }
            default: ChildProcess.refuse(program, hint: hint)
            }
        }
        guard !listeners.isEmpty else { ChildProcess.refuse(program, hint: hint) }
        ChildProcess.requireSocket(of: program, hint: hint)
        guard ChildProcess.endWithSocket(grace: 1000) else { exit(1) }
        for descriptor in [daemon] + listeners { clinux_set_cloexec(descriptor) }
        let fields = ServerInfo(version: Version.current, drivers: []).versionFields
        let identity = ActivationIdentity(
            name: "badged",
            version: Version.current,
            fields: fields.map { ($0.key.description, $0.value) }
        )
        let rules = ActivationRules(origins: origins, port: LoopbackSockets.port(of: listeners[0]), identity: identity)
        do throws(SystemError) { try Loop.start() } catch { ChildProcess.refuse(program, hint: error.description) }
        let descriptors = listeners
        Task { @Loop in serve(rules, descriptors, daemon) }
        Loop.park()
    }

    /// Ends, because badged has another version: one of the packages was upgraded alone.
    private static func refuse(_ version: String) -> Never {
        let words = "badged-activation is of version \(Version.current), and badged of \(version)"
        Log.report(StartError(words, hint: "upgrade the packages badged and badged-activation together"))
        exit(2)
    }

    /// Serves until the daemon ends.
    @Loop private static func serve(_ rules: ActivationRules, _ listeners: [Int32], _ daemon: Int32) {
        // Opened before the confinement, which allows no further socket.
        let diagnosis = SocketDiagnosis()
        let port = LoopbackSockets.port(of: listeners[0]) ?? 0
        let server = ActivationServer(
            rules,
            catalogues: Language.translations(),
            user: { LoopbackClient(socket: $0)?.user(connectedTo: port, diagnosis) },
            connect: { connect(through: daemon, for: $0) },
            log: { text, isRefusal in Log.write(isRefusal ? .notice : .warning) { "port for browsers: \(text)" } }
        )
        // The server opens its files and reads no byte of a client before the next turn of the loop.
        guard server.start(listeners: listeners), Confinement.browserPort.apply(to: program) else { exit(1) }
        do throws(SystemError) {
            _ = try Loop.watch(daemon, .read) { _ in
                // A ping of the daemon, which gets it back; otherwise the daemon has ended.
                var ping: UInt8 = 0
                let count = recv(daemon, &ping, 1, 0)
                if count < 0, errno == EAGAIN || errno == EINTR { return }
                guard count == 1, send(daemon, &ping, 1, Int32(MSG_NOSIGNAL)) == 1 else {
                    server.stop()
                    exit(0)
                }
            }
        } catch {
            exit(1)
        }
    }

    /// Makes a connection to the daemon for a client: a pair of sockets, one of which the daemon gets. The daemon also
    /// gets the client's address, with which it asks the kernel for the user.
    private static func connect(through daemon: Int32, for client: Int32) -> Int32? {
        guard let note = LoopbackClient(socket: client)?.bytes else { return nil }
        var pair: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { return nil }
        defer { close(pair[1]) }
        guard clinux_pass_descriptor(daemon, pair[1], note, Int32(note.count)) == 0 else {
            close(pair[0])
            return nil
        }
        return pair[0]
    }
}
