// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Glibc
package import Host

/// Writes certificates into the folder of the trust anchors.
///
/// All certificates are first written under temporary names, which badged does not read. So a full disk changes
/// nothing, and badged never reads a half-written certificate.
package struct AnchorWriter: Sendable {
    private let folder: String

    /// - Parameter folder: created if it is missing, with its parents.
    package init(folder: String) { self.folder = folder }

    /// Writes the certificates in this order.
    package func write(_ certificates: [(certificate: CVCertificate, use: AuthorityUse)]) throws(SystemError) {
        var waiting: [(temporary: String, path: String)] = []
        defer { for file in waiting { unlink(file.temporary) } }
        var names: Set<String> = []
        for (certificate, use) in certificates {
            let folder = folder + use.subfolder
            try Self.makeFolder(folder)
            var path = "\(folder)/\(Self.name(of: certificate)).cvcert"
            if !names.insert(path).inserted || access(path, F_OK) == 0 {
                // Another certificate has the same names, so the fingerprint becomes a part of the name.
                let digits = AnchorSelection.fingerprint(of: certificate).prefix(16)
                path = "\(folder)/\(Self.name(of: certificate))-\(digits).cvcert"
            }
            waiting.append((try Self.writeTemporary(certificate.encoded, in: folder), path))
        }
        try publish(&waiting)
        for use in AuthorityUse.allCases { Self.synchronize(folder + use.subfolder) }
    }

    /// Writes files by their names, perhaps in a folder inside, and replaces those that are there.
    package func write(_ files: [String: [UInt8]]) throws(SystemError) {
        var waiting: [(temporary: String, path: String)] = []
        defer { for file in waiting { unlink(file.temporary) } }
        let inside = Set(files.keys.map { $0.split(separator: "/").dropLast().map { "/\($0)" }.joined() })
        for place in inside.sorted() { try Self.makeFolder(folder + place) }
        for (name, content) in files {
            let place = folder + name.split(separator: "/").dropLast().map { "/\($0)" }.joined()
            waiting.append((try Self.writeTemporary(content, in: place), "\(folder)/\(name)"))
        }
        try publish(&waiting)
        for place in inside { Self.synchronize(folder + place) }
    }

    private static func writeTemporary(_ content: [UInt8], in folder: String) throws(SystemError) -> String {
        try CertificateFiles.writeTemporary(content, in: folder, mode: 0o644, isOneOfMany: true)
    }

    /// Brings temporary files to the disk, and gives them their names.
    private func publish(_ waiting: inout [(temporary: String, path: String)]) throws(SystemError) {
        if !waiting.isEmpty { try Folder.synchronizeFileSystem(of: folder) }
        while let file = waiting.first {
            guard rename(file.temporary, file.path) == 0 else { throw SystemError(file.path) }
            waiting.removeFirst()
        }
    }

    /// The file name as in the publications of the BSI: `HOLDER` for a root, `ISSUER_HOLDER` for a link.
    private static func name(of certificate: CVCertificate) -> String {
        let names = certificate.isRoot ? [certificate.holderName] : [certificate.issuerName, certificate.holderName]
        return names.map { name in
            String(decoding: name.utf8.map { isPlain($0) ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
        }.joined(separator: "_")
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }

    private static func makeFolder(_ path: String) throws(SystemError) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError(path, ENOTDIR) }
            return
        }
        let parent = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        if !parent.isEmpty { try makeFolder(parent) }
        guard mkdir(path, 0o755) == 0 || errno == EEXIST else { throw SystemError(path) }
        // badged runs as another user, and the umask of badgectl may deny other users access to new folders.
        guard chmod(path, 0o755) == 0 else { throw SystemError(path) }
    }

    /// The C function is fsync; a folder that was not written may be missing.
    private static func synchronize(_ folder: String) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
