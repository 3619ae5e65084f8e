// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Store
import Text

/// The identity resolving keys of readers, in the store. docs/protocol/door-readers.md.
@Loop final class ReaderKeys {
    private let store: StateStore
    private(set) var keys: [IdentityKey] = []
    private var isLoaded = false
    private let changes = InOrder()

    private nonisolated static let space = StoreSpace("reader keys")
    /// Each new address of a reader is compared with all of them.
    nonisolated static let most = 32

    nonisolated static let recordKind = RecordKind(space, "keys of readers", remedy: "REMOVE_READER_KEY deletes one") {
        $0.count == IdentityKey.count
    }

    nonisolated init(_ store: StateStore) { self.store = store }

    /// Reads the keys from the store, once. After a failure the next call tries again.
    func load() async throws(Failure) {
        try await changes.run { () throws(Failure) in try await read() }
    }

    private func read() async throws(Failure) {
        guard !isLoaded else { return }
        if let store = try await store.existing() {
            // GET_HEALTH names those that cannot be read.
            keys = try await store.transaction { values throws(Failure) in
                try values.records(in: Self.space) { name, content in IdentityKey(name, content) }.good.map(\.record)
            }
        }
        isLoaded = true
    }

    /// Adds a key, once it is on the disk.
    func add(_ name: String, _ bytes: consuming Secret) async throws(Failure) {
        guard let key = IdentityKey(name, bytes) else { throw .readerKey("an identity resolving key has 16 bytes") }
        let (space, value) = (Self.space, SecretBox(bytes))
        try await changes.run { () throws(Failure) in
            try await read()
            let refusal: Phrase? = try await store.required().transaction { values throws(Failure) in
                let names = try values.names(in: space)
                if names.contains(name) { return "there is a key with this name already" }
                if names.count >= Self.most { return "there are \(Self.most) keys already" }
                try values.set(name, in: space, to: value)
                return nil
            }
            if let refusal { throw .readerKey(refusal) }
            keys.append(key)
        }
    }

    /// Removes a key, also one that cannot be read.
    func remove(_ name: String) async throws(Failure) {
        let space = Self.space
        try await changes.run { () throws(Failure) in
            try await read()
            let isKnown = try await store.existing()?.transaction { values throws(Failure) in
                guard try values.has(name, in: space) else { return false }
                try values.remove(name, in: space)
                return true
            }
            guard isKnown == true else { throw .readerKey("there is no key with this name") }
            keys.removeAll { $0.name == name }
        }
    }
}

extension Failure {
    fileprivate static func readerKey(_ text: Phrase) -> Failure { Failure(.init("ReaderKey"), text) }
}
