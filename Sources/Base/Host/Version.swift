// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux

/// The version of this program.
package enum Version {
    /// Such as `0.2.0`, or `0.2.0~dev720+g03ccc970` for the commit 03ccc970 before that release.
    package static let current = String(cString: badged_version())

    /// The numbers of the release. What follows them is left out.
    package static let numbers: (major: Int, minor: Int, patch: Int) = {
        let numbers =
            current.prefix { $0.isNumber || $0 == "." }.split(separator: ".").map { Int($0) ?? 0 } + [0, 0, 0]
        return (numbers[0], numbers[1], numbers[2])
    }()
}
