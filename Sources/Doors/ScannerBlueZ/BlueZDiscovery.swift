// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Scanners

/// The discovery of one adapter, with its filter: org.bluez.Adapter1.
@Loop final class BlueZDiscovery {
    enum State {
        case off
        /// Filter and StartDiscovery are under way.
        case starting
        case on
        /// It was refused, and is tried again with `retry`.
        case refused
    }

    enum Outcome {
        case started
        /// The adapter is switched off; bluetoothd will say when it no longer is.
        case notReady
        case refused
    }

    private(set) var state = State.off
    /// What has become of a start.
    var onOutcome: @Loop (Outcome) -> Void = { _ in }

    private let bus: SystemBus
    private let path: String
    private var probe: Loop.Alarm?

    init(_ bus: SystemBus, _ path: String) { (self.bus, self.path) = (bus, path) }

    private func ask(_ member: String, answer: @escaping SystemBus.Answer = { _ in }) {
        bus.ask(BlueZName.service, path, BlueZName.adapter, member, answer: answer)
    }

    // MARK: Discovery

    /// Unless it runs already. One that was refused waits for `retry`.
    func start() {
        guard state == .off else { return }
        state = .starting
        setFilter()
        ask("StartDiscovery") { [weak self] answer in self?.started(answer) }
    }

    private func started(_ answer: BusMessage?) {
        guard state == .starting else { return }
        if answer?.kind == .return {
            state = .on
            onOutcome(.started)
        } else if answer?.errorName == "org.bluez.Error.NotReady" {
            state = .off
            onOutcome(.notReady)
        } else {
            // InProgress can be a start of our own that hangs: it is ended before the next try.
            state = .refused
            ask("StopDiscovery")
            onOutcome(.refused)
        }
    }

    func retry() {
        guard state == .refused else { return }
        state = .off
        start()
    }

    func end() {
        guard state == .on else { return }
        state = .off
        ask("StopDiscovery")
    }

    /// What runs is stopped, and what was asked for does not count any more.
    func restart() {
        end()
        state = .off
        start()
    }

    /// The adapter was switched off, and with it the discovery.
    func lost() { state = .off }

    // MARK: Filter

    func renewFilter() { if state == .on || state == .starting { setFilter() } }

    /// With an empty filter bluetoothd has none: its discovery is another one, which the kernel does not filter either.
    private func setFilter() {
        bus.call(
            BlueZName.service,
            path,
            BlueZName.adapter,
            "SetDiscoveryFilter",
            { message in
                message.container("a", "{sv}") {
                    guard probe == nil else { return }
                    message.property("Transport", "s") { message.append("le") }
                    // Without a limit changes below 8 dB are not told.
                    message.property("RSSI", "n") { message.append(Int16(-127), "n") }
                    message.property("DuplicateData", "b") { message.append(true) }
                }
            }
        )
    }

    /// For so many milliseconds without any filter.
    func probe(for time: Int64) {
        probe = Loop.Alarm { [weak self] in
            self?.probe = nil
            self?.renewFilter()
        }
        probe?.set(after: time)
        if state == .off { start() } else { setFilter() }
    }
}
