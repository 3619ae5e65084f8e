// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The files of the test PKI, which Tests/PKI/make-card-data.py creates.
package enum TestPKI {
    package struct Missing: Error {
        package let path: String
    }

    package static func path(_ name: String) -> String {
        let parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        return parts.dropLast(2).joined(separator: "/") + "/PKI/" + name
    }

    /// Returns the content of a file such as `terminal.cvcert`.
    package static func file(_ name: String) throws -> [UInt8] {
        let path = path(name)
        guard let file = fopen(path, "rb") else { throw Missing(path: path) }
        defer { fclose(file) }
        var content = [UInt8](repeating: 0, count: 65_536)
        content.removeLast(content.count - fread(&content, 1, content.count, file))
        return content
    }
}
