// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Glibc
import Host
package import Text

/// Reads folders of CV certificates: files `NAME.cvcert` in DER.
package enum CertificateFiles {
    package static let suffix = ".cvcert"
    /// The maximum number of files of one folder.
    package static let maximumCount = 256

    /// Returns the sorted names of a folder; nil when it cannot be read. Hidden files do not count.
    package static func names(
        in folder: String,
        suffix: String = suffix,
        maximumCount: Int = maximumCount
    ) -> [String]? {
        guard let directory = opendir(folder) else { return nil }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory), names.count < maximumCount {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(suffix), !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    /// Reads one certificate.
    /// - Throws: `Malformed`, also when the file cannot be read.
    package static func read(_ path: String) throws(Malformed) -> CVCertificate {
        switch PlainFile.read(path, limit: CVCertificate.maximumLength) {
        case .bytes(let bytes): return try CVCertificate(bytes)
        case .missing: throw Malformed("there is no such file")
        case .tooLong: throw Malformed("the file is longer than a certificate")
        case .failed(let reason): throw Malformed(reason)
        }
    }
}

/// The attributes that change when a file is written or replaced.
struct FileStamp: Equatable {
    let path: String
    private let inode: UInt64
    private let size: Int64
    /// When it was written, in seconds since 1970.
    let seconds: Int
    private let nanoseconds: Int

    /// nil: there is no such file.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.path = path
        (inode, size) = (UInt64(status.st_ino), Int64(status.st_size))
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}
