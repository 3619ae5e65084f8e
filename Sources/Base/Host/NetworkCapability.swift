// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux

/// CAP_NET_ADMIN, which the kernel asks for when its management socket for Bluetooth is opened. capabilities(7).
package enum NetworkCapability {
    private static let number: UInt32 = 12

    package static var isHeld: Bool { clinux_has_capability(number) != 0 }

    /// Gives the capability up for the calling thread and the threads that it starts later. Call it while there is one
    /// thread.
    /// - Returns: false when the kernel refuses. The C function is capset.
    package static func giveUp() -> Bool { clinux_drop_capability(number) == 0 }
}
