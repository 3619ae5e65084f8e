// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Glibc

extension CVDate {
    /// The current day in UTC, the time zone of certificates. The C function is gmtime_r.
    package static var today: CVDate {
        var now = time(nil)
        var fields = tm()
        gmtime_r(&now, &fields)
        let date = CVDate(year: Int(fields.tm_year) + 1900, month: Int(fields.tm_mon) + 1, day: Int(fields.tm_mday))
        // If the clock is outside the years that certificates can name, this day makes all of them invalid.
        return date ?? .earliest
    }
}
