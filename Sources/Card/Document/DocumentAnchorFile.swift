// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// What a file with authorities of documents contains, recognised by its content and not by its name.
package enum DocumentAnchorFile: Sendable, Equatable {
    case certificate(DocumentCertificate)
    case revocationList(RevocationList)
    case masterList(MasterList)
    /// A signed list of defects.
    case defectList(SignedData)
    /// The export of a directory: the files of its entries, and how many of them cannot be read.
    case directory([DocumentAnchorFile], malformed: Int)

    private static let unknown = Malformed("it is no certificate and no list")

    /// Whether the file has more than one thing.
    var isList: Bool {
        switch self {
        case .certificate, .revocationList: false
        case .masterList, .defectList, .directory: true
        }
    }

    /// The maximum length of a file in bytes: a directory with all certificates.
    package static let maximumLength = 128 << 20

    /// Reads a file in DER, a certificate or revocation list in PEM, or an export of a directory (LDIF).
    package init(_ bytes: [UInt8]) throws(Malformed) {
        if bytes.starts(with: [0x50, 0x4B, 0x03, 0x04]) {
            throw Malformed("it is a zip archive: unpack it, and name the files in it")
        }
        if bytes.first == 0x30 {
            self = try Self.binary(bytes)
            return
        }
        if let values = DirectoryExport.values(of: bytes) {
            var files: [DocumentAnchorFile] = []
            var malformed = 0
            for value in values {
                do throws(Malformed) {
                    switch value {
                    case .masterList(let content), .certificate(let content), .revocationList(let content):
                        files.append(try Self.binary(content))
                    }
                } catch {
                    malformed += 1
                }
            }
            self = .directory(files, malformed: malformed)
            return
        }
        guard bytes.count <= DocumentCertificate.maximumLength * 2, let text = String(validating: bytes, as: UTF8.self),
            let content = PEM.certificate.decode(text) ?? PEM.revocationList.decode(text)
        else { throw Self.unknown }
        self = try Self.binary(content)
    }

    private static func binary(_ bytes: [UInt8]) throws(Malformed) -> DocumentAnchorFile {
        if let certificate = try? DocumentCertificate(bytes) { return .certificate(certificate) }
        if let list = try? RevocationList(bytes) { return .revocationList(list) }
        guard let signed = try? SignedData(bytes) else { throw Self.unknown }
        switch signed.contentType {
        case DefectList.contentType: return .defectList(signed)
        case MasterList.contentType: return .masterList(try MasterList(bytes))
        default: throw Self.unknown
        }
    }
}

extension DocumentAnchors {
    /// What the files of a folder gave.
    package struct Summary: Sendable, Equatable {
        /// The names of master lists, defect lists and exports of a directory.
        package var lists: [String] = []
        /// Files that add nothing, and why, for the log.
        package var warnings: [String] = []
    }

    /// Takes the files of a folder that only the administrator writes: its self-signed authorities are trusted; links,
    /// revocation lists, master lists and defect lists count with the signature of one of them.
    ///
    /// - Parameters:
    ///   - files: name and content of each file, in any order.
    ///   - time: seconds since 1970.
    /// - Returns: what was ignored. A cancelled task ends early.
    package mutating func addFiles(_ files: [(name: String, content: [UInt8])], at time: Int) -> Summary {
        var summary = Summary()
        var read: [(String, DocumentAnchorFile)] = []
        for (name, content) in files where !Task.isCancelled {
            do throws(Malformed) {
                let file = try DocumentAnchorFile(content)
                read.append((name, file))
                if file.isList { summary.lists.append(name) }
            } catch {
                summary.warnings.append("\(name): \(error)")
            }
        }
        // Authorities first, since the other files need their signatures; then lists, which may bring more authorities.
        for step in Step.allCases {
            for (name, file) in read where !Task.isCancelled { add(file, step, name, time, &summary) }
        }
        return summary
    }

    private enum Step: CaseIterable { case authorities, links, lists, others }

    private mutating func add(
        _ file: DocumentAnchorFile,
        _ step: Step,
        _ name: String,
        _ time: Int,
        _ summary: inout Summary
    ) {
        do throws(Malformed) {
            switch (file, step) {
            case (.certificate(let certificate), .authorities)
            where certificate.signsCertificates && certificate.isSelfIssued:
                try trust(certificate)
            case (.certificate(let certificate), .links)
            where certificate.signsCertificates && !certificate.isSelfIssued:
                try addLink(certificate)
            case (.certificate(let certificate), .others) where !certificate.isAuthority:
                addSigner(certificate)
            case (.masterList(let list), .lists):
                _ = try add(list, at: time)
            case (.revocationList(let list), .others):
                try add(list)
            case (.defectList(let list), .others):
                try addDefects(list, at: time)
            case (.directory(let files, let malformed), _):
                // A directory is not written by the administrator: it brings no authority of its own.
                guard step != .authorities else { return }
                for entry in files { add(entry, step, name, time, &summary) }
                if step == .others, malformed > 0 { summary.warnings.append("\(name): \(malformed) malformed entries") }
            case (.certificate, _), (.masterList, _), (.revocationList, _), (.defectList, _):
                return
            }
        } catch {
            summary.warnings.append("\(name): \(error)")
        }
    }
}
