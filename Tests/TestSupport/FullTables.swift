// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Says whether slow tables of tests run in full: with BADGED_TEST_ALL=1, as `make test-all` sets it.
package enum FullTables {
    package static let areOn = getenv("BADGED_TEST_ALL").map { String(cString: $0) } == "1"
}
