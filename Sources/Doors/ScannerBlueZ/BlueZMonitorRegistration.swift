// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders

/// Registers monitors of advertisements for each adapter that supports them, and answers the calls of bluetoothd to
/// them.
@Loop final class BlueZMonitorRegistration {
    private let bus: SystemBus
    private var monitors: BlueZMonitors
    /// The object paths of the adapters with monitors.
    private var adapters: Set<String> = []
    /// Those of them whose monitors bluetoothd has not activated yet.
    private var pending: Set<String> = []
    /// Called when the monitors of an adapter are active.
    private let onActive: @Loop (_ path: String) -> Void

    init(_ bus: SystemBus, _ profiles: Set<ReaderProfile>, onActive: @escaping @Loop (String) -> Void) {
        (self.bus, monitors, self.onActive) = (bus, BlueZMonitors(profiles), onActive)
    }

    /// Registers the monitors for an adapter.
    func register(_ path: String) {
        adapters.insert(path)
        pending.insert(path)
        call("RegisterMonitor", path)
    }

    /// Replaces the monitors by those of other profiles.
    func renew(_ profiles: Set<ReaderProfile>) {
        monitors = BlueZMonitors(profiles)
        for path in adapters {
            call("UnregisterMonitor", path) { [weak self] _ in
                if self?.adapters.contains(path) == true { self?.register(path) }
            }
        }
    }

    /// The adapter was removed.
    func forget(_ path: String) {
        adapters.remove(path)
        pending.remove(path)
    }

    /// bluetoothd has ended.
    func forgetAll() { (adapters, pending) = ([], []) }

    private func call(_ member: String, _ path: String, answer: @escaping SystemBus.Answer = { _ in }) {
        let method = BusMethod(path, BlueZMonitors.manager, member)
        bus.call(method, arguments: { $0.append(BlueZMonitors.root, "o") }, answer: answer)
    }

    /// Answers a call: bluetoothd reads the monitors, activates them, and reports devices, which the scanner knows
    /// already.
    func answer(_ call: BusMessage) {
        switch (call.interface, call.member) {
        case (BlueZName.objects, "GetManagedObjects") where call.path == BlueZMonitors.root:
            bus.reply(to: call) { monitors.describe($0) }
        case (BlueZMonitors.monitor, let member):
            bus.reply(to: call)
            if member == "Activate", monitors.isLast(call.path) { activated() }
        default: bus.refuse(call, "org.freedesktop.DBus.Error.UnknownMethod")
        }
    }

    private func activated() {
        let paths = pending
        pending = []
        for path in paths { onActive(path) }
    }
}
