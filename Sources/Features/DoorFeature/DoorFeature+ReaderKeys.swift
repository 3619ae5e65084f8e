// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Host
import Scanners
import Server
import Text
import Vault

/// The commands for identity resolving keys of readers. docs/protocol/door-readers.md.
extension DoorFeature {
    var readerKeyCommands: [CommandSpec] {
        [
            CommandSpec("ADD_READER_KEY", ReaderKeysMessage.name, permission: .admin, addReaderKey),
            CommandSpec("REMOVE_READER_KEY", ReaderKeysMessage.name, permission: .admin, removeReaderKey),
            CommandSpec("GET_READER_KEYS", ReaderKeysMessage.name, permission: .admin, getReaderKeys),
        ]
    }

    private func addReaderKey(_ call: Call) async throws(Failure) -> Reply {
        let name = try call.arguments.readerKeyName()
        let box = try call.arguments.secret("value", "32 hexadecimal digits") { text -> SecretBox? in
            guard text.count == 2 * IdentityKey.count, let bytes = SecretText.hex(text) else { return nil }
            return SecretBox(bytes)
        }
        guard let bytes = box.take() else { throw .badState }
        try await storedReaderKeys().add(name, bytes)
        return readerKeysChanged()
    }

    private func removeReaderKey(_ call: Call) async throws(Failure) -> Reply {
        let name = try call.arguments.readerKeyName()
        try await storedReaderKeys().remove(name)
        return readerKeysChanged()
    }

    private func getReaderKeys(_ call: Call) async throws(Failure) -> Reply {
        try await storedReaderKeys().load()
        return readerKeysChanged()
    }

    private func storedReaderKeys() throws(Failure) -> ReaderKeys {
        guard let readerKeys else { throw Failure(.init("ReaderKey"), "badged has no store") }
        return readerKeys
    }

    private func readerKeysChanged() -> Reply {
        guard let readerKeys else { return .none }
        radio?.use(readerKeys.keys)
        let orders = radio?.tracker.keyOrders ?? [:]
        return Reply(ReaderKeysMessage(keys: readerKeys.keys.map { ($0.name, orders[$0.name]) }))
    }

    /// Reads the keys at the first scan. Readers that were received before have other names until their address changes.
    func loadReaderKeys() {
        guard let readerKeys, let radio else { return }
        Task { @Loop in
            do throws(Failure) {
                try await readerKeys.load()
                radio.use(readerKeys.keys)
            } catch {
                Log.warning("the keys of readers cannot be read: \(error.logText)")
            }
        }
    }
}

extension Arguments {
    /// It becomes a part of the `id` of the reader.
    fileprivate func readerKeyName() throws(Failure) -> String {
        try required("name", "1 to 64 letters, digits, '-', '_' or '.'") { value in
            guard let text = value.string, (1...64).contains(text.utf8.count) else { return nil }
            let isPlain = text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
            return isPlain ? text : nil
        }
    }
}

struct ReaderKeysMessage: Message {
    static let name: StaticString = "READER_KEYS"
    /// The names, and the order in which each key was written, once a reader has shown it.
    let keys: [(name: String, order: IdentityKey.Order?)]

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.array("keys", keys) { array, key in
            array.object {
                $0.member("name", key.name)
                $0.member("order", key.order?.rawValue)
            }
        }
    }
}
