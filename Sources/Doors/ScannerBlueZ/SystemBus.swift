// SPDX-License-Identifier: GPL-3.0-or-later
import CSystemd
import Concurrency
import Glibc

/// A connection to the system's D-Bus that never blocks. The C type is sd_bus.
///
/// No callbacks of sd-bus: it hands every message out, and answers are told apart by their cookies here.
@Loop final class SystemBus {
    enum Failure: Error, Equatable {
        /// libsystemd is not installed.
        case noLibrary
        /// errno.
        case system(Int32)
    }

    typealias Answer = @Loop (BusMessage?) -> Void

    /// Gets calls and signals.
    var onMessage: (@Loop (BusMessage) -> Void)?
    /// The bus has gone, or never was there.
    var onEnd: (@Loop () -> Void)?

    static let standardAddress = "unix:path=/run/dbus/system_bus_socket"

    private let bus: OpaquePointer
    private var registration: Loop.Registration?
    private var alarm: Loop.Alarm?
    /// Who waits for the answer to which call, and until when.
    private var waiting: [UInt64: (answer: Answer, deadline: UInt64)] = [:]
    private var isEnded = false
    /// A call that is not answered so fast has failed.
    private static let patience: UInt64 = 25_000_000
    /// Messages that are handled before others get their turn.
    private static let atOnce = 32

    /// Where the bus is.
    enum Place: Sendable {
        case address(String)
        /// A connected socket, taken over; for tests, which play the bus.
        case connection(Int32)
    }

    convenience init(address: String) throws(Failure) { try self.init(.address(address)) }

    init(_ place: Place) throws(Failure) {
        guard csystemd_load() == 0 else { throw .noLibrary }
        var new: OpaquePointer?
        guard csystemd_bus_new(&new) >= 0, let new else { throw .system(ENOMEM) }
        bus = new
        do throws(Failure) {
            switch place {
            case .address(let address): try Self.check(csystemd_bus_set_address(bus, address))
            case .connection(let descriptor): try Self.check(csystemd_bus_set_fd(bus, descriptor))
            }
            try Self.check(csystemd_bus_set_bus_client(bus, 1))
            try Self.check(csystemd_bus_start(bus))
            try watch()
        } catch {
            close()
            throw error
        }
    }

    private static func check(_ code: Int32) throws(Failure) { if code < 0 { throw .system(-code) } }

    isolated deinit { close() }

    private func watch() throws(Failure) {
        do throws(SystemError) {
            registration = try Loop.watch(csystemd_bus_get_fd(bus), .read) { [weak self] _ in self?.process() }
        } catch {
            throw .system(error.code)
        }
        alarm = Loop.Alarm { [weak self] in self?.process() }
        arm()
    }

    /// Ends the connection; nobody is told. `bus` must not be used any more.
    func close() {
        guard !isEnded else { return }
        isEnded = true
        registration?.cancel()
        alarm?.cancel()
        (onMessage, onEnd, waiting) = (nil, nil, [:])
        csystemd_bus_close_unref(bus)
    }

    private func end() {
        guard !isEnded else { return }
        let tell = onEnd
        close()
        tell?()
    }

    // MARK: Calls

    /// Calls a method; `fill` writes its arguments. The answer, of whatever kind, goes to `answer`: nil after 25 s. False:
    /// it cannot be sent, and nothing will be answered.
    @discardableResult func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ fill: (BusMessage) -> Void,
        answer: @escaping Answer = { _ in }
    ) -> Bool {
        guard !isEnded else { return false }
        var raw: OpaquePointer?
        guard csystemd_new_method_call(bus, &raw, destination, path, interface, member) >= 0, let raw else {
            return false
        }
        let message = BusMessage(raw)
        fill(message)
        var cookie: UInt64 = 0
        guard send(message, &cookie) else { return false }
        waiting[cookie] = (answer, Self.now + Self.patience)
        arm()
        return true
    }

    private func send(_ message: BusMessage, _ cookie: UnsafeMutablePointer<UInt64>?) -> Bool {
        withExtendedLifetime(message) { csystemd_bus_send(bus, message.raw, cookie) >= 0 }
    }

    /// Calls a method without arguments.
    func ask(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        answer: @escaping Answer
    ) {
        call(destination, path, interface, member, { _ in }, answer: answer)
    }

    /// Answers a call.
    func reply(to call: BusMessage, _ fill: (BusMessage) -> Void = { _ in }) {
        var raw: OpaquePointer?
        guard !isEnded, csystemd_new_method_return(call.raw, &raw) >= 0, let raw else { return }
        let message = BusMessage(raw)
        fill(message)
        _ = send(message, nil)
        arm()
    }

    /// Answers a call with an error.
    func refuse(_ call: BusMessage, _ name: String) {
        var raw: OpaquePointer?
        guard !isEnded, csystemd_new_method_error(call.raw, &raw, name) >= 0, let raw else { return }
        _ = send(BusMessage(raw), nil)
        arm()
    }

    /// Sends a signal; for tests, which play the service.
    func signal(_ path: String, _ interface: String, _ member: String, _ fill: (BusMessage) -> Void) {
        var raw: OpaquePointer?
        guard !isEnded, csystemd_new_signal(bus, &raw, path, interface, member) >= 0, let raw else { return }
        let message = BusMessage(raw)
        fill(message)
        _ = send(message, nil)
        arm()
    }

    // MARK: The loop

    /// Microseconds of CLOCK_MONOTONIC, as sd-bus counts.
    private static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
    }

    private func process() {
        for _ in 0..<Self.atOnce {
            guard !isEnded else { return }
            var raw: OpaquePointer?
            let code = csystemd_bus_process(bus, &raw)
            if code < 0 { return end() }
            if let raw { dispatch(BusMessage(raw)) }
            if code == 0 { break }
        }
        expire()
        arm()
    }

    private func dispatch(_ message: BusMessage) {
        switch message.kind {
        case .return, .error:
            guard let cookie = message.replyCookie, let entry = waiting.removeValue(forKey: cookie) else { return }
            entry.answer(message)
        case .call, .signal:
            if message.interface == "org.freedesktop.DBus.Local" { end() } else { onMessage?(message) }
        case nil: break
        }
    }

    private func expire() {
        guard !waiting.isEmpty else { return }
        let now = Self.now
        for (cookie, entry) in waiting where entry.deadline <= now {
            waiting[cookie] = nil
            entry.answer(nil)
        }
    }

    /// Waits for what sd-bus wants to wait for.
    private func arm() {
        guard !isEnded else { return }
        let events = csystemd_bus_get_events(bus)
        guard events >= 0 else { return end() }
        var interest: Loop.Interest = []
        if events & Int32(POLLIN) != 0 { interest.insert(.read) }
        if events & Int32(POLLOUT) != 0 { interest.insert(.write) }
        registration?.change(interest)
        var next = waiting.values.map(\.deadline).min() ?? .max
        var timeout: UInt64 = 0
        if csystemd_bus_get_timeout(bus, &timeout) >= 0 { next = min(next, timeout) }
        if next == .max {
            alarm?.cancel()
        } else {
            let now = Self.now
            alarm?.set(after: Int64(next > now ? (next - now) / 1000 + 1 : 0))
        }
    }
}
