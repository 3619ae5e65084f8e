// SPDX-License-Identifier: GPL-3.0-or-later
import CSystemd
package import Concurrency
import Glibc
package import Text

/// A connection to the system's D-Bus that never blocks. The C type is sd_bus.
///
/// Callbacks of sd-bus are not used. This class assigns answers to calls by their cookies.
@Loop package final class SystemBus {
    package typealias Answer = @Loop (BusMessage?) -> Void

    /// Called with each call and signal.
    package var onMessage: (@Loop (BusMessage) -> Void)?
    /// Called when the connection is lost or was not possible.
    package var onEnd: (@Loop () -> Void)?

    package static let standardAddress = "unix:path=/run/dbus/system_bus_socket"

    private let bus: OpaquePointer
    private var registration: Loop.Registration?
    private var alarm: Loop.Alarm?
    /// The calls without an answer, by cookie, and the times until which they wait.
    private var waiting: [UInt64: (answer: Answer, deadline: UInt64)] = [:]
    private var isEnded = false
    /// Time for an answer, in microseconds.
    private static let timeout: UInt64 = 25_000_000
    /// After this many messages other work of the loop has its turn.
    private static let largestBatch = 32

    /// Where the bus is.
    package enum Place: Sendable {
        case address(String)
        /// A connected socket, which is taken over; for tests that play the bus.
        case connection(Int32)
    }

    package convenience init(address: String) throws(BusFailure) { try self.init(.address(address)) }

    package init(_ place: Place) throws(BusFailure) {
        guard csystemd_load() == 0 else { throw BusFailure.noLibrary }
        var new: OpaquePointer?
        guard csystemd_bus_new(&new) >= 0, let new else { throw BusFailure.noBus }
        bus = new
        do throws(BusFailure) {
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

    private static func check(_ code: Int32) throws(BusFailure) { if code < 0 { throw BusFailure.noBus } }

    isolated deinit { close() }

    private func watch() throws(BusFailure) {
        registration = try? Loop.watch(csystemd_bus_get_fd(bus), .read) { [weak self] _ in self?.process() }
        guard registration != nil else { throw BusFailure.noBus }
        alarm = Loop.Alarm { [weak self] in self?.process() }
        arm()
    }

    /// Closes the connection. No closure is called any more, and `bus` must not be used.
    package func close() {
        guard !isEnded else { return }
        isEnded = true
        registration?.cancel()
        alarm?.cancel()
        onMessage = nil
        onEnd = nil
        waiting = [:]
        csystemd_bus_close_unref(bus)
    }

    private func end() {
        guard !isEnded else { return }
        let onEnd = onEnd
        close()
        onEnd?()
    }

    // MARK: Calls

    /// Calls a method; `arguments` writes its arguments. `answer` is called with the answer or error, and with nil when
    /// there is none within 25 s.
    /// - Returns: false when the call cannot be sent; `answer` is not called then.
    @discardableResult package func call(
        _ method: BusMethod,
        arguments: (BusMessage) -> Void = { _ in },
        answer: @escaping Answer = { _ in }
    ) -> Bool {
        guard !isEnded else { return false }
        var raw: OpaquePointer?
        let (path, interface) = (method.path, method.interface)
        guard csystemd_new_method_call(bus, &raw, method.destination, path, interface, method.member) >= 0, let raw
        else { return false }
        let message = BusMessage(raw)
        arguments(message)
        var cookie: UInt64 = 0
        guard send(message, &cookie) else { return false }
        waiting[cookie] = (answer, Self.now + Self.timeout)
        arm()
        return true
    }

    /// Calls a method and returns what `read` makes of the answer; nil: there is an error, or no answer within the limit
    /// in milliseconds.
    package func result<Result: Sendable>(
        of method: BusMethod,
        within limit: Int64,
        arguments: (BusMessage) -> Void = { _ in },
        read: @escaping @Loop (BusMessage) -> Result?
    ) async -> Result? {
        let answered = OneShot<Result?>()
        let alarm = Loop.Alarm { answered.fill(nil) }
        alarm.set(after: limit)
        defer { alarm.cancel() }
        let isSent = call(method, arguments: arguments) { answer in
            answered.fill(answer.flatMap { $0.kind == .return ? read($0) : nil })
        }
        return isSent ? await answered.value(whenCancelled: nil) : nil
    }

    private func send(_ message: BusMessage, _ cookie: UnsafeMutablePointer<UInt64>?) -> Bool {
        withExtendedLifetime(message) { csystemd_bus_send(bus, message.raw, cookie) >= 0 }
    }

    /// Answers a call; `values` writes the result.
    package func reply(to call: BusMessage, values: (BusMessage) -> Void = { _ in }) {
        var raw: OpaquePointer?
        guard !isEnded, csystemd_new_method_return(call.raw, &raw) >= 0, let raw else { return }
        let message = BusMessage(raw)
        values(message)
        _ = send(message, nil)
        arm()
    }

    /// Answers a call with an error.
    package func refuse(_ call: BusMessage, _ name: String) {
        var raw: OpaquePointer?
        guard !isEnded, csystemd_new_method_error(call.raw, &raw, name) >= 0, let raw else { return }
        _ = send(BusMessage(raw), nil)
        arm()
    }

    /// Reports properties of an object.
    package func changed(_ path: String, of interface: String, _ properties: (BusMessage) -> Void) {
        signal(path, BlueZName.properties, "PropertiesChanged") { message in
            message.append(interface)
            message.container("a", "{sv}") { properties(message) }
            message.container("a", "s") {}
        }
    }

    /// Sends a signal.
    package func signal(_ path: String, _ interface: String, _ member: String, _ arguments: (BusMessage) -> Void) {
        var raw: OpaquePointer?
        guard !isEnded, csystemd_new_signal(bus, &raw, path, interface, member) >= 0, let raw else { return }
        let message = BusMessage(raw)
        arguments(message)
        _ = send(message, nil)
        arm()
    }

    // MARK: The loop

    /// Microseconds of CLOCK_MONOTONIC, the clock of sd-bus.
    private static var now: UInt64 { UInt64(Loop.clock) }

    private func process() {
        for _ in 0..<Self.largestBatch {
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

    /// Watches the descriptor and sets the alarm as sd-bus requires.
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

/// Why there is no connection to the system's D-Bus.
package enum BusFailure: Error, Sendable {
    case noLibrary
    case noBus

    package var text: Phrase {
        switch self {
        case .noLibrary: "libsystemd is not installed"
        case .noBus: "no connection to the system's D-Bus"
        }
    }
}
