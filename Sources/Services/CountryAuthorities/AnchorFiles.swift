// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
package import Host
package import Text

/// A folder with authorities whose files were not all read: what is missing may revoke something.
package struct UnreadFolder: Equatable, Sendable {
    /// The name of a folder inside, or `.` for the folder itself.
    package let place: String
    package let fault: Malformed
}

/// The files of a folder with authorities, and of the folders inside that count.
package struct AnchorFiles: Equatable, Sendable {
    /// The maximum number of files. All countries together have about 1000 certificates and 200 revocation lists.
    package static let maximumCount = 8192

    private let path: String
    private(set) var stamps: [FileStamp] = []
    private(set) var unread: [UnreadFolder] = []

    init(_ path: String) { self.path = path }

    /// The sorted names in the folder itself (nil), which may be missing, or in one inside. Hidden files do not count.
    mutating func names(in folder: String? = nil) -> [String] {
        let names = CertificateFiles.names(
            in: folder.map { "\(path)/\($0)" } ?? path,
            suffix: "",
            maximumCount: Self.maximumCount + 1
        )
        guard let names else {
            guard folder != nil || errno != ENOENT else { return [] }
            unread.append(UnreadFolder(place: folder ?? ".", fault: Malformed(errorText())))
            return []
        }
        if names.count > Self.maximumCount { noteExcess() }
        return names
    }

    /// Adds files by their names, perhaps in a folder inside.
    mutating func add(_ names: [String]) {
        let room = Self.maximumCount - stamps.count
        stamps += names.prefix(room).map { FileStamp("\(path)/\($0)") }
        if names.count > room { noteExcess() }
    }

    private mutating func noteExcess() {
        let excess = UnreadFolder(place: ".", fault: Self.tooMany)
        if !unread.contains(excess) { unread.append(excess) }
    }

    private static let tooMany = Malformed(Phrase("it has more than \(maximumCount) files, and badged reads no more"))

    /// Whether a folder may have these files, too: by their names, perhaps in a folder inside.
    package static func hasRoom(for names: some Sequence<String>, in path: String) -> Bool {
        var all = Set(names)
        for name in CertificateFiles.names(in: path, suffix: "", maximumCount: .max) ?? [] {
            let inside =
                MdocAnchorFolder.isDocType(name)
                ? CertificateFiles.names(in: "\(path)/\(name)", suffix: "", maximumCount: .max) : nil
            all.formUnion(inside.map { $0.map { "\(name)/\($0)" } } ?? [name])
        }
        return all.count <= maximumCount
    }
}

extension HealthCheck {
    /// The check `name` about what badged cannot use in a folder with authorities: folders of which not all files were
    /// read, and files with lists. `command` of badgectl imports such files. nil if badged uses all of them.
    package static func unusable(
        _ name: String,
        _ folder: String,
        command: String,
        unread: [UnreadFolder],
        lists: [(place: String, fault: Malformed)],
        facts: [Fact]
    ) -> HealthCheck? {
        if let first = unread.first {
            let place = first.place == "." ? folder : "\(folder)/\(first.place)"
            return HealthCheck(
                name,
                ok: false,
                cause: "of the folder \(place) not all files are read: \(first.fault.words)",
                advice:
                    "see that badged may read it, and that it has at most \(AnchorFiles.maximumCount) files, such as one PEM file for the signers of a country",
                facts: facts
            )
        }
        guard let first = lists.first else { return nil }
        return HealthCheck(
            name,
            ok: false,
            cause: "the list \(first.place) cannot be used: \(first.fault.words)",
            advice:
                "remove this file, then import the list again: sudo badgectl \(command) anchors import FILE",
            facts: facts + [Fact("unusableLists", lists.count)]
        )
    }
}
