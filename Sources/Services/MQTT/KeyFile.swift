// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
package import Host
package import Secrets

/// Files with secrets that systemd passes (`LoadCredential=`), or that only the user of the program may read.
package enum KeyFile {
    private static let limit = 4096

    package static func secret(_ path: String, setting: String) throws(StartError) -> Secret {
        var bytes: [UInt8]
        let descriptor: Int32
        switch PlainFile.open(path) {
        case .file(let opened): descriptor = opened
        case .missing: throw .inConfiguration("there is no file \(path)", hint: "correct \(setting)")
        case .failed(let reason): throw .inConfiguration("cannot read \(path): \(reason)", hint: "correct \(setting)")
        }
        defer { close(descriptor) }
        var status = stat()
        let folder = systemEnvironment("CREDENTIALS_DIRECTORY") ?? ""
        let isCredential = !folder.isEmpty && path.hasPrefix(folder + "/")
        guard fstat(descriptor, &status) == 0, isCredential || status.st_mode & 0o077 == 0 else {
            throw .inConfiguration("\(path) can be read by other users", hint: "chmod 600 \(path)")
        }
        switch PlainFile.read(descriptor, limit: limit) {
        case .bytes(let content): bytes = content
        case .missing, .tooLong, .failed: throw .inConfiguration("cannot read \(path)", hint: "correct \(setting)")
        }
        let secret = Secret(bytes)
        bytes.withUnsafeMutableBytes { memory in
            if let base = memory.baseAddress { explicit_bzero(base, memory.count) }
        }
        return secret
    }

    /// The first line of a file. libmosquitto takes and keeps it as a C string.
    package static func text(_ path: String, setting: String) throws(StartError) -> String {
        try secret(path, setting: setting).withBytes { bytes in
            String(decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
        }
    }
}
