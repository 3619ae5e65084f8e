// SPDX-License-Identifier: GPL-3.0-or-later

/// How old a tap is, by the clocks of this host, in milliseconds.
package enum TapAge {
    /// `time` and `uptime` are those of CREDENTIAL. The larger of both ages counts: somebody may have set the clock of
    /// the wall in between, and another program may have another start of the machine.
    /// - Returns: nil if nobody knows: there is no time, or it is in the future by each clock.
    package static func of(time: Int64?, uptime: Int64?, wallClock: Int64, bootClock: Int64) -> Int64? {
        func age(_ stamp: Int64?, _ now: Int64) -> Int64? {
            guard let stamp, stamp >= 0, stamp <= now else { return nil }
            return now - stamp
        }
        return [age(time, wallClock), age(uptime, bootClock)].compactMap(\.self).max()
    }
}
