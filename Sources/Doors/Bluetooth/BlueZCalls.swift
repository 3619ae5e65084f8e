// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Text

/// What one connection asks of bluetoothd, over a bus of its own: calls with time limits, and waiting for a change. Both
/// end with bluetoothd, with the bus, and with the task.
@Loop final class BlueZCalls {
    let bus: SystemBus
    /// The unique bus name of bluetoothd. Only its messages count.
    private var service = ""
    /// Whether bluetoothd is waited for.
    private var isSearching = false
    /// Why nothing more can be received.
    private(set) var failure: LinkFailure?
    /// Called with each signal and call of bluetoothd.
    var onMessage: (@Loop (BusMessage) throws(Malformed) -> Void)?
    /// Called with the name of each method that bluetoothd has answered.
    var onAnswer: (@Loop (_ member: String) -> Void)?
    /// Returns another failure than that in the words of bluetoothd, for the method and the error.
    var onRefusal: (@Loop (_ member: String, _ error: BusMessage) -> LinkFailure?)?
    /// Why waiting ends before its condition holds; nil: it goes on.
    var obstacle: (@Loop () -> LinkFailure?)?
    /// What bluetoothd has said of the last connection that failed, as the end of a sentence.
    var reason: Phrase?
    /// Called when bluetoothd has ended. A call would start it again.
    var onServiceEnd: (@Loop () -> Void)?
    /// What the device has sent, and nobody has read.
    private var inbox: GATTInbox
    /// Fulfilled at the next change.
    private var change: OneShot<Void>?
    /// Ends the call in progress.
    private var pending: ((LinkFailure) -> Void)?

    /// How long bluetoothd may take to start a discovery that ends in vain, and to stop it, in milliseconds.
    private static let startLimit: Milliseconds = 200
    private static let stopLimit: Milliseconds = 2000
    /// The pause before a discovery that bluetoothd has refused is tried again, in milliseconds.
    private static let refusalPause: Milliseconds = 250
    private static let cancelled: LinkFailure = .failed("it was cancelled")

    /// Takes over the bus. The connection fails if more values than `mostWaiting` are waiting to be read.
    init(_ bus: SystemBus, mostWaiting: Int = 0) {
        self.bus = bus
        inbox = GATTInbox(capacity: mostWaiting)
        bus.onMessage = { [weak self] message in self?.take(message) }
        bus.onEnd = { [weak self] in self?.fail("the connection to the D-Bus has ended") }
    }

    // MARK: Calls

    /// Finds bluetoothd without starting it. One that has crashed is waited for, since the system may start it again.
    /// - Returns: whether it was waited for, so that it may not have its adapters yet.
    @discardableResult
    func findService(until deadline: Milliseconds) async throws(LinkFailure) -> Bool {
        isSearching = true
        defer { isSearching = false }
        match("sender='\(BlueZName.bus)',member='NameOwnerChanged',arg0='\(BlueZName.service)'")
        let owner = try await ask(
            .nameOwner,
            arguments: { $0.append(BlueZName.service) },
            until: deadline,
            refused: ""
        ) { answer throws(Malformed) in try answer.string() }
        guard owner.isEmpty else {
            service = owner
            return false
        }
        do throws(LinkFailure) {
            try await wait(until: deadline) { !self.service.isEmpty }
            return true
        } catch {
            throw error == .timedOut ? .failed("bluetoothd is not running") : error
        }
    }

    /// Receives the signals of bluetoothd that match a rule, such as `interface='...'`.
    func watch(_ rule: String) { match("sender='\(BlueZName.service)',\(rule)") }

    private func match(_ rule: String) { bus.call(.addMatch, arguments: { $0.append("type='signal',\(rule)") }) }

    func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        until deadline: Milliseconds,
        _ arguments: (BusMessage) -> Void = { _ in }
    ) async throws(LinkFailure) {
        try await ask(BusMethod(path, interface, member), arguments: arguments, until: deadline) { _ in }
    }

    /// Calls a method and returns what `read` makes of the answer. An answer with an error is `refused`, or else a failure
    /// with the words `refusal`, or else one in the words of bluetoothd.
    func ask<Result: Sendable>(
        _ method: BusMethod,
        arguments: (BusMessage) -> Void = { _ in },
        until deadline: Milliseconds,
        refused: Result? = nil,
        refusal: Phrase? = nil,
        read: @escaping @Loop (BusMessage) throws(Malformed) -> Result
    ) async throws(LinkFailure) -> Result {
        if let failure { throw failure }
        let answered = OneShot<Swift.Result<Result, LinkFailure>>()
        let isSent = bus.call(method, arguments: arguments) { [weak self] answer in
            self?.onAnswer?(method.member)
            self?.changed()
            guard let answer else { return _ = answered.fill(.failure(.timedOut)) }
            guard answer.kind == .return else {
                if let refused { return _ = answered.fill(.success(refused)) }
                let reason: Phrase = refusal ?? "bluetoothd answers \(method.member) with \(Self.text(answer))"
                answered.fill(.failure(self?.onRefusal?(method.member, answer) ?? .failed(reason)))
                return
            }
            do throws(Malformed) {
                answered.fill(.success(try read(answer)))
            } catch {
                answered.fill(.failure(.failed("bluetoothd answers \(method.member) in an unknown form")))
            }
        }
        guard isSent else { throw .failed("the D-Bus cannot be reached") }
        pending = { answered.fill(.failure($0)) }
        let alarm = Loop.Alarm { answered.fill(.failure(.timedOut)) }
        alarm.set(after: deadline - Loop.now)
        let result = await answered.value(whenCancelled: .failure(Self.cancelled))
        alarm.cancel()
        pending = nil
        return try result.get()
    }

    /// The error of an answer, in the words of bluetoothd.
    static func text(_ error: BusMessage) -> String {
        let text = error.errorText.map { $0.isEmpty ? "" : ": \($0)" } ?? ""
        return (error.errorName ?? "an error") + text
    }

    /// Names the step that has taken too long, perhaps after failures that bluetoothd has explained.
    func step(_ late: Phrase, _ call: @autoclosure @Loop () async throws(LinkFailure) -> Void) async throws(LinkFailure)
    {
        do throws(LinkFailure) {
            try await call()
        } catch {
            guard error == .timedOut else { throw error }
            throw .late(reason.map { "\(late); \($0)" } ?? late)
        }
    }

    // MARK: Values

    /// Queues a value of the device, whose name is for people, such as `the phone`.
    func received(_ bytes: [UInt8], of characteristic: String, from peer: Phrase) {
        if !inbox.append(bytes, of: characteristic) { fail("\(peer) sends too much data") }
    }

    /// Returns the next value. `limit`: nil waits until the connection ends.
    func value(within limit: Milliseconds?) async throws(LinkFailure) -> GATTValue {
        // What was received before the end of the connection is still returned.
        if inbox.isEmpty { try await wait(until: limit.map { Loop.now + $0 }) { !self.inbox.isEmpty } }
        guard let value = inbox.next() else { throw .timedOut }
        return value
    }

    // MARK: Changes

    /// Returns when the condition holds. `deadline`: nil waits without a limit.
    func wait(until deadline: Milliseconds?, for condition: () -> Bool) async throws(LinkFailure) {
        let alarm = Loop.Alarm { [weak self] in self?.changed() }
        if let deadline { alarm.set(after: deadline - Loop.now) }
        defer { alarm.cancel() }
        while !condition() {
            if let failure { throw failure }
            if let obstacle = obstacle?() { throw obstacle }
            if Task.isCancelled { throw Self.cancelled }
            if let deadline, Loop.now >= deadline { throw .timedOut }
            let change = OneShot<Void>()
            self.change = change
            await change.value(whenCancelled: ())
        }
    }

    /// Lets the conditions of `wait` be checked.
    func changed() { change?.fill(()) }

    /// Ends the call in progress. Others can follow.
    func interrupt(_ reason: LinkFailure) { pending?(reason) }

    /// Ends what runs, and what is called later.
    func fail(_ reason: Phrase) {
        failure = failure ?? .failed(reason)
        interrupt(.failed(reason))
        changed()
    }

    /// Begins the end of the connection: messages do not matter any more, so that a device that goes on sending does not
    /// end the last calls.
    func ignoreMessages() {
        service = ""
        failure = nil
        obstacle = nil
    }

    private func take(_ message: BusMessage) {
        if message.sender == BlueZName.bus, message.kind == .signal {
            guard message.member == "NameOwnerChanged" else { return }
            if isSearching, let owner = try? Self.newOwner(message) {
                service = owner
                return changed()
            }
            onServiceEnd?()
            return fail("bluetoothd has ended")
        }
        guard message.sender == service else {
            if message.kind == .call { bus.refuse(message, "org.freedesktop.DBus.Error.AccessDenied") }
            return
        }
        do throws(Malformed) {
            try onMessage?(message)
        } catch {
            fail("bluetoothd has sent a message in an unknown form")
        }
        changed()
    }

    private static func newOwner(_ message: BusMessage) throws(Malformed) -> String {
        _ = try (message.string(), message.string())
        return try message.string()
    }

    // MARK: Devices

    /// Lets bluetoothd search devices, of these services if there are some, until the condition holds. It knows them from
    /// then on. A refused discovery is tried again while the time lasts: after a crash of bluetoothd the kernel goes on with
    /// the old discovery for some seconds.
    func discover(
        on adapter: String,
        services: [String] = [],
        until deadline: Milliseconds,
        for condition: () -> Bool
    ) async throws(LinkFailure) {
        try await call(adapter, BlueZName.adapter, "SetDiscoveryFilter", until: deadline) { message in
            message.container("a", "{sv}") {
                message.property("Transport", "s") { message.append("le") }
                if !services.isEmpty { message.property("UUIDs", "as") { message.append(services) } }
            }
        }
        while let refusal = try await discoverOnce(on: adapter, until: deadline, for: condition) {
            let next = Loop.now + Self.refusalPause
            guard next < deadline else { throw .failed("bluetoothd answers StartDiscovery with \(refusal)") }
            do throws(LinkFailure) {
                return try await wait(until: next, for: condition)
            } catch {
                guard error == .timedOut else { throw error }
            }
        }
    }

    /// - Returns: the words with which bluetoothd refuses to discover; nil: the condition holds.
    private func discoverOnce(
        on adapter: String,
        until deadline: Milliseconds,
        for condition: () -> Bool
    ) async throws(LinkFailure) -> String? {
        // The device that is announced is enough: the answer may come late, when other programs discover.
        var refusal: String?
        let started = OneShot<Void>()
        bus.call(
            BusMethod(adapter, BlueZName.adapter, "StartDiscovery"),
            answer: { [weak self] answer in
                if let answer, answer.kind == .error { refusal = Self.text(answer) }
                started.fill(())
                self?.changed()
            }
        )
        let stop = BusMethod(adapter, BlueZName.adapter, "StopDiscovery")
        do throws(LinkFailure) {
            try await wait(until: deadline) { condition() || refusal != nil }
        } catch {
            await end(started, stop)
            throw error
        }
        // A controller connects more reliably while no discovery runs. bluetoothd handles the calls in their order.
        bus.call(stop)
        return condition() ? nil : refusal
    }

    /// Ends a discovery in vain, so that the scan can go on: bluetoothd refuses to stop what it still starts, and never answers
    /// a start of another connection to the bus while it stops.
    private func end(_ started: OneShot<Void>, _ stop: BusMethod) async {
        guard failure == nil else { return }
        // The task may be cancelled.
        await Task { @Loop in
            let alarm = Loop.Alarm { started.fill(()) }
            alarm.set(after: Self.startLimit)
            await started.value(whenCancelled: ())
            alarm.cancel()
            _ = await bus.result(of: stop, within: Self.stopLimit) { _ in true }
        }.value
    }

    /// A property of a device that is true or false.
    func flag(_ name: String, of device: String, until deadline: Milliseconds) async throws(LinkFailure) -> Bool {
        try await ask(
            BusMethod(device, BlueZName.properties, "Get"),
            arguments: { message in
                message.append(BlueZName.device)
                message.append(name)
            },
            until: deadline
        ) { answer throws(Malformed) in try answer.variant("b", answer.bool()) }
    }

    /// Disconnects a device and lets bluetoothd forget it, with what it has written to the disk. A device that is paired
    /// stays, because it belongs to the user of this computer.
    func forget(_ device: String, of adapter: String, until deadline: Milliseconds) async {
        guard (try? await flag("Paired", of: device, until: deadline)) == false else { return }
        await remove(device, of: adapter, until: deadline)
    }

    func remove(_ device: String, of adapter: String, until deadline: Milliseconds) async {
        try? await call(device, BlueZName.device, "Disconnect", until: deadline)
        try? await call(adapter, BlueZName.adapter, "RemoveDevice", until: deadline) { $0.append(device, "o") }
    }
}
