// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders

/// Our monitors at bluetoothd, over one connection: registered for each adapter that takes them, described when it asks.
@Loop final class BlueZMonitorRegistration {
    private let bus: SystemBus
    private var monitors: BlueZMonitors
    /// For the adapters with these paths.
    private var adapters: Set<String> = []
    /// Those where they are registered and not yet in force.
    private var awaited: Set<String> = []
    /// They are in force for this adapter; a discovery that runs already has begun without them.
    private let onActive: @Loop (_ path: String) -> Void

    init(_ bus: SystemBus, _ profiles: Set<ReaderProfile>, onActive: @escaping @Loop (String) -> Void) {
        (self.bus, monitors, self.onActive) = (bus, BlueZMonitors(profiles), onActive)
    }

    /// The service takes monitors for this adapter.
    func register(_ path: String) {
        adapters.insert(path)
        awaited.insert(path)
        tell("RegisterMonitor", path)
    }

    /// Registers others in the place of those that are registered.
    func renew(_ profiles: Set<ReaderProfile>) {
        monitors = BlueZMonitors(profiles)
        for path in adapters {
            tell("UnregisterMonitor", path) { [weak self] _ in
                if self?.adapters.contains(path) == true { self?.register(path) }
            }
        }
    }

    /// The adapter has gone.
    func forget(_ path: String) {
        adapters.remove(path)
        awaited.remove(path)
    }

    /// The service has gone.
    func forgetAll() { (adapters, awaited) = ([], []) }

    private func tell(_ member: String, _ path: String, answer: @escaping SystemBus.Answer = { _ in }) {
        bus.call(
            BlueZName.service,
            path,
            BlueZMonitors.manager,
            member,
            { message in message.append(BlueZMonitors.root, "o") },
            answer: answer
        )
    }

    /// bluetoothd reads the monitors, says that they are in force, and which devices come and go; those tell of themselves.
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
        let paths = awaited
        awaited = []
        for path in paths { onActive(path) }
    }
}
