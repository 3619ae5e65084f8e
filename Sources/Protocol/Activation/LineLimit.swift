// SPDX-License-Identifier: GPL-3.0-or-later

/// Limits the number of log lines per minute.
///
/// The journal drops all lines of a service that writes too many, and this program shares its limit with the daemon.
struct LineLimit {
    static let linesPerMinute = 20
    private var minute = 0
    private var count = 0

    /// - Parameter second: time of the system's clock.
    /// - Returns: whether one more line may be written now.
    mutating func mayWrite(at second: Int) -> Bool {
        if minute != second / 60 { (minute, count) = (second / 60, 0) }
        count += 1
        return count <= Self.linesPerMinute
    }
}
