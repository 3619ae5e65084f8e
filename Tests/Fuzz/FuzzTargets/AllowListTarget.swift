// SPDX-License-Identifier: GPL-3.0-or-later
import CredentialFeature
import Glibc

/// Reads a list of credentials from a file, as badged does.
@Sendable func allowList(_ input: UnsafeRawBufferPointer) {
    var path = Array("/tmp/badged-fuzz-XXXXXX".utf8CString)
    let file = mkstemp(&path)
    guard file >= 0 else { return }
    let name = String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer {
        unlink(name)
        close(file)
    }
    guard write(file, input.baseAddress, input.count) == input.count else { return }
    for hasSiteKey in [false, true] {
        guard let list = try? AllowList(file: name, hasSiteKey: hasSiteKey) else { continue }
        // The shortest entry is a pseudonym with its line end.
        require(list.count <= input.count / 46 + 1, "more entries than the file can have")
    }
}
