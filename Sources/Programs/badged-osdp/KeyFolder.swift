// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import OSDP
import Text

/// What panels have set: keys, addresses and baud rates, in the folder of the service.
struct KeyFolder: Sendable {
    let path: String

    /// Why nothing can be stored here; nil: it can. systemd makes the standard folder, and starts the service as the
    /// user to whom it belongs.
    func fault(_ environment: Environment = systemEnvironment) -> StartError? {
        let isService = environment("STATE_DIRECTORY") != nil
        let isThere = access(path, F_OK) == 0
        if !isThere, path == OSDPConfiguration.standardFolder, !isService { return nil }
        // Who looks may be another user than that of the service.
        return ConfiguredPath.reason(againstFolder: path, for: isService || !isThere ? .write : .read).map {
            .inConfiguration(
                "folder \(path): \($0): a key that a panel sets cannot be stored",
                hint: "make the folder, for user badged-osdp, or remove folder below [server]"
            )
        }
    }

    private func file(_ name: String, _ kind: String) -> String { "\(path)/\(name).\(kind)" }

    /// Whether a panel has set a key, which only the user of the service can read.
    func hasKey(of name: String) -> Bool { access(file(name, "key"), F_OK) == 0 }

    /// The key that a panel has set; nil: none.
    /// - Throws: `StartError` if there is a file that cannot be used.
    func key(of name: String) throws(StartError) -> OSDPKey? {
        guard hasKey(of: name) else { return nil }
        let path = file(name, "key")
        let content = try SecretFile.read(path, limit: 33, setting: "the key that a panel has set")
        guard let key = OSDPKey(file: content), !key.isWeak else {
            throw .inConfiguration("\(path) is no key", hint: "remove the file, and let the panel set a key again")
        }
        return key
    }

    /// Stores a key before its panel hears that it was accepted.
    func store(_ key: OSDPKey, of name: String) -> Bool {
        key.withBytes { replace(file(name, "key"), UnsafeRawBufferPointer($0)) }
    }

    /// Address and baud rate that a panel has set.
    func communication(of name: String) -> (address: UInt8, baud: Int)? {
        guard case .bytes(let bytes) = PlainFile.read(file(name, "line"), limit: 32) else { return nil }
        let words = bytes.split(whereSeparator: { $0 == 0x20 || $0 == 0x0A }).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard words.count == 2, let address = UInt8(words[0]), address < OSDPFrame.broadcast, let baud = Int(words[1]),
            OSDPPeripheral.baudRates.contains(baud)
        else { return nil }
        return (address, baud)
    }

    func store(address: UInt8, baud: Int, of name: String) -> Bool {
        Array("\(address) \(baud)\n".utf8).withUnsafeBytes { replace(file(name, "line"), $0) }
    }

    /// Removes what a panel has set.
    func forget(_ name: String) {
        for kind in ["key", "line"] { unlink(file(name, kind)) }
    }

    /// After a power cut there is the old file or the new one.
    private func replace(_ path: String, _ content: UnsafeRawBufferPointer) -> Bool {
        let draft = path + ".new"
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        let isWritten = write(descriptor, content.baseAddress, content.count) == content.count && fsync(descriptor) == 0
        close(descriptor)
        guard isWritten, rename(draft, path) == 0 else {
            unlink(draft)
            return false
        }
        let folder = open(self.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder >= 0 {
            fsync(folder)
            close(folder)
        }
        return true
    }
}
