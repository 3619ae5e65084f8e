// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
package import Glibc
package import Host
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
        Folder.names(in: folder, limit: maximumCount) { $0.hasSuffix(suffix) && !$0.hasPrefix(".") }?.sorted()
    }

    /// Writes a file under a temporary name, which readers of the folder ignore. It is on the disk when the call returns,
    /// unless `isOneOfMany`: then the caller brings the whole folder to the disk.
    /// - Returns: its path. The caller renames the file, so that a half-written one is never read.
    package static func writeTemporary(
        _ bytes: [UInt8],
        in folder: String,
        mode: mode_t,
        isOneOfMany: Bool = false
    ) throws(SystemError) -> String {
        var template = Array("\(folder)/.new-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard descriptor >= 0 else { throw SystemError(folder) }
        let isWritten =
            Glibc.write(descriptor, bytes, bytes.count) == bytes.count && fchmod(descriptor, mode) == 0
            && (isOneOfMany || fsync(descriptor) == 0)
        let code = errno
        close(descriptor)
        if isWritten { return path }
        unlink(path)
        throw SystemError(path, code == 0 ? EIO : code)
    }

    /// Reads one certificate.
    /// - Throws: `Malformed`, also when the file cannot be read.
    package static func read(_ path: String) throws(Malformed) -> CVCertificate {
        switch PlainFile.readTrusted(path, limit: CVCertificate.maximumLength) {
        case .bytes(let bytes): return try CVCertificate(bytes)
        case .missing: throw Malformed("there is no such file")
        case .tooLong: throw Malformed("the file is longer than a certificate")
        case .failed(let reason): throw Malformed(reason)
        }
    }
}

/// What files were like when they were read, and when that was.
///
/// What an authority has signed is judged by the time of reading: a list is refused before its signer is valid, as with
/// the clock of a host that has just started, and counts no longer when the signer has expired.
struct FileReading<Stamps: Equatable & Sendable>: Sendable {
    /// nil: nothing was read yet.
    private let stamps: Stamps?
    /// Seconds since 1970.
    private let time: Int
    /// How long it counts, in seconds. To read again takes up to a second.
    private static var life: Int { 3600 }

    init(_ stamps: Stamps? = nil, at time: Int = 0) {
        self.stamps = stamps
        self.time = time
    }

    /// Whether it still counts for files with these attributes.
    func counts(for stamps: Stamps, at time: Int) -> Bool {
        self.stamps == stamps && (0...Self.life).contains(time - self.time)
    }
}

/// The attributes that change when a file is written or replaced.
struct FileStamp: Equatable {
    let path: String
    let isFolder: Bool
    private let inode: UInt64
    private let size: Int64
    /// When it was written, in seconds since 1970.
    let seconds: Int
    private let nanoseconds: Int
    /// When its owner, its rights or its content have changed: a file that others can change is not read.
    private let changeSeconds: Int
    private let changeNanoseconds: Int

    /// Whether there is a file of this name: not behind a link to nothing, and not if the name is not UTF-8.
    let isThere: Bool

    /// About a file that is in its folder and cannot be opened.
    static let missing = Malformed("there is no such file, or its name is not UTF-8")

    init(_ path: String) {
        var status = stat()
        isThere = stat(path, &status) == 0
        if !isThere { status = stat() }
        self.path = path
        isFolder = status.st_mode & S_IFMT == S_IFDIR
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
        changeSeconds = status.st_ctim.tv_sec
        changeNanoseconds = status.st_ctim.tv_nsec
    }
}
