// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Host
import Store
import Taps
import Text

/// The bonds of the cards that were read before, with which they can use the fast phase.
///
/// The bonds are in the store, sealed. Without a store they are kept until badged ends.
@Loop final class AliroBonds {
    private let store: StateStore
    /// The newest is the last.
    private var bonds: [AliroBond] = []
    /// Reads the bonds. After a failure the next tap tries again.
    private var loading: Task<Bool, Never>?
    /// The last change of the store.
    private var writing: Task<Void, Never>?
    /// The start of the names of bonds. A bond is valid only for one key and one identifier of the readers. nil: it
    /// cannot be computed, so the store is left alone.
    private let prefix: String?

    private nonisolated static let space = StoreSpace("aliro bonds")
    /// A tap tries all of them, which takes milliseconds.
    static let maximum = 200

    /// The bonds with all cards, for GET_HEALTH.
    nonisolated static let recordKind = RecordKind(space, "bonds with cards", remedy: "a tap of the card replaces one")
    {
        AliroBond($0) != nil
    }

    nonisolated convenience init(_ store: StateStore, _ site: AliroSite) {
        self.init(store, prefix: Self.hash(site.publicKey.uncompressed + site.identifier).map { $0 + "-" })
    }

    nonisolated init(_ store: StateStore, prefix: String?) {
        self.store = store
        self.prefix = prefix
    }

    /// Returns the bonds, which are read from the store before the first tap.
    func known() async -> [AliroBond] {
        let loading = self.loading ?? Task { @Loop in await self.load() }
        self.loading = loading
        let isLoaded = await loading.value
        if !isLoaded, self.loading == loading { self.loading = nil }
        return bonds
    }

    /// Keeps a new bond in place of the old one of this card. Returns before it is on the disk.
    func keep(_ bond: AliroBond) {
        bonds.removeAll { $0.key == bond.key }
        bonds.append(bond)
        write(bond, keeps: true)
        if bonds.count > Self.maximum { write(bonds.removeFirst(), keeps: false) }
    }

    /// Returns when all changes are on the disk.
    func settled() async { await writing?.value }

    /// Writes or removes a bond. After a failure the change is lost when badged ends.
    private func write(_ bond: AliroBond, keeps: Bool) {
        guard let prefix, let hash = Self.hash(bond.key.uncompressed) else {
            return Log.warning("a bond with a card has no name for the store, and is lost when badged ends")
        }
        let (before, name) = (writing, prefix + hash)
        writing = Task { [store] in
            await before?.value
            do throws(Failure) {
                guard let store = try await store.opened() else { return }
                if keeps {
                    try await store.set(name, in: Self.space, to: SecretBox(bond.bytes))
                } else {
                    try await store.remove(name, in: Self.space)
                }
            } catch {
                Log.warning("a bond with a card cannot be stored, and is lost when badged ends: \(error.logText)")
            }
        }
    }

    /// Returns whether the bonds of the store are known.
    private func load() async -> Bool {
        guard let prefix else {
            Log.warning("the bonds with cards cannot be read: libcrypto failed")
            return true
        }
        do throws(Failure) {
            guard let store = try await store.existing() else { return true }
            let stored = try await store.transaction { entries throws(Failure) in
                // A bond of readers with another key or identifier is no longer valid.
                for name in try entries.names(in: Self.space) where !name.hasPrefix(prefix) {
                    try entries.remove(name, in: Self.space)
                }
                // GET_HEALTH names those that cannot be read.
                return try entries.records(in: Self.space) { _, content in AliroBond(content) }.good.map(\.record)
            }
            // Those since an attempt that failed are newer.
            bonds = stored.filter { old in !bonds.contains { $0.key == old.key } } + bonds
            return true
        } catch {
            Log.warning("the bonds with cards cannot be read: \(error.logText)")
            return false
        }
    }

    /// Names in the store are not encrypted, so they contain a hash instead of the key of a person.
    private nonisolated static func hash(_ bytes: [UInt8]) -> String? {
        (try? DigestAlgorithm.sha256.hash(bytes)).map { Hex.encode(Array($0.prefix(16))) }
    }
}
