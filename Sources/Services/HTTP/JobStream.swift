// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import Text

/// badged's end of the stream socket to badged-network. Each message follows its length in four bytes. This end asks by
/// `Heartbeat` whether the other one lives.
/// The end of the stream ends the process behind it, if that is a child of this one.
@Loop final class JobStream {
    enum Ending {
        case closed, violation
        /// The other program did not answer a question of `Heartbeat`.
        case silent
    }

    private let run: BesideProgram
    private var registration: Loop.Registration?
    private var heartbeat: Heartbeat?
    private let maximum: @Loop () -> Int
    private let admits: @Loop (Int) -> Bool
    private let onMessage: @Loop ([UInt8]) -> Bool
    private let onEnd: @Loop (Ending) -> Void
    /// The messages that wait to be sent, and how many bytes of the first one were sent.
    private var unsent: [[UInt8]] = []
    private var sent = 0
    private var backlog = 0
    private var received: [UInt8] = []
    /// Whether the message that is being received was admitted, and whether it waits for that.
    private var isAdmitted = false
    private var isPaused = false { didSet { heartbeat?.isSuspended = isPaused } }

    var process: Int32? { run.process?.id }

    /// The maximum number of bytes that wait to be sent.
    private static let maximumBacklog = 64 << 20
    /// The maximum number of bytes that are received before others on the loop have their turn.
    private static let maximumTurn = 1 << 20

    /// Takes a socket, and closes it at the end, also if this fails.
    /// - Parameters:
    ///   - run: the socket, and the process that ends with it.
    ///   - times: those of the questions whether the other program lives.
    ///   - maximum: the largest number of bytes that a message may have now.
    ///   - admits: returns whether there is memory for a message of this number of bytes now; see `resume`.
    ///   - onMessage: returns whether the message was allowed.
    ///   - onEnd: called once, unless `close` is called first.
    /// - Throws: `HTTPFault.unavailable` if the kernel does not watch the socket.
    init(
        _ run: BesideProgram,
        asking times: Heartbeat.Times,
        maximum: @escaping @Loop () -> Int,
        admits: @escaping @Loop (Int) -> Bool = { _ in true },
        onMessage: @escaping @Loop ([UInt8]) -> Bool,
        onEnd: @escaping @Loop (Ending) -> Void
    ) throws(HTTPFault) {
        self.run = run
        self.maximum = maximum
        self.admits = admits
        self.onMessage = onMessage
        self.onEnd = onEnd
        do throws(SystemError) {
            registration = try Loop.watch(run.socket, .read) { [weak self] in self?.handle($0) }
        } catch {
            run.end()
            throw .unavailable(error.description)
        }
        heartbeat = Heartbeat(Network.program, times) { [weak self] in
            self?.send(Heartbeat.message)
        } onSilence: { [weak self] in
            self?.end(.silent)
        }
    }

    /// Whether something depends on the other program now.
    var isNeeded: Bool {
        get { heartbeat?.isNeeded ?? false }
        set { heartbeat?.isNeeded = newValue }
    }

    /// Asks the other program, and returns whether it answers.
    func answers() async -> Bool { await heartbeat?.answers() ?? true }

    isolated deinit { close() }

    func close() {
        guard let registration else { return }
        self.registration = nil
        registration.cancel()
        heartbeat?.stop()
        run.end()
        for index in unsent.indices { unsent[index].wipe() }
        received.wipe()
        unsent = []
        received = []
    }

    private func end(_ ending: Ending) {
        guard registration != nil else { return }
        close()
        onEnd(ending)
    }

    /// Sends a message, and wipes it: it may hold a password of a proxy or a key.
    func send(_ message: consuming [UInt8]) {
        guard registration != nil else { return }
        var message = message
        var framed: [UInt8] = []
        framed.reserveCapacity(4 + message.count)
        withUnsafeBytes(of: UInt32(message.count).bigEndian) { framed += $0 }
        framed += message
        message.wipe()
        backlog += framed.count
        unsent.append(framed)
        if backlog > Self.maximumBacklog { end(.violation) } else { flush() }
    }

    private func handle(_ events: UInt32) {
        // The kernel would report the end in each turn.
        if isPaused, events & Loop.hungUp != 0 { return end(.closed) }
        if events & Loop.writable != 0 { flush() }
        if events & (Loop.readable | Loop.hungUp) != 0 { receive() }
    }

    private func flush() {
        while !unsent.isEmpty {
            let count = unsent[0].withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
                return Glibc.send(run.socket, rest.baseAddress, rest.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            // After another error the end is reported by `receive`.
            guard count > 0 else { break }
            sent = sent + count
            backlog = backlog - count
            guard sent == unsent[0].count else { continue }
            unsent[0].wipe()
            unsent.removeFirst()
            sent = 0
        }
        updateInterest()
    }

    private func updateInterest() {
        var interest: Loop.Interest = isPaused ? [] : .read
        if !unsent.isEmpty { interest.insert(.write) }
        registration?.change(interest)
    }

    /// Asks again whether there is memory for the message that waits.
    func resume() {
        guard isPaused else { return }
        isPaused = false
        parseMessages()
        updateInterest()
    }

    private func receive() {
        withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { buffer in
            defer { if let base = buffer.baseAddress { explicit_bzero(base, buffer.count) } }
            var total = 0
            while registration != nil, !isPaused, total < Self.maximumTurn {
                let count = recv(run.socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN { return }
                guard count > 0 else { return end(.closed) }
                total += count
                keep(buffer.prefix(count))
                parseMessages()
            }
        }
    }

    /// Appends received bytes. What they outgrow is wiped: a report may hold a share of a secret.
    private func keep(_ bytes: Slice<UnsafeMutableRawBufferPointer>) {
        let count = received.count + bytes.count
        if count > received.capacity { moveReceived(from: 0, capacity: count) }
        received += bytes
    }

    private func moveReceived(from start: Int, capacity: Int) {
        var new: [UInt8] = []
        new.reserveCapacity(capacity)
        received.withUnsafeBufferPointer { new += $0[start...] }
        received.wipe()
        received = new
    }

    private func parseMessages() {
        var start = 0
        while registration != nil, received.count - start >= 4 {
            let length = received[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= max(maximum(), Heartbeat.message.count) else { return end(.violation) }
            // A sign of life needs no room.
            if !isAdmitted, length > Heartbeat.message.count {
                isAdmitted = admits(length)
                isPaused = !isAdmitted
                guard isAdmitted else { break }
            }
            guard received.count - start >= 4 + length else {
                // Memory for all of the message, so that it is not moved again.
                if start > 0 || received.capacity < 4 + length { moveReceived(from: start, capacity: 4 + length) }
                return
            }
            isAdmitted = false
            var message = Array(received[start + 4..<start + 4 + length])
            defer { message.wipe() }
            start += 4 + length
            let isAllowed = message == Heartbeat.message ? heartbeat?.answered() == true : onMessage(message)
            guard isAllowed else { return end(.violation) }
        }
        if registration != nil, start > 0 { moveReceived(from: start, capacity: received.count - start) }
    }
}
