// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux

/// Landlock, with which a process gives up its rights to files. landlock(7)
package enum Landlock {
    /// Whether the kernel has Landlock, and lets this process use it.
    package static var isSupported: Bool { clinux_landlock_version() > 0 }
}
