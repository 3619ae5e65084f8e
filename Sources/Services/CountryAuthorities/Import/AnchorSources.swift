// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Glibc
import Host
package import Text

/// Reads certificates from the sources that users name: files, folders, zip archives, standard input.
package struct AnchorSources: Sendable {
    package struct Limits: Sendable {
        /// The maximum number of bytes of one file, and of one entry of an archive.
        package var fileBytes = 64 << 20
        /// The maximum number of bytes of everything together.
        package var totalBytes = 256 << 20
        /// The maximum number of files and entries together.
        package var files = 20_000
        /// The maximum nesting depth of folders, and of archives.
        package var depth = 8
    }

    /// A certificate, and where it was found.
    package struct Found: Sendable, Equatable {
        package let certificate: CVCertificate
        package let place: String

        package init(certificate: CVCertificate, place: String) {
            self.certificate = certificate
            self.place = place
        }
    }

    /// Each certificate once, in the order in which they were found.
    package private(set) var found: [Found] = []
    /// One line for each source that could not be read, or holds no certificate.
    package private(set) var complaints: [Phrase] = []

    private let limits: Limits
    private var bytesLeft: Int
    private var filesLeft: Int
    private var seen: Set<[UInt8]> = []

    package init(_ limits: Limits = Limits()) {
        self.limits = limits
        bytesLeft = limits.totalBytes
        filesLeft = limits.files
    }

    package static let standardInput = "-"

    /// Reads a source that the user has named: a file, a folder, an archive, or `-`.
    package mutating func add(_ path: String) {
        let before = found.count + complaints.count
        if path == Self.standardInput {
            read(descriptor: STDIN_FILENO, "standard input", 0)
        } else {
            add(path, isNamed: true, 0)
        }
        if found.count + complaints.count == before {
            let source: Phrase = path == Self.standardInput ? "standard input" : "\(path)"
            complaints.append("\(source) holds no new certificate")
        }
    }

    /// The resources of an installed AusweisApp, which hold the certificates. `root` is the root of the file system.
    package static func installedPrograms(root: String = "", home: String?) -> [String] {
        let folders = ["/usr/share", "/usr/local/share", "/app/share"].map { root + $0 }
        let flatpaks = ([root + "/var/lib"] + (home.map { [$0 + "/.local/share"] } ?? [])).map { folder in
            "\(folder)/flatpak/app/de.bund.ausweisapp.ausweisapp2/current/active/files/share"
        }
        let snaps = ["\(root)/snap/ausweisapp2-ce/current/usr/share", "\(root)/snap/ausweisapp/current/usr/share"]
        return (folders + flatpaks + snaps).flatMap { folder in
            ["AusweisApp2", "AusweisApp"].map { "\(folder)/\($0)" }
        }.filter { access($0, F_OK) == 0 }
    }

    // MARK: Files and folders

    /// Reads a file or folder. `isNamed`: the user has named it, so it may be a pipe, and faults are reported.
    private mutating func add(_ path: String, isNamed: Bool, _ depth: Int) {
        // O_NONBLOCK: otherwise opening a pipe would block as long as no process writes to the pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { return complain(path, Phrase(stringLiteral: errorText())) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return complain(path, Phrase(stringLiteral: errorText())) }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: addFolder(path, depth)
        case S_IFREG: read(descriptor: descriptor, path, depth)
        case S_IFIFO, S_IFSOCK:
            guard isNamed else { return }
            // Reads wait for those who write.
            _ = fcntl(descriptor, F_SETFL, 0)
            read(descriptor: descriptor, path, depth)
        default: if isNamed { complain(path, "is neither a file nor a folder") }
        }
    }

    private mutating func addFolder(_ path: String, _ depth: Int) {
        guard depth < limits.depth else { return complain(path, "is nested in too many folders") }
        guard let names = Folder.names(in: path, limit: limits.files) else {
            return complain(path, Phrase(stringLiteral: errorText()))
        }
        for name in names.sorted() {
            guard filesLeft > 0, bytesLeft > 0 else { return complain(path, "has more files than can be read") }
            add("\(path)/\(name)", isNamed: false, depth + 1)
        }
    }

    private mutating func read(descriptor: Int32, _ place: String, _ depth: Int) {
        switch PlainFile.read(descriptor, limit: min(limits.fileBytes, bytesLeft)) {
        case .bytes(let bytes): add(bytes, place, depth)
        case .tooLong: complain(place, "is too long")
        case .missing: break
        case .failed(let reason): complain(place, Phrase(stringLiteral: reason))
        }
    }

    // MARK: Content

    private mutating func add(_ bytes: [UInt8], _ place: String, _ depth: Int) {
        bytesLeft -= bytes.count
        filesLeft -= 1
        if ZipArchive.looksLike(bytes) { return addArchive(bytes, place, depth) }
        let search = CertificateSearch(bytes)
        for certificate in search.certificates where seen.insert(certificate.encoded).inserted {
            guard found.count < CertificateSearch.maximumCount else {
                return complain(place, "has too many certificates")
            }
            found.append(Found(certificate: certificate, place: place))
        }
        if search.certificates.isEmpty, let fault = search.firstFault { complain(place, Phrase(stringLiteral: fault)) }
    }

    private mutating func addArchive(_ bytes: [UInt8], _ place: String, _ depth: Int) {
        guard depth < limits.depth else { return complain(place, "is nested in too many archives") }
        do throws(Malformed) {
            let archive = try ZipArchive(bytes)
            for entry in archive.entries where !entry.isFolder {
                guard filesLeft > 0, bytesLeft > 0 else { return complain(place, "has more content than can be read") }
                do throws(Malformed) {
                    let content = try archive.content(of: entry, limit: min(limits.fileBytes, bytesLeft))
                    add(content, "\(place)/\(entry.name)", depth + 1)
                } catch {
                    complain("\(place)/\(entry.name)", Phrase(stringLiteral: error.text))
                    // A damaged entry counts too, because reading it took time.
                    filesLeft -= 1
                    bytesLeft -= min(entry.count, bytesLeft)
                }
            }
        } catch {
            complain(place, Phrase(stringLiteral: error.text))
        }
    }

    private mutating func complain(_ place: String, _ text: Phrase) {
        // An attacker can make an archive with many faults; the first 50 are enough for the user.
        guard complaints.count < 50 else { return }
        complaints.append("\(place): \(text)")
    }
}
