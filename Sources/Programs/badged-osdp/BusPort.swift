// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import Host
import OSDP
import Text

/// The bytes of one bus: a serial line or a TCP connection, which is opened again when it is gone.
@Loop final class BusPort {
    private let name: String
    private let line: OSDPLine
    private let isRS485: Bool
    private var baud: Int
    /// Called when the line is open, with each piece of bytes, and when the line is gone.
    private let opened: @Loop () -> Void
    private let received: @Loop (ArraySlice<UInt8>) -> Void
    private let closed: @Loop () -> Void
    /// Whether the other side has shown for so long nothing that counts that another connection may take its place.
    private let givesWay: @Loop () -> Bool

    private enum State { case closed, connecting, open, ended }

    private var state = State.closed
    private var descriptor: Int32 = -1
    private var registration: Loop.Registration?
    private var listener: Int32 = -1
    private var listening: Loop.Registration?
    private var failures = 0
    private var loggedFault: String?
    private var buffer = [UInt8](repeating: 0, count: 1024)
    private lazy var alarm = Loop.Alarm { [unowned self] in open() }
    private lazy var acceptsAgain = Loop.Alarm { [unowned self] in listening?.change(.read) }
    private lazy var rateChange = Loop.Alarm { [unowned self] in changeRate() }
    /// When the bytes that were written have left, in microseconds of `Loop.clock`.
    private var isSentAt: Int64 = 0

    private static let longestPause: Int64 = 30_000
    /// How long a connection may take.
    private static let connectTime: Int64 = 5000
    /// The pause before the next connection is accepted when no descriptor or memory is left.
    private static let shortagePause: Int64 = 1000
    /// What an adapter may need until it sends, in microseconds.
    private static let adapterTime: Int64 = 20_000

    init(
        _ bus: OSDPConfiguration.Bus,
        _ line: OSDPLine,
        opened: @escaping @Loop () -> Void,
        received: @escaping @Loop (ArraySlice<UInt8>) -> Void,
        closed: @escaping @Loop () -> Void,
        givesWay: @escaping @Loop () -> Bool
    ) {
        name = bus.name
        self.line = line
        isRS485 = bus.isRS485
        baud = bus.baud
        self.opened = opened
        self.received = received
        self.closed = closed
        self.givesWay = givesWay
    }

    func start() { open() }

    /// Closes the line for good.
    func end() {
        state = .ended
        alarm.cancel()
        acceptsAgain.cancel()
        release()
        listening?.cancel()
        if listener >= 0 { close(listener) }
    }

    var isOpen: Bool { state == .open }

    /// Writes a frame. A line that does not take it is closed and opened again.
    func send(_ bytes: [UInt8]) {
        guard state == .open else { return }
        var count = 0
        repeat { count = write(descriptor, bytes, bytes.count) } while count < 0 && errno == EINTR
        if count == bytes.count {
            isSentAt = max(isSentAt, Loop.clock) + Int64(count * 10) * 1_000_000 / Int64(max(baud, 1))
            return
        }
        fail(count < 0 && errno != EAGAIN ? errorText() : "it takes no more bytes")
    }

    /// Changes the rate of a serial line as soon as the bytes before have left.
    func setBaud(_ new: Int) {
        baud = new
        guard state == .open, case .device = line else { return }
        rateChange.set(at: max(isSentAt, Loop.clock) + Self.adapterTime)
    }

    private func changeRate() {
        if clinux_set_baud(descriptor, UInt32(baud)) != 0 { fail(errorText()) }
    }

    // MARK: Opening

    private func open() {
        guard state != .open, state != .ended else { return }
        if state == .connecting { return fail("it does not answer") }
        switch line {
        case .device(let path):
            let found = clinux_open_serial(path, UInt32(baud), isRS485 ? 1 : 0)
            guard found >= 0 else {
                return fail(errno == ENOTTY ? "it is no serial line, or cannot switch its direction" : errorText())
            }
            use(found)
        case .connect(let address, let port):
            guard let (found, storage) = Self.socket(address, port) else { return fail(errorText()) }
            let result = storage.connect(found)
            guard result == 0 || errno == EINPROGRESS else {
                let reason = errorText()
                close(found)
                return fail(reason)
            }
            watch(found, .write)
            guard descriptor >= 0 else { return }
            state = .connecting
            alarm.set(after: Self.connectTime)
        case .listen(let address, let port): listen(address, port)
        }
    }

    private func watch(_ found: Int32, _ interest: Loop.Interest) {
        descriptor = found
        do throws(SystemError) {
            registration = try Loop.watch(found, interest) { [unowned self] events in ready(events) }
        } catch {
            fail(error.description)
        }
    }

    private func use(_ found: Int32) {
        if found != descriptor { watch(found, .read) }
        guard descriptor >= 0 else { return }
        state = .open
        alarm.cancel()
        failures = 0
        loggedFault = nil
        LineLog.write(.notice, "\(name) open", "\(name): \(line.text) is open")
        opened()
    }

    private func ready(_ events: UInt32) {
        if state == .connecting {
            var code: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0, code == 0 else {
                return fail(String(cString: strerror(code)))
            }
            Self.prepare(descriptor)
            registration?.change(.read)
            return use(descriptor)
        }
        guard state == .open else { return }
        // Once, so that a panel that sends without end does not hold the others. What is left makes the line ready again.
        var count = 0
        repeat { count = read(descriptor, &buffer, buffer.count) } while count < 0 && errno == EINTR
        if count > 0 { return received(buffer[..<count]) }
        if count < 0, errno == EAGAIN { return }
        fail(count == 0 ? "the other side has closed it" : errorText())
    }

    /// Closes the line, and opens it again after a pause.
    private func fail(_ reason: String) {
        guard state != .ended else { return }
        let wasOpen = state == .open
        release()
        state = .closed
        if loggedFault != reason {
            LineLog.write(.warning, "\(name) \(reason)", "\(name): \(line.text): \(reason)")
        }
        loggedFault = reason
        // A port waits for the next connection.
        if listener < 0 {
            alarm.set(after: min(Self.longestPause, 500 << min(Int64(failures), 6)))
            failures += 1
        }
        if wasOpen { closed() }
    }

    private func release() {
        rateChange.cancel()
        registration?.cancel()
        registration = nil
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    // MARK: TCP

    private struct Address {
        var storage = sockaddr_storage()
        var length = socklen_t(0)

        func connect(_ socket: Int32) -> Int32 { with { Glibc.connect(socket, $0, length) } }
        func bind(_ socket: Int32) -> Int32 { with { Glibc.bind(socket, $0, length) } }

        private func with(_ body: (UnsafePointer<sockaddr>) -> Int32) -> Int32 {
            withUnsafePointer(to: storage) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
        }
    }

    private static func socket(_ address: String, _ port: Int) -> (Int32, Address)? {
        var result = Address()
        let isSix = address.utf8.contains(UInt8(ascii: ":"))
        withUnsafeMutableBytes(of: &result.storage) { bytes in
            if isSix {
                var six = sockaddr_in6()
                six.sin6_family = sa_family_t(AF_INET6)
                six.sin6_port = UInt16(truncatingIfNeeded: port).bigEndian
                inet_pton(AF_INET6, address, &six.sin6_addr)
                withUnsafeBytes(of: six) { bytes.copyMemory(from: $0) }
            } else {
                var four = sockaddr_in()
                four.sin_family = sa_family_t(AF_INET)
                four.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
                inet_pton(AF_INET, address, &four.sin_addr)
                withUnsafeBytes(of: four) { bytes.copyMemory(from: $0) }
            }
        }
        result.length = socklen_t(isSix ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size)
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let found = Glibc.socket(isSix ? AF_INET6 : AF_INET, type, 0)
        return found < 0 ? nil : (found, result)
    }

    /// No pause before a frame, and the kernel notices within half a minute that a peer is gone. Who only answers has
    /// nothing on the way that could fail, so the kernel asks.
    private static func prepare(_ socket: Int32) {
        _ = clinux_tcp_nodelay(socket)
        set(SO_KEEPALIVE, 1, of: socket, SOL_SOCKET)
        set(TCP_KEEPIDLE, 10, of: socket, Int32(IPPROTO_TCP))
        set(TCP_KEEPINTVL, 5, of: socket, Int32(IPPROTO_TCP))
        set(TCP_KEEPCNT, 3, of: socket, Int32(IPPROTO_TCP))
        // Milliseconds, for frames that were sent.
        set(TCP_USER_TIMEOUT, 25_000, of: socket, Int32(IPPROTO_TCP))
    }

    private static func set(_ option: Int32, _ value: Int32, of socket: Int32, _ level: Int32) {
        var value = value
        setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private func listen(_ address: String, _ port: Int) {
        guard let (found, storage) = Self.socket(address, port) else { return fail(errorText()) }
        Self.set(SO_REUSEADDR, 1, of: found, SOL_SOCKET)
        guard storage.bind(found) == 0, Glibc.listen(found, 4) == 0 else {
            let reason = errorText()
            close(found)
            return fail(reason)
        }
        do throws(SystemError) {
            listening = try Loop.watch(found, .read) { [unowned self] _ in accept() }
            listener = found
            Log.notice("\(name): waits at \(line.text)")
        } catch {
            close(found)
            fail(error.description)
        }
    }

    /// Takes a connection. While the one before lives, another one is refused; if that `givesWay`, the new one takes its
    /// place.
    private func accept() {
        let found = clinux_accept(listener)
        guard found >= 0 else {
            // The connection stays in the queue, so the loop would be called again at once.
            guard [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) else { return }
            let reason = errorText()
            LineLog.write(.warning, "\(name) shortage", "\(name): a connection to \(line.text) waits: \(reason)")
            listening?.change([])
            return acceptsAgain.set(after: Self.shortagePause)
        }
        guard state == .closed || givesWay() else {
            let text = "\(name): a second connection to \(line.text) is refused"
            LineLog.write(.warning, "\(name) second", text)
            close(found)
            return
        }
        if state == .open {
            fail("for 8 s nothing has come over it, or nothing with the key; a new connection takes its place")
        }
        Self.prepare(found)
        use(found)
    }
}
