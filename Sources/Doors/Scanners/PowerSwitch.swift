// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency

/// The power of one adapter, as a way to the radio switches it; without a scan, too, for that may end meanwhile.
@Loop package protocol PowerSwitch: AnyObject {
    /// Devices of others are connected to it, or that cannot be found out.
    func isInUse() async -> Bool

    /// Returns when it is so, or when it will not be for now.
    func turn(_ isOn: Bool) async -> PowerOutcome
}

/// What has become of a wish for an adapter's power.
package enum PowerOutcome: Sendable {
    case done
    /// It may work later: the service is not there, or the adapter is blocked.
    case failed
    /// There is no such adapter any more.
    case gone
}
