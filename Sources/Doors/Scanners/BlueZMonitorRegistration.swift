// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
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
        self.bus = bus
        monitors = BlueZMonitors(profiles)
        self.onActive = onActive
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

/// Monitors of advertisements, which bluetoothd reads from this process: org.bluez.AdvertisementMonitor1.
///
/// While a monitor is active, the kernel does not let the controller drop repeated advertisements. This is their only
/// purpose: advertisements arrive as changes of devices, with and without monitors.
struct BlueZMonitors {
    static let manager = "org.bluez.AdvertisementMonitorManager1"
    static let monitor = "org.bluez.AdvertisementMonitor1"
    static let root = "/org/badged/monitors"
    /// bluetoothd 5.66 counts the bytes of a monitor in 8 bits. With eight patterns it writes beyond its buffer and
    /// crashes.
    static let maximumPatterns = 7

    /// The patterns of each monitor.
    let groups: [[AdvertisementPattern]]

    init(_ profiles: Set<ReaderProfile>) {
        let patterns = AdvertisementPattern.patterns(for: profiles)
        groups = stride(from: 0, to: patterns.count, by: Self.maximumPatterns).map { start in
            Array(patterns[start..<min(start + Self.maximumPatterns, patterns.count)])
        }
    }

    /// Whether this is the path of the last monitor, which bluetoothd activates last.
    func isLast(_ path: String) -> Bool { path == Self.path(groups.count - 1) }

    private static func path(_ index: Int) -> String { "\(root)/\(index)" }

    /// Writes the answer to GetManagedObjects.
    func describe(_ message: BusMessage) {
        message.container("a", "{oa{sa{sv}}}") {
            for (index, group) in groups.enumerated() {
                message.object(Self.path(index)) { Self.describe(group, message) }
            }
        }
    }

    private static func describe(_ patterns: [AdvertisementPattern], _ message: BusMessage) {
        message.interfaceEntry(monitor) {
            message.property("Type", "s") { message.append("or_patterns") }
            message.property("Patterns", "a(yyay)") {
                message.container("a", "(yyay)") {
                    for pattern in patterns {
                        message.container("r", "yyay") {
                            message.append(pattern.start, "y")
                            message.append(pattern.type, "y")
                            message.append(pattern.content)
                        }
                    }
                }
            }
        }
    }
}
