// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux

/// CAP_NET_ADMIN, which the kernel wants to see once, when its management socket for Bluetooth is opened; capabilities(7).
package enum NetworkCapability {
    private static let number: UInt32 = 12

    package static var isHeld: Bool { clinux_has_capability(number) != 0 }

    /// Gives it up for the calling thread and those that it starts from now on; so before the first other thread.
    /// - Returns: false when the kernel refuses.
    package static func drop() -> Bool { !isHeld || clinux_drop_capability(number) == 0 }
}
