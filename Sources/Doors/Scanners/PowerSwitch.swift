// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency

/// Switches the power of one adapter. Works without a scan, because the scan may end during a power cycle.
@Loop package protocol PowerSwitch: AnyObject {
    /// Whether other programs have connections over the adapter, or this cannot be determined.
    func isInUse() async -> Bool

    /// Switches the adapter on or off; returns when the system has answered.
    func setPower(_ isOn: Bool) async -> PowerOutcome
}

/// The result of `PowerSwitch.setPower`.
package enum PowerOutcome: Sendable {
    case done
    /// A later attempt may succeed, for example after the service has started.
    case failed
    /// The adapter was removed.
    case removed
}
