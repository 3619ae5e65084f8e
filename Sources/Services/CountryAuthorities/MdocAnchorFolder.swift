// SPDX-License-Identifier: GPL-3.0-or-later
package import Document
import Glibc
import Host
package import MobileDocument
import Synchronization
package import Text

/// What the folder with the authorities of mobile documents has.
package struct MdocAnchorSummary: Sendable, Equatable {
    package var authorities = 0
    /// Two letters each, sorted.
    package var countries: [String] = []
    package var links = 0
    package var revocationLists = 0
    /// The number of status lists and identifier lists.
    package var statusLists = 0
    /// The types of documents for which the folder has authorities of their own, sorted. Those in the folder itself
    /// count for all documents.
    package var docTypes: [String] = []
    /// When the newest file was written, in seconds since 1970; nil for an empty folder.
    package var newest: Int?
    /// Why files or entries were ignored.
    package var warnings: [String] = []
    /// Why lists that were fetched do not count, by their address.
    package var refusals: [String: Malformed] = [:]
    /// The lists of the folder that cannot be used.
    package var unusableLists: [UnusableList] = []
    /// The folders of which not all files were read.
    package var unread: [UnreadFolder] = []

    /// A list that cannot be used.
    package struct UnusableList: Sendable, Equatable {
        package let place: String
        package let fault: Malformed
    }

    package init() {}
}

/// The folder with the authorities of mobile documents. Certificates in the folder are trusted for all documents; those
/// in a folder inside, whose name is a document type, for this type. Revocation lists and status lists may lie in any.
/// The lists that badged has fetched count beside them. They are read again when a file has changed, after an hour, and
/// when the clock was set back; nothing is read before somebody asks. docs/mobile-documents.md.
package final class MdocAnchorFolder: Sendable {
    private struct Stamps: Equatable, Sendable {
        var files: AnchorFiles
        var lists: [FileStamp]
    }

    private struct State {
        var reading = FileReading<Stamps>()
        var summary = MdocAnchorSummary()
        /// nil until a document is read.
        var authorities: MdocAuthorities?
    }

    package let path: String
    /// Whether the folder may be missing: it is the default one, and most hosts read no phones.
    package let mayBeMissing: Bool
    /// What was fetched; nil: nothing is.
    private let lists: PublishedListFolder?
    private let warn: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// How the names of status lists end that an import has written.
    package static let statusListSuffix = ".cwt"

    /// - Parameters:
    ///   - path: the folder; a missing one has no authorities.
    ///   - mayBeMissing: whether a missing folder is no fault.
    ///   - lists: the lists that are fetched.
    ///   - warn: gets a line for each file that is ignored.
    package init(
        _ path: String,
        mayBeMissing: Bool = false,
        lists: PublishedListFolder? = nil,
        warn: @escaping @Sendable (String) -> Void
    ) {
        self.path = path
        self.mayBeMissing = mayBeMissing
        self.lists = lists
        self.warn = warn
    }

    /// Whether a word may be the name of a folder for a document type.
    package static func isDocType(_ name: String) -> Bool {
        name.utf8.count <= 128 && name.utf8.contains(UInt8(ascii: ".")) && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// Returns the authorities; reads the folders if the last reading counts no more. A cancelled task gets what was read
    /// so far. `time` is in seconds since 1970.
    @concurrent package func authorities(at time: Int) async -> MdocAuthorities {
        state.withLock { state in
            let stamps = stamps()
            if let authorities = state.authorities, state.reading.counts(for: stamps, at: time) { return authorities }
            let (authorities, new) = read(stamps, at: time)
            if !Task.isCancelled { keep(new, &state) }
            state.authorities = Task.isCancelled ? nil : authorities
            return authorities
        }
    }

    /// Returns what the folder has. The certificates are not kept in memory. `time` is in seconds since 1970.
    @concurrent package func summary(at time: Int) async -> MdocAnchorSummary {
        state.withLock { state in
            let stamps = stamps()
            if state.reading.counts(for: stamps, at: time) { return state.summary }
            let (_, new) = read(stamps, at: time)
            if !Task.isCancelled { keep(new, &state) }
            return new.summary
        }
    }

    /// Judges a list that was fetched, also as the one that takes the place of `old`. `time` is in seconds since 1970.
    /// - Throws: `Malformed` with the reason.
    @concurrent package func judge(
        _ list: PublishedList,
        after old: PublishedList?,
        at time: Int
    ) async throws(Malformed) {
        let anchors = await anchors(at: time)
        try list.judge(by: anchors, at: time)
        try old?.judge(next: list, by: anchors, at: time)
    }

    /// Returns what judges lists, as they are judged again for each document. Keeps nothing in memory. `time` is in seconds
    /// since 1970.
    @concurrent package func anchors(at time: Int) async -> DocumentAnchors {
        state.withLock { state in
            let stamps = stamps()
            if let authorities = state.authorities, state.reading.counts(for: stamps, at: time) {
                return authorities.anchors
            }
            return read(stamps, at: time).0.anchors
        }
    }

    /// Why files or entries are ignored, without a note of it. `time` is in seconds since 1970.
    package func warnings(at time: Int) -> [String] { read(stamps(), at: time).1.summary.warnings }

    private func keep(_ new: State, _ state: inout State) {
        if state.summary.warnings != new.summary.warnings { new.summary.warnings.forEach(warn) }
        state = new
    }

    private func read(_ stamps: Stamps, at time: Int) -> (MdocAuthorities, State) {
        var groups: [String?: [(name: String, content: [UInt8])]] = [:]
        var statusLists: [(name: String, list: MdocStatusList)] = []
        var refusals: [String: Malformed] = [:]
        var warnings: [String] = []
        var anchors = DocumentAnchors()
        var unusableLists: [MdocAnchorSummary.UnusableList] = []
        // A document that names such a list is not checked for revocation.
        func ignoreStatusList(_ name: String, _ fault: Malformed) {
            warnings.append("\(name): \(fault)")
            unusableLists.append(.init(place: name, fault: fault))
        }
        func ignore(_ stamp: FileStamp, _ name: String, _ fault: Malformed) {
            if name.hasSuffix(Self.statusListSuffix) { return ignoreStatusList(name, fault) }
            warnings.append("\(name): \(fault)")
            if !stamp.isFolder { anchors.addUnreadable(name, nil, fault) }
        }
        for folder in stamps.files.unread {
            warnings.append("\(folder.place): \(folder.fault)")
            anchors.addUnusable(folder.place, folder.fault, countries: nil)
        }
        for stamp in stamps.files.stamps where !Task.isCancelled {
            let name = String(stamp.path.dropFirst(path.utf8.count + 1))
            switch PlainFile.readTrusted(stamp.path, limit: DocumentAnchorFile.maximumLength) {
            case .bytes(let content)
            where MdocStatusList.looksLike(content) || name.hasSuffix(Self.statusListSuffix):
                do throws(MdocProblem) {
                    statusLists.append((name, try MdocStatusList(content)))
                } catch {
                    ignoreStatusList(name, Malformed(error.text))
                }
            case .bytes(let content):
                let parts = name.split(separator: "/")
                groups[parts.count > 1 ? String(parts[0]) : nil, default: []].append((name, content))
            case .missing: ignore(stamp, name, FileStamp.missing)
            case .tooLong: ignore(stamp, name, Malformed("the file is too long"))
            case .failed(let reason): ignore(stamp, name, Malformed(reason))
            }
        }
        // The authorities of all folders come first, because a list may lie in any. Those for one type come before those
        // of the folder itself, so that what these vouch for counts for the same types each time.
        let ordered = groups.sorted { ($0.key == nil ? 1 : 0, $0.key ?? "") < ($1.key == nil ? 1 : 0, $1.key ?? "") }
        for pass in 0..<2 {
            for (type, files) in ordered where !Task.isCancelled {
                let added = anchors.addFiles(files, for: type.map { [$0] }, at: time)
                if pass == 1 { warnings += added.warnings }
            }
        }
        var ofServers: [(address: String, list: MdocStatusList)] = []
        for address in lists?.addresses ?? [] where !Task.isCancelled {
            do throws(Malformed) {
                switch try lists?.list(of: address)?.content {
                case .documents(let list): ofServers.append((address, list))
                case .certificates(let list):
                    try anchors.add(list, from: PublishedList.shown(address))
                case nil: continue
                }
            } catch {
                refusals[address] = error
            }
        }
        // The signer of a list may have been revoked since it was taken.
        func fault(of list: MdocStatusList) -> Malformed? {
            do throws(Malformed) {
                _ = try list.judge(by: anchors, at: time)
                return nil
            } catch {
                return error
            }
        }
        for (name, list) in statusLists where !Task.isCancelled {
            // The authority of an imported list may be one that only documents name.
            guard let fault = fault(of: list), list.check(by: anchors, at: time)?.isOfUnknownAuthority != true
            else { continue }
            ignoreStatusList(name, fault)
        }
        for (address, list) in ofServers where !Task.isCancelled { refusals[address] = fault(of: list) }
        var authorities = MdocAuthorities(anchors: anchors)
        for list in statusLists.map(\.list) + ofServers.map(\.list) { authorities.add(list) }
        var summary = MdocAnchorSummary()
        summary.authorities = anchors.count
        summary.countries = anchors.countries.sorted()
        summary.links = anchors.linkCount
        summary.revocationLists = anchors.revocationListCount
        summary.statusLists = statusLists.count + ofServers.count
        summary.refusals = refusals
        for list in anchors.unusableLists { unusableLists.append(.init(place: list.place, fault: list.fault)) }
        // What is told about the lists of servers is in the check of these lists.
        let addresses = Set(refusals.keys.map(PublishedList.shown))
        summary.unusableLists = unusableLists.filter { !addresses.contains($0.place) }.sorted { $0.place < $1.place }
        summary.unread = stamps.files.unread
        summary.docTypes = groups.keys.compactMap(\.self).sorted()
        summary.newest = stamps.files.stamps.filter(\.isThere).map(\.seconds).max()
        summary.warnings =
            warnings.sorted().map { "\(path)/\($0)" }
            + refusals.sorted { $0.key < $1.key }.map { "\(PublishedList.shown($0.key)): \($0.value.text)" }
        return (authorities, State(reading: FileReading(stamps, at: time), summary: summary))
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private func stamps() -> Stamps {
        var files = AnchorFiles(path)
        let names = files.names()
        let types = names.filter { Self.isDocType($0) && Self.isFolder("\(path)/\($0)") }
        files.add(names.filter { !types.contains($0) })
        for type in types { files.add(files.names(in: type).map { "\(type)/\($0)" }) }
        return Stamps(files: files, lists: lists?.addresses.compactMap { lists?.stamp(of: $0) } ?? [])
    }
}
