// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Document
import Glibc
package import Host
import MobileDocument
package import Text

/// A list of what an authority has revoked, as a server hands it out: a status list or an identifier list, or a
/// revocation list.
package struct PublishedList: Sendable {
    enum Content: Sendable {
        case documents(MdocStatusList)
        case certificates(RevocationList)
    }

    /// The longest list in bytes.
    package static let maximumLength = max(MdocStatusList.maximumBytes, RevocationList.maximumLength)
    /// How long a list that does not say it is used before it is fetched again, in seconds: a day.
    private static let usualLife = 86_400
    /// The shortest time between two requests for one list, in seconds.
    private static let minimumLife = 300
    /// How long before its end a list is fetched again, at most, in seconds.
    private static let maximumLead = 3600

    let content: Content
    package let bytes: [UInt8]
    /// When it was fetched, in seconds since 1970.
    private let fetched: Int
    /// The times that are possible. A file can have any other, which says nothing.
    private static let times = 0...Int(UInt32.max)

    /// Reads what came from an address. Who has signed it is not looked at.
    /// - Throws: `Malformed` if it is no list, or a list about another address.
    package init(_ bytes: [UInt8], from address: String, fetched: Int) throws(Malformed) {
        let fetched = Self.times.contains(fetched) ? fetched : 0
        self.bytes = bytes
        self.fetched = fetched
        guard MdocStatusList.looksLike(bytes) else {
            guard case .revocationList(let list) = try DocumentAnchorFile(bytes) else {
                throw Malformed("it is no status list and no revocation list")
            }
            content = .certificates(list)
            return
        }
        let list: MdocStatusList
        do throws(MdocProblem) {
            list = try MdocStatusList(bytes, fetched: fetched)
        } catch {
            throw Malformed(error.text)
        }
        guard list.uri.utf8.elementsEqual(address.utf8) else { throw Malformed("the list is about another address") }
        content = .documents(list)
    }

    /// An address for clients and the log: a query may have a key.
    package static func shown(_ address: String) -> String {
        address.utf8.firstIndex(of: UInt8(ascii: "?")).map { "\(address[..<$0])?..." } ?? address
    }

    /// When it was made, in seconds since 1970.
    private var issued: Int {
        switch content {
        case .documents(let list): list.issued
        case .certificates(let list): list.thisUpdate
        }
    }

    /// The last second in which it counts, since 1970.
    package var until: Int {
        switch content {
        case .documents(let list): list.until
        case .certificates(let list): list.nextUpdate ?? 0
        }
    }

    package func isCurrent(at time: Int) -> Bool {
        switch content {
        case .documents(let list): list.isCurrent(at: time)
        case .certificates(let list): list.isCurrent(at: time)
        }
    }

    /// When it is fetched again, in seconds since 1970: after the time that it says (`ttl`) or a day, and before its end.
    package var due: Int {
        var life = Self.usualLife
        if case .documents(let list) = content { life = list.timeToLive ?? life }
        let end = max(fetched, min(until, fetched + 2 * life))
        let lead = min(Self.maximumLead, (end - fetched) / 4)
        return max(fetched + Self.minimumLife, min(fetched + life, end - lead))
    }

    /// Judges who has signed the list, and whether it can be used. `time` is in seconds since 1970.
    /// - Throws: `Malformed` with the reason if no authority has, or if it says nothing.
    package func judge(by anchors: DocumentAnchors, at time: Int) throws(Malformed) {
        switch content {
        case .documents(let list):
            try list.judge(by: anchors, at: time)
            guard list.isReadable else { throw Malformed("the values of the list cannot be unpacked") }
        case .certificates(let list):
            var anchors = anchors
            try anchors.add(list)
            guard !anchors.isUnusable(list) else { throw Malformed("badged cannot use a list of this kind") }
        }
    }

    /// Judges a list, which an authority has signed, as the one that takes the place of this one. While this one counts, the
    /// next is of the same kind and authority, says as much, and is newer by its time and its number; of two of the same
    /// second or number, the one that revokes more counts. `time` is in seconds since 1970.
    /// - Throws: `Malformed` with the reason.
    package func judge(next list: PublishedList, by anchors: DocumentAnchors, at time: Int) throws(Malformed) {
        guard isCurrent(at: time), (try? judge(by: anchors, at: time)) != nil else { return }
        let other = Malformed("its server has a list of another kind or of another authority")
        let follows: Bool
        switch (content, list.content) {
        case (.documents(let own), .documents(let next)):
            let authority = try own.judge(by: anchors, at: time)
            guard own.object == next.object, let name = authority?.subject,
                try next.judge(by: anchors, at: time)?.subject == name
            else { throw other }
            follows = list.issued > issued || next.revokesAll(of: own)
        case (.certificates(let own), .certificates(let next)):
            guard own.issuer == next.issuer, own.scope != .complete || next.scope == .complete else { throw other }
            follows = next.follows(own)
        case (.documents, .certificates), (.certificates, .documents): throw other
        }
        guard list.issued >= issued else { throw Malformed("its server has an older list") }
        guard list.bytes == bytes || follows else {
            throw Malformed("its server has a list with a smaller number, or one of the same second that revokes less")
        }
    }
}

/// The folder of the lists that badged has fetched, with a file for each address. Nothing in it is trusted by itself,
/// and a certificate in it is none of an authority.
package struct PublishedListFolder: Sendable {
    /// nil: there is no place to keep files.
    package let path: String?
    /// What is fetched. Files of other addresses do not count.
    package let addresses: [String]

    /// `path` is created at the first list; its parent must exist.
    package init(_ path: String?, addresses: [String]) {
        self.path = path
        self.addresses = addresses
    }

    private static let suffix = ".list"

    /// The name of the file: a hash, since an address may be longer than a file name.
    private func name(of address: String) -> String? {
        (try? DigestAlgorithm.sha256.hash(Array(address.utf8))).map { Hex.encode($0) + Self.suffix }
    }

    func stamp(of address: String) -> FileStamp? {
        guard let path, let name = name(of: address) else { return nil }
        let stamp = FileStamp("\(path)/\(name)")
        return stamp.isThere ? stamp : nil
    }

    /// What the file of an address holds.
    private enum Kept {
        case bytes([UInt8], fetched: Int)
        /// nil: no list was fetched.
        case useless(Malformed?)
        /// The file cannot be read now.
        case unknown(Malformed)
    }

    private func kept(of address: String) -> Kept {
        guard let path else { return .useless(nil) }
        guard let name = name(of: address) else { return .unknown(Malformed("libcrypto failed")) }
        let file = "\(path)/\(name)"
        let stamp = FileStamp(file)
        switch PlainFile.readTrusted(file, limit: PublishedList.maximumLength) {
        case .bytes(let bytes):
            // A list whose time is not known is fetched again at once.
            return .bytes(bytes, fetched: stamp.seconds)
        case .missing: return .useless(nil)
        case .tooLong: return .useless(Malformed("the file is too long"))
        case .failed(let reason):
            return PlainFile.mayPass() ? .unknown(Malformed(reason)) : .useless(Malformed(reason))
        }
    }

    /// The list of an address; nil if none was fetched.
    /// - Throws: `Malformed` if the file cannot be read.
    package func list(of address: String) throws(Malformed) -> PublishedList? {
        switch kept(of: address) {
        case .bytes(let bytes, let fetched): return try PublishedList(bytes, from: address, fetched: fetched)
        case .useless(let reason):
            if let reason { throw reason }
            return nil
        case .unknown(let reason): throw reason
        }
    }

    /// The list of an address that the next one has to follow; nil if there is none, or none that makes sense.
    /// - Throws: `Malformed` if the file cannot be read now: it may have a list that revokes more than the next one.
    package func lastList(of address: String) throws(Malformed) -> PublishedList? {
        switch kept(of: address) {
        case .bytes(let bytes, let fetched): return try? PublishedList(bytes, from: address, fetched: fetched)
        case .useless: return nil
        case .unknown(let reason): throw Malformed("the last list cannot be read: \(reason.text)")
        }
    }

    /// Keeps what came from an address. The file has the time `fetched`, in seconds since 1970.
    /// - Throws: `SystemError` if the disk takes no file; the old one is then still there.
    package func save(_ bytes: [UInt8], of address: String, fetched: Int) throws(SystemError) {
        guard let path, let name = name(of: address) else { throw SystemError("the lists of mobile documents", ENOENT) }
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError(path) }
        let draft = try CertificateFiles.writeTemporary(bytes, in: path, mode: 0o600)
        let time = timespec(tv_sec: fetched, tv_nsec: 0)
        let target = "\(path)/\(name)"
        guard utimensat(AT_FDCWD, draft, [time, time], 0) == 0, rename(draft, target) == 0 else {
            let error = SystemError(target)
            unlink(draft)
            throw error
        }
    }

    /// Deletes the lists of addresses that are no longer fetched, and files that were not finished.
    package func removeOthers() {
        guard let path else { return }
        var names: Set<String> = []
        for address in addresses {
            // Without its name its list would be deleted.
            guard let name = name(of: address) else { return }
            names.insert(name)
        }
        for name in Folder.names(in: path) ?? [] where !names.contains(name) { unlink("\(path)/\(name)") }
    }
}
