// SPDX-License-Identifier: GPL-3.0-or-later

/// What a test has met in place of the value that it needs, and where. It ends the test.
package struct Unexpected: Error, CustomStringConvertible {
    package let description: String

    package init(_ what: String, file: String = #fileID, line: Int = #line) {
        description = "\(what) at \(file):\(line)"
    }
}
