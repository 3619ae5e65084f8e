// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Concurrency
import Glibc
package import Host
package import Text

/// How badged reaches servers: through runs of badged-network, one for each dialogue.
package struct Network: Sendable {
    /// nil: no connection goes through a proxy.
    package var proxies: ProxySettings?
    /// The socket at which systemd starts badged-network; nil: badged starts it itself.
    package var socket: String?
    /// The run that waits for the next dialogue; nil: each dialogue waits for a start.
    package var spare: SpareRun?
    /// When runs are asked whether they live.
    package var heartbeat = Heartbeat.Times()

    package init(proxies: ProxySettings? = nil, socket: String? = nil, spare: SpareRun? = nil) {
        self.proxies = proxies
        self.socket = socket
        self.spare = spare
    }

    static let program = "badged-network"

    /// Says why no server can be reached, or nil.
    package var fault: Phrase? {
        if let socket { return access(socket, W_OK) == 0 ? nil : "the socket \(socket) is missing" }
        return ChildProcess.path(of: Self.program) == nil ? "the program \(Self.program) is missing" : nil
    }

    /// Starts badged-network.
    func start() throws(HTTPFault) -> BesideProgram {
        do throws(StartError) {
            return try BesideProgram(Self.program, at: socket, SOCK_STREAM)
        } catch {
            throw .unavailable(error.messageWords)
        }
    }

    /// Listens on a port of this computer through badged-network, because badged itself opens no such socket. Blocks for at
    /// most some seconds.
    /// - Throws: `StartError` if the port is in use, or if badged-network cannot be started or does not answer, which may
    ///   pass.
    package func listen(port: UInt16) throws(StartError) -> [Int32] {
        let (listeners, reason) = try ask(.listen(port: port), about: port)
        guard !listeners.isEmpty, listeners.allSatisfy({ LoopbackSockets.isListening($0, port: port) }) else {
            for listener in listeners { close(listener) }
            guard !reason.isEmpty else {
                throw Self.lost(Phrase("badged-network has ended without a word"), about: port)
            }
            throw Self.taken(port, reason)
        }
        for listener in listeners { clinux_set_nonblocking(listener) }
        return listeners
    }

    /// Asks the eID client that owns the port to show itself (TR-03124-1). Blocks for at most some seconds.
    /// - Returns: the name of that client; nil if there is no eID client.
    package func askOwnerToShowItself(port: UInt16) -> String? {
        guard let (_, name) = try? ask(.askOwner(port: port), about: port), !name.isEmpty else { return nil }
        return String(name.prefix(LoopbackSockets.maximumName))
    }

    /// Runs badged-network for one request.
    /// - Returns: the descriptors and the text that it has passed.
    private func ask(
        _ request: NetworkRequest,
        about port: UInt16
    ) throws(StartError) -> (descriptors: [Int32], text: String) {
        let run: BesideProgram
        do throws(HTTPFault) {
            run = try start()
        } catch {
            let words = Phrase("cannot use port \(port): \(error.text(Phrase("the network")))")
            throw StartError(saying: words, hint: Phrase("see badged(8)"), mayPass: true)
        }
        defer { run.end() }
        let descriptor = run.socket
        clinux_set_nonblocking(descriptor)
        let request = request.bytes
        let message = ProgramChannel.length(of: request) + request
        _ = send(descriptor, message, message.count, Int32(MSG_NOSIGNAL))
        var descriptors: [Int32] = []
        var text: [UInt8] = []
        // One deadline for all: a run that sends a byte each second delays nobody for longer.
        let deadline = Loop.clock + Self.askTime
        var incoming = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        reading: while descriptors.count < Self.maximumDescriptors, text.count < Self.maximumText {
            let left = Int32((deadline - Loop.clock) / 1000)
            guard left > 0, poll(&incoming, 1, left) == 1 else {
                for descriptor in descriptors { close(descriptor) }
                throw Self.lost(Phrase("badged-network does not answer"), about: port)
            }
            var note = [UInt8](repeating: 0, count: 64)
            var count: Int32 = 0
            let passed = clinux_take_descriptor(descriptor, &note, &count)
            switch passed {
            case 0...: descriptors.append(passed)
            case -3: text += note.prefix(Int(count))
            default: break reading
            }
        }
        return (descriptors, String(decoding: text, as: UTF8.self))
    }

    private static func lost(_ words: Phrase, about port: UInt16) -> StartError {
        let hint = Phrase("its log says why: journalctl -u 'badged-network@*', or that of badged")
        return StartError(saying: Phrase("cannot use port \(port): \(words)"), hint: hint, mayPass: true)
    }

    /// `reason` is errno in digits, as badged-network tells it.
    private static func taken(_ port: UInt16, _ reason: String) -> StartError {
        let code = Int32(reason)
        let words =
            code == EADDRINUSE
            ? Phrase("Address already in use") : Phrase(verbatim: code.map { errorText($0) } ?? reason)
        return StartError(
            saying: Phrase("cannot listen on port \(port): \(words)"),
            hint: Phrase("AusweisApp or the badged of another user may use the port; see [activation] port")
        )
    }

    /// One for IPv4 and one for IPv6.
    private static let maximumDescriptors = 2
    private static let maximumText = 1024
    /// Microseconds for the answer to one request.
    private static let askTime: Int64 = 5_000_000
}

/// A run of badged-network that no dialogue has used. A start takes longer than most dialogues with a server nearby, so
/// each dialogue leaves a run for the next one. None is started before the first dialogue.
@Loop package final class SpareRun {
    private(set) var run: BesideProgram?

    package nonisolated init() {}

    isolated deinit { run?.end() }

    /// Starts a run, unless one waits already. A failure is reported by the dialogue that needs a run.
    func prepare(_ network: Network) { if run == nil { run = try? network.start() } }

    /// The run that waits; nil if there is none, or if it has ended meanwhile.
    func take() -> BesideProgram? {
        guard let run else { return nil }
        self.run = nil
        var byte: UInt8 = 0
        // A run that waits has sent nothing.
        let count = recv(run.socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        if count < 0, errno == EAGAIN { return run }
        run.end()
        return nil
    }
}

/// Counts the runs of badged-network of each user. A workflow has one or two.
@Loop enum NetworkSlots {
    /// The largest number of runs at once for root, and for all others together.
    private static let maximum = 256
    /// The largest number of runs at once for one user.
    private static let maximumPerUser = 64
    private static var running: [UInt32?: Int] = [:]

    static func acquire(for user: UInt32?) -> Bool {
        let own = running[user, default: 0]
        let others = running.reduce(0) { $1.key == 0 ? $0 : $0 + $1.value }
        let hasRoom = user == 0 ? own < maximum : others < maximum && (user == nil || own < maximumPerUser)
        if hasRoom { running[user] = own + 1 }
        return hasRoom
    }

    static func release(for user: UInt32?) {
        let rest = running[user, default: 1] - 1
        running[user] = rest > 0 ? rest : nil
    }
}
