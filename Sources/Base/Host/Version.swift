// SPDX-License-Identifier: GPL-3.0-or-later

/// The release this is. The one place: the Makefile reads this line and puts it into the manual pages.
package enum Version {
    package static let current = "0.1.0"
}
