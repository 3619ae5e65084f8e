// SPDX-License-Identifier: Apache-2.0

extension String {
    /// Whether `part` occurs in the text; UTF-8 is compared byte by byte.
    ///
    /// `contains(_:)` of the standard library would link its regular expressions too, 0.8 MB of code.
    package func includes(_ part: StaticString) -> Bool {
        part.withUTF8Buffer { part in
            let text = Array(utf8)
            return part.isEmpty || text.firstPlace(of: part) != nil
        }
    }
}
