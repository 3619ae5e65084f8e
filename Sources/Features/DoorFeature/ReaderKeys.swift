// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Store
import Text

/// The identity resolving keys of readers, in the store. docs/protocol/door-readers.md.
@Loop final class ReaderKeys {
    private let store: StateStore
    private(set) var keys: [IdentityKey] = []
    private var loading: Task<Result<Void, Failure>, Never>?

    private nonisolated static let space = StoreSpace("reader keys")
    /// Each new address of a reader is compared with all of them.
    nonisolated static let most = 32

    nonisolated static let recordKind = RecordKind(space, "keys of readers", remedy: "REMOVE_READER_KEY deletes one") {
        $0.count == IdentityKey.count
    }

    nonisolated init(_ store: StateStore) { self.store = store }

    /// Reads the keys from the store, once.
    func load() async throws(Failure) {
        let loading = self.loading ?? Task { @Loop in await reading() }
        self.loading = loading
        let result = await loading.value
        // After a failure the next call tries again.
        if case .failure = result { self.loading = nil }
        try result.get()
    }

    private func reading() async -> Result<Void, Failure> {
        do throws(Failure) {
            try await read()
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private func read() async throws(Failure) {
        guard let store = try await store.existing() else { return }
        // GET_HEALTH names those that cannot be read.
        keys = try await store.transaction { values throws(Failure) in
            try values.records(in: Self.space) { name, content in IdentityKey(name, content) }.good.map(\.record)
        }
    }

    /// Adds a key, once it is on the disk.
    func add(_ name: String, _ bytes: consuming Secret) async throws(Failure) {
        try await load()
        guard let key = IdentityKey(name, bytes) else { throw .readerKey("an identity resolving key has 16 bytes") }
        let (space, value) = (Self.space, SecretBox(bytes))
        let refusal: String? = try await store.required().transaction { values throws(Failure) in
            let names = try values.names(in: space)
            if names.contains(name) { return "there is a key with this name already" }
            if names.count >= Self.most { return "there are \(Self.most) keys already" }
            try values.set(name, in: space, to: value)
            return nil
        }
        if let refusal { throw .readerKey(refusal) }
        keys.append(key)
    }

    /// Removes a key, also one that cannot be read.
    func remove(_ name: String) async throws(Failure) {
        try await load()
        let space = Self.space
        let isKnown = try await store.existing()?.transaction { values throws(Failure) in
            guard try values.has(name, in: space) else { return false }
            try values.remove(name, in: space)
            return true
        }
        guard isKnown == true else { throw .readerKey("there is no key with this name") }
        keys.removeAll { $0.name == name }
    }
}

extension Failure {
    fileprivate static func readerKey(_ text: String) -> Failure { Failure(.init("ReaderKey"), text) }
}
