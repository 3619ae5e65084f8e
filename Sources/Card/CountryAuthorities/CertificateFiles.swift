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

    /// Returns the sorted names of a folder; nil when it cannot be read.
    package static func names(in folder: String) -> [String]? {
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
