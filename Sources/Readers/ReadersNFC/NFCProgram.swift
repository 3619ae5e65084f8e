// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import Text

/// One run of the program badged-nfc, at the other end of a socket pair.
@Loop final class NFCProgram {
    let process: Child
    private let socket: Int32
    private var registration: Loop.Registration?
    /// Messages that did not fit into the socket's buffer.
    private var unsent: [[UInt8]] = []
    private let onReport: @Loop (NFCReport) -> Void
    private let onEnd: @Loop (Ending) -> Void
    private var heartbeat: Heartbeat?

    enum Ending {
        /// The program has ended, or has sent an invalid message.
        case ended
        /// The program, or the thread of one of its devices, does not answer.
        case silent
    }

    /// Starts the program. `onEnd` runs once.
    /// - Throws: when the program is missing or cannot be started.
    init(
        asking times: Heartbeat.Times,
        onReport: @escaping @Loop (NFCReport) -> Void,
        onEnd: @escaping @Loop (Ending) -> Void
    ) throws(Failure) {
        self.onReport = onReport
        self.onEnd = onEnd
        guard let path = ChildProcess.path(of: "badged-nfc") else {
            throw Failure(.internalError, "the program badged-nfc is missing", advice: "install badged again")
        }
        var pair: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw Self.failure("\(SystemError("socketpair"))") }
        socket = pair[0]
        defer { close(pair[1]) }
        guard let process = ChildProcess.start(path, [], descriptors: [pair[1]]) else {
            throw Self.failure("\(path) cannot be started")
        }
        self.process = Child(process)
        do throws(SystemError) {
            registration = try Loop.watch(socket, .read) { [weak self] events in self?.handle(events) }
        } catch {
            throw Self.failure("\(error)")
        }
        heartbeat = Heartbeat("badged-nfc", times) { [weak self] in
            self?.send(Heartbeat.message)
        } onSilence: { [weak self] in
            self?.end(.silent)
        }
    }

    /// Whether something depends on the program now.
    var isNeeded: Bool {
        get { heartbeat?.isNeeded ?? false }
        set { heartbeat?.isNeeded = newValue }
    }

    /// Asks the program, and returns whether it answers.
    func answers() async -> Bool { await heartbeat?.answers() ?? true }

    private static func failure(_ reason: String) -> Failure {
        Failure(.internalError, "the program badged-nfc cannot be started: \(reason)")
    }

    isolated deinit {
        registration?.cancel()
        close(socket)
    }

    func send(_ request: NFCRequest) { send(request.bytes) }

    private func send(_ message: [UInt8]) {
        unsent.append(message)
        flush()
    }

    private func end(_ ending: Ending) {
        guard let registration else { return }
        self.registration = nil
        registration.cancel()
        heartbeat?.stop()
        if ending == .silent { process.end() }
        onEnd(ending)
    }

    /// Asks the program to close all devices and to end.
    func finish() {
        shutdown(socket, Int32(SHUT_WR))
    }

    private func handle(_ events: UInt32) {
        if events & Loop.writable != 0 { flush() }
        if events & (Loop.readable | Loop.hungUp) != 0 { receive() }
    }

    private func flush() {
        while let message = unsent.first {
            let sent = Glibc.send(socket, message, message.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            if sent < 0, errno == EINTR { continue }
            // After another error the end of the program is reported by `receive`.
            if sent < 0, errno == EAGAIN { break }
            unsent.removeFirst()
        }
        registration?.change(unsent.isEmpty ? .read : [.read, .write])
    }

    private func receive() {
        withUnsafeTemporaryAllocation(byteCount: NFCMessage.maximumSize, alignment: 1) { buffer in
            while registration != nil {
                // With MSG_TRUNC, recv returns the size of the message even when the buffer is too small.
                let count = recv(
                    socket,
                    buffer.baseAddress,
                    buffer.count,
                    Int32(MSG_DONTWAIT | MSG_TRUNC)
                )
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN { return }
                guard count > 0, count <= buffer.count else { return end(.ended) }
                let message = Array(UnsafeRawBufferPointer(buffer).prefix(count))
                if message == Heartbeat.message, heartbeat?.answered() == true { continue }
                guard let report = NFCReport(bytes: message) else { return end(.ended) }
                onReport(report)
            }
        }
    }
}
