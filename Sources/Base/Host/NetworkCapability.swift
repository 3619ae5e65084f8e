// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux

/// The capability CAP_NET_ADMIN. The kernel requires it to open the Bluetooth management socket; capabilities(7).
package enum NetworkCapability {
    private static let number: UInt32 = 12

    package static var isHeld: Bool { clinux_has_capability(number) != 0 }

    /// Drops the capability for the calling thread and for threads that it starts later.
    ///
    /// Call this while the process has one thread. The C function is capset.
    /// - Returns: false if the kernel refuses.
    package static func giveUp() -> Bool { clinux_drop_capability(number) == 0 }
}
