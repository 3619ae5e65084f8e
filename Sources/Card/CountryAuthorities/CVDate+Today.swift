// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Glibc

extension CVDate {
    /// The current day in UTC, as certificates count. The C function is gmtime_r.
    package static var today: CVDate {
        var now = time(nil)
        var fields = tm()
        gmtime_r(&now, &fields)
        let date = CVDate(year: Int(fields.tm_year) + 1900, month: Int(fields.tm_mon) + 1, day: Int(fields.tm_mday))
        // No certificate is valid when the clock is outside the years that certificates can name.
        return date ?? .earliest
    }
}
