// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

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
                message.container("e", "oa{sa{sv}}") {
                    message.append(Self.path(index), "o")
                    message.container("a", "{sa{sv}}") { Self.describe(group, message) }
                }
            }
        }
    }

    private static func describe(_ patterns: [AdvertisementPattern], _ message: BusMessage) {
        message.container("e", "sa{sv}") {
            message.append(monitor)
            message.container("a", "{sv}") {
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
}
