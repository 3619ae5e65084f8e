// SPDX-License-Identifier: GPL-3.0-or-later

/// So many lines in a minute and no more: the journal drops all lines of a service that writes too many, and this program
/// shares them with the daemon.
struct LineLimit {
    static let linesPerMinute = 20
    private var minute = 0
    private var count = 0

    /// - Parameter second: of the system's clock.
    /// - Returns: whether there may be one more.
    mutating func mayWrite(at second: Int) -> Bool {
        if minute != second / 60 { (minute, count) = (second / 60, 0) }
        count += 1
        return count <= Self.linesPerMinute
    }
}
