// SPDX-License-Identifier: GPL-3.0-or-later

/// The version of this release. The Makefile reads this line and puts the version into the manual pages.
package enum Version {
    package static let current = "0.1.0"
}
