// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Concurrency
import DoorReaders

/// The discovery of one adapter, with its filter: org.bluez.Adapter1.
@Loop final class BlueZDiscovery {
    enum State {
        case off
        /// StartDiscovery is not answered yet.
        case starting
        case on
        /// The start was refused; `retry` tries again.
        case refused
        /// bluetoothd has not answered the start; `retry` tries again.
        case unanswered
    }

    enum Outcome {
        case started
        /// The adapter is switched off; a signal reports when it is switched on.
        case notReady
        case refused
    }

    /// Why the discovery does not start.
    enum Failure {
        case refused
        case unanswered
    }

    private(set) var state = State.off
    /// How often in a row the start was refused.
    private var refusals = 0
    /// Why the discovery has not started, until it starts; nil also while bluetoothd refuses for a moment.
    private(set) var failure: Failure?
    /// The refusals of a bluetoothd that has just started, which are no fault. If the last one has crashed, the kernel goes
    /// on with its discovery, for 10.24 s, and starts no other one.
    private static let passingRefusals = 6
    /// The discovery ran, and was stopped to start again or for a planned pause. Until it has started again, the adapter
    /// counts as listening.
    private var continues = false
    /// The monitors of the adapter are active, so the kernel does not let the controller drop repeated advertisements.
    private(set) var hasMonitors = false
    private var repeats = RepeatWatch()
    /// Called with the result of a start.
    var onOutcome: @Loop (Outcome) -> Void = { _ in }

    private let bus: SystemBus
    private let path: String
    private var probe: Loop.Alarm?
    /// The calls of StopDiscovery that bluetoothd has not answered.
    private var stops = 0 { didSet { waiters.check() } }
    private let waiters = Waiters()

    init(_ bus: SystemBus, _ path: String) { (self.bus, self.path) = (bus, path) }

    private func call(_ member: String, answer: @escaping SystemBus.Answer = { _ in }) {
        bus.call(BusMethod(path, BlueZName.adapter, member), answer: answer)
    }

    // MARK: Discovery

    private func stop() {
        let method = BusMethod(path, BlueZName.adapter, "StopDiscovery")
        if bus.call(method, answer: { [weak self] _ in self?.stops -= 1 }) { stops += 1 }
    }

    /// Returns when bluetoothd has answered each stop, or after this time in milliseconds.
    func waitUntilStopped(within limit: Milliseconds) async { await waiters.wait(within: limit) { self.stops == 0 } }

    /// Starts the discovery if it is off. After a refusal only `retry` starts it.
    func start() {
        guard state == .off else { return }
        state = .starting
        setFilter()
        call("StartDiscovery") { [weak self] answer in self?.started(answer) }
    }

    private func started(_ answer: BusMessage?) {
        guard state == .starting else { return }
        if answer?.kind == .return {
            state = .on
            continues = true
            accepted()
            repeats.restarted()
            onOutcome(.started)
        } else if answer?.errorName == "org.bluez.Error.NotReady" {
            state = .off
            continues = false
            accepted()
            onOutcome(.notReady)
        } else {
            // InProgress can mean that an earlier start of this process hangs. So the discovery is stopped before the
            // next attempt.
            state = answer == nil ? .unanswered : .refused
            continues = false
            refusals += 1
            if answer == nil {
                failure = .unanswered
            } else if refusals > Self.passingRefusals {
                failure = .refused
            }
            stop()
            onOutcome(.refused)
        }
    }

    private func accepted() {
        refusals = 0
        failure = nil
    }

    func retry() {
        guard state == .refused || state == .unanswered else { return }
        state = .off
        start()
    }

    func end() {
        guard state == .on else { return }
        state = .off
        stop()
    }

    /// Stops and starts the discovery; the answer to a start in progress is ignored.
    func restart() {
        end()
        state = .off
        start()
    }

    /// Switching off the adapter has ended the discovery.
    func adapterSwitchedOff() {
        state = .off
        continues = false
        accepted()
    }

    /// The adapter receives advertisements, or does so again in a moment or after a planned pause.
    func isListening(isResting: Bool) -> Bool { state == .on || continues && (state == .starting || isResting) }

    // MARK: Repeated advertisements

    /// The monitors of the adapter became active.
    func monitorsStarted() { (hasMonitors, repeats) = (true, RepeatWatch()) }

    /// A device was received. `time` does not include pauses.
    /// - Returns: whether `repeatResult` has changed.
    func received(_ path: String, at time: Milliseconds) -> Bool {
        guard !hasMonitors else { return false }
        let hasChanged = repeats.received(path, at: time)
        if repeats.wantsRestart, state == .on {
            repeats.wantsRestart = false
            restart()
        }
        return hasChanged
    }

    /// Whether the controller drops repeated advertisements.
    var repeatResult: RepeatWatch.Result { hasMonitors ? .passes : repeats.result }

    // MARK: Filter

    func renewFilter() { if state == .on || state == .starting { setFilter() } }

    /// Sets the filter; during a probe an empty one, with which neither bluetoothd nor the kernel filters.
    private func setFilter() {
        let method = BusMethod(path, BlueZName.adapter, "SetDiscoveryFilter")
        bus.call(
            method,
            arguments: { message in
                message.container("a", "{sv}") {
                    guard probe == nil else { return }
                    message.property("Transport", "s") { message.append("le") }
                    // Without an RSSI limit bluetoothd does not report changes of less than 8 dB.
                    message.property("RSSI", "n") { message.append(Int16(-127), "n") }
                    message.property("DuplicateData", "b") { message.append(true) }
                }
            }
        )
    }

    /// Discovers for this time, in milliseconds, without a filter.
    func probe(for time: Int64) {
        probe = Loop.Alarm { [weak self] in
            self?.probe = nil
            self?.renewFilter()
        }
        probe?.set(after: time)
        if state == .off { start() } else { setFilter() }
    }
}

extension Waiters {
    /// Returns when the condition holds, or after this time in milliseconds.
    func wait(within limit: Milliseconds, until condition: @escaping () -> Bool) async {
        var isLate = false
        let alarm = Loop.Alarm {
            isLate = true
            self.check()
        }
        alarm.set(after: limit)
        await wait { isLate || condition() }
        alarm.cancel()
    }
}
