// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import OSDP
import Text

/// What panels have set: keys, addresses and baud rates, in the folder of the service.
struct KeyFolder: Sendable {
    let path: String
    /// Whose files these are; nil: the user of this program.
    var user: UInt32?

    /// The folder for a check by root: its files may belong to its owner, who is the user of the service.
    var forCheck: KeyFolder {
        var status = stat()
        guard geteuid() == 0, stat(path, &status) == 0 else { return self }
        return KeyFolder(path: path, user: status.st_uid)
    }

    /// Why nothing can be stored here; nil: it can. systemd makes the standard folder, and starts the service as the
    /// user to whom it belongs.
    func fault(_ environment: Environment = systemEnvironment) -> StartError? {
        let isService = environment("STATE_DIRECTORY") != nil
        let isThere = access(path, F_OK) == 0
        if !isThere, path == OSDPConfiguration.standardFolder, !isService { return nil }
        // Who looks may be another user than that of the service.
        return ConfiguredPath.reason(againstFolder: path, for: isService || !isThere ? .write : .read).map {
            .inConfiguration("folder \(path): \($0): a key that a panel sets cannot be stored", hint: Self.folderHint)
        }
    }

    private static let folderHint = "make the folder, for user badged-osdp, or remove folder below [server]"

    private func file(_ name: String, _ kind: String) -> String { "\(path)/\(name).\(kind)" }

    /// Whether there is a file that a panel has set. `hint` is the remedy if it cannot be used.
    /// - Throws: `StartError` if nobody can say so, or if there is something else than a file.
    private func isThere(_ file: String, _ hint: String) throws(StartError) -> Bool {
        var status = stat()
        guard lstat(file, &status) == 0 else {
            let code = errno
            // Where the folder is missing, what was set may be elsewhere.
            if code == ENOENT, stat(path, &status) == 0 { return false }
            throw .inConfiguration("cannot look for \(file): \(errorText(code))", hint: Self.folderHint)
        }
        let isLink = status.st_mode & S_IFMT == S_IFLNK
        guard stat(file, &status) == 0 else {
            let reason = isLink && errno == ENOENT ? "it is a link to a file that is not there" : errorText()
            throw .inConfiguration("cannot read \(file): \(reason)", hint: hint)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw .inConfiguration("cannot read \(file): it is not a plain file", hint: hint)
        }
        return true
    }

    /// The key that a panel has set, which only the user of the service can read; nil: the panel has set none.
    /// - Throws: `StartError` if there is a file that cannot be used, or if nobody can say that there is none.
    func key(of name: String) throws(StartError) -> OSDPKey? {
        let path = file(name, "key")
        let hint = "put the file back, or remove it: badged-osdp --forget \(name); then the panel must set a key again"
        guard try isThere(path, hint) else { return nil }
        let content = try SecretFile.read(path, limit: 33, setting: "the key that a panel has set", user: user)
        guard let key = OSDPKey(file: content), !key.isWeak, !key.isDefault else {
            throw .inConfiguration("\(path) is no key", hint: hint)
        }
        return key
    }

    /// Stores a key before its panel hears that it was accepted.
    func store(_ key: OSDPKey, of name: String) -> Bool {
        key.withBytes { replace(file(name, "key"), UnsafeRawBufferPointer($0)) }
    }

    /// Address and baud rate that a panel has set; nil: the panel has set none.
    /// - Throws: `StartError` if there is a file that cannot be used, or if nobody can say that there is none. Another
    ///   reader of the line may have the address of the configuration.
    func communication(of name: String) throws(StartError) -> (address: UInt8, baud: Int)? {
        let path = file(name, "line")
        let hint = "remove the file, and write address and baud rate of the panel into osdp.conf"
        guard try isThere(path, hint) else { return nil }
        switch PlainFile.read(path, limit: 32) {
        case .bytes(let bytes):
            if let found = Self.communication(bytes) { return found }
            throw .inConfiguration("\(path) is damaged: it has no address and baud rate", hint: hint)
        case .tooLong: throw .inConfiguration("\(path) is damaged: it is too long", hint: hint)
        case .missing: throw .inConfiguration("\(path) was removed meanwhile", hint: "try again")
        case .failed(let reason): throw .inConfiguration("cannot read \(path): \(reason)", hint: hint)
        }
    }

    private static func communication(_ bytes: [UInt8]) -> (address: UInt8, baud: Int)? {
        let words = String(decoding: bytes, as: UTF8.self).dropLast().split(separator: " ")
        guard words.count == 2, let address = UInt8(words[0]), address < OSDPFrame.broadcast, let baud = Int(words[1]),
            OSDPPeripheral.baudRates.contains(baud), bytes == content(address, baud)
        else { return nil }
        return (address, baud)
    }

    private static func content(_ address: UInt8, _ baud: Int) -> [UInt8] { Array("\(address) \(baud)\n".utf8) }

    func store(address: UInt8, baud: Int, of name: String) -> Bool {
        Self.content(address, baud).withUnsafeBytes { replace(file(name, "line"), $0) }
    }

    /// Removes what a panel has set.
    /// - Returns: the files that were removed, and why something stays; nil: nothing does.
    func forget(_ name: String) -> (removed: [String], fault: StartError?) {
        if let reason = ConfiguredPath.reason(againstFolder: path, for: .write) {
            let hint = "correct folder below [server], or run this as root or as user badged-osdp"
            return ([], StartError("nothing is removed from \(path): \(reason)", hint: hint))
        }
        var (removed, faults): ([String], [String]) = ([], [])
        // A power cut may leave a draft, which has a key, too.
        for kind in ["key", "line"].flatMap({ [$0, $0 + Self.draft] }) {
            let path = file(name, kind)
            if unlink(path) == 0 {
                removed.append(path)
            } else if errno != ENOENT {
                faults.append("\(path): \(errorText())")
            }
        }
        synchronize()
        guard faults.isEmpty else {
            let hint = "remove it as root or as user badged-osdp; until then the panel has what it has set"
            return (removed, StartError("cannot remove \(faults.joined(separator: "; "))", hint: hint))
        }
        guard !removed.isEmpty else {
            let hint = "nothing is to be removed, if folder below [server] is right"
            return ([], StartError("\(name) has set nothing in \(path)", hint: hint))
        }
        return (removed, nil)
    }

    private static let draft = ".new"

    /// After a power cut there is the old file or the new one.
    private func replace(_ path: String, _ content: UnsafeRawBufferPointer) -> Bool {
        let draft = path + Self.draft
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        let isWritten = write(descriptor, content.baseAddress, content.count) == content.count && fsync(descriptor) == 0
        close(descriptor)
        guard isWritten, rename(draft, path) == 0 else {
            unlink(draft)
            return false
        }
        synchronize()
        return true
    }

    /// Brings the names in the folder to the disk.
    private func synchronize() {
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }
}
