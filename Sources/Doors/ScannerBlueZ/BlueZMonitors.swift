// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// Monitors of advertisements: objects on our side of the bus that bluetoothd reads, org.bluez.AdvertisementMonitor1.
///
/// With one in force the kernel does not ask the controller to swallow repeated advertisements. That is all they are for:
/// what is heard comes as changes of devices, as it does without them.
struct BlueZMonitors {
    static let manager = "org.bluez.AdvertisementMonitorManager1"
    static let monitor = "org.bluez.AdvertisementMonitor1"
    static let root = "/org/badged/monitors"
    /// bluetoothd 5.66 counts the bytes of a monitor for the kernel in 8 bits. From eight patterns on it writes past its
    /// memory and ends.
    static let mostPatterns = 7

    let groups: [[AdvertisementPattern]]

    init(_ profiles: Set<ReaderProfile>) {
        let marks = AdvertisementPattern.patterns(for: profiles)
        groups = stride(from: 0, to: marks.count, by: Self.mostPatterns).map { start in
            Array(marks[start..<min(start + Self.mostPatterns, marks.count)])
        }
    }

    /// Whether this is the object that bluetoothd gets to last.
    func isLast(_ path: String) -> Bool { path == Self.path(groups.count - 1) }

    private static func path(_ index: Int) -> String { "\(root)/\(index)" }

    /// The answer to GetManagedObjects.
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
