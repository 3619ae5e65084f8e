// SPDX-License-Identifier: GPL-3.0-or-later
package import Document
import Glibc
import Host
import Synchronization
import Text

/// What the folder with the authorities of documents has.
package struct DocumentAnchorSummary: Sendable, Equatable {
    package var authorities = 0
    /// Two letters each, sorted.
    package var countries: [String] = []
    package var links = 0
    package var revocationLists = 0
    /// The names of the files with master lists, defect lists and exports of a directory.
    package var lists: [String] = []
    /// When the newest file was written, in seconds since 1970; nil for an empty folder.
    package var newest: Int?
    /// Why files or entries were ignored.
    package var warnings: [String] = []
    /// The revocation lists and defect lists that cannot be used.
    package var unusableLists: [DocumentAnchors.UnusableList] = []
    /// The folder, if not all of its files were read.
    package var unread: [UnreadFolder] = []

    package init() {}
}

/// The folder with the authorities of electronic documents, for a program that runs for long: it is read again when a file
/// has changed, after an hour, and when the clock was set back. Nothing is read before a client asks, because hundreds of certificates take memory and about a second.
package final class DocumentAnchorFolder: Sendable {
    private struct State {
        var reading = FileReading<AnchorFiles>()
        var summary = DocumentAnchorSummary()
        /// nil until a document is read.
        var anchors: DocumentAnchors?
    }

    package let path: String
    /// Whether the folder may be missing: it is the default one, and most hosts read no documents.
    package let mayBeMissing: Bool
    private let requiresRevocationList: Bool
    private let warn: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - path: the folder; a missing one has no authorities.
    ///   - mayBeMissing: whether a missing folder is no fault.
    ///   - requiresRevocationList: whether a signer counts only with a current revocation list.
    ///   - warn: gets a line for each file that is ignored.
    package init(
        _ path: String,
        mayBeMissing: Bool = false,
        requiresRevocationList: Bool = false,
        warn: @escaping @Sendable (String) -> Void
    ) {
        self.path = path
        self.mayBeMissing = mayBeMissing
        self.warn = warn
        self.requiresRevocationList = requiresRevocationList
    }

    /// Returns the authorities; reads the folder if the last reading counts no more. Signatures are checked, so this may
    /// take a second. A cancelled task gets what was read so far. `time` is in seconds since 1970.
    @concurrent package func anchors(at time: Int) async -> DocumentAnchors {
        state.withLock { state in
            let list = list()
            if let anchors = state.anchors, state.reading.counts(for: list, at: time) { return anchors }
            let (anchors, new) = read(list, at: time)
            if !Task.isCancelled { keep(new, &state) }
            state.anchors = Task.isCancelled ? nil : anchors
            return anchors
        }
    }

    /// Returns what the folder has. The certificates are not kept in memory. `time` is in seconds since 1970.
    @concurrent package func summary(at time: Int) async -> DocumentAnchorSummary {
        state.withLock { state in
            let list = list()
            if state.reading.counts(for: list, at: time) { return state.summary }
            let (_, new) = read(list, at: time)
            if !Task.isCancelled { keep(new, &state) }
            return new.summary
        }
    }

    /// Why files or entries are ignored, without a note of it. `time` is in seconds since 1970.
    package func warnings(at time: Int) -> [String] { read(list(), at: time).1.summary.warnings }

    private func keep(_ new: State, _ state: inout State) {
        if state.summary.warnings != new.summary.warnings { new.summary.warnings.forEach(warn) }
        state = new
    }

    private func read(_ list: AnchorFiles, at time: Int) -> (DocumentAnchors, State) {
        var anchors = DocumentAnchors()
        anchors.requiresRevocationList = requiresRevocationList
        var files: [(name: String, content: [UInt8])] = []
        var warnings: [String] = []
        func ignore(_ stamp: FileStamp, _ name: String, _ fault: Malformed) {
            warnings.append("\(name): \(fault)")
            if !stamp.isFolder { anchors.addUnreadable(name, nil, fault) }
        }
        for folder in list.unread {
            warnings.append("\(folder.place): \(folder.fault)")
            anchors.addUnusable(folder.place, folder.fault, countries: nil)
        }
        for stamp in list.stamps where !Task.isCancelled {
            let name = String(stamp.path.dropFirst(path.utf8.count + 1))
            switch PlainFile.readTrusted(stamp.path, limit: DocumentAnchorFile.maximumLength) {
            case .bytes(let content): files.append((name, content))
            // One that was removed meanwhile is not in the next look at the folder.
            case .missing: ignore(stamp, name, FileStamp.missing)
            case .tooLong: ignore(stamp, name, Malformed("the file is too long"))
            case .failed(let reason): ignore(stamp, name, Malformed(reason))
            }
        }
        let added = anchors.addFiles(files, at: time)
        var summary = DocumentAnchorSummary()
        summary.authorities = anchors.count
        summary.countries = anchors.countries.sorted()
        summary.links = anchors.linkCount
        summary.revocationLists = anchors.revocationListCount
        summary.lists = added.lists
        summary.newest = list.stamps.filter(\.isThere).map(\.seconds).max()
        summary.unusableLists = anchors.unusableLists
        summary.unread = list.unread
        summary.warnings = (warnings + added.warnings).map { "\(path)/\($0)" }
        return (anchors, State(reading: FileReading(list, at: time), summary: summary))
    }

    private func list() -> AnchorFiles {
        var files = AnchorFiles(path)
        files.add(files.names())
        return files
    }
}
