// SPDX-License-Identifier: GPL-3.0-or-later

/// An adapter of the kernel, as the scan sees it.
struct ManagementAdapter {
    /// nil until the kernel has told about it.
    var address: String?
    var isPowered = false
    /// Has Low Energy, switched on.
    var hasLowEnergy = false
    /// Handle of our monitor.
    var monitor: UInt16?
    var isAddingMonitor = false
    /// Our own discovery runs.
    var isDiscovering = false
    /// The kernel has not yet answered the wish for one.
    var isStarting = false
    var isSuspended = false

    var isReady: Bool { isPowered && hasLowEnergy && !isSuspended }
}
