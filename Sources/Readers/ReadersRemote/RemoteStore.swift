// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import Host
package import Store
package import Text

/// The own key and the pairings. Only a user can remove a pairing.
package actor RemoteStore {
    /// Which half of the protocol the other device has.
    package enum Partner: Sendable {
        /// Lends readers to this host.
        case lender
        /// Borrows readers of this host.
        case borrower

        fileprivate var space: StoreSpace {
            switch self {
            case .lender: StoreSpace("remote lenders")
            case .borrower: StoreSpace("remote borrowers")
            }
        }
    }

    private let store: StateStore
    /// What changes a pairing runs in it, with what is kept in memory.
    package nonisolated let changes = InOrder()
    private var made: Task<Result<RemoteIdentity, Failure>, Never>?
    private static let own = StoreSpace("remote")

    package init(_ store: StateStore) { self.store = store }

    /// Returns the own key and certificate, which are made at the first call. Damaged ones are replaced when there is
    /// no pairing: the other devices know this host by them.
    package func identity() async throws(Failure) -> RemoteIdentity {
        let task =
            made
            ?? Task { () -> Result<RemoteIdentity, Failure> in
                do throws(Failure) {
                    return .success(try await loadIdentity())
                } catch {
                    // The next call tries again.
                    made = nil
                    return .failure(error)
                }
            }
        made = task
        return try await task.value.get()
    }

    private func loadIdentity() async throws(Failure) -> RemoteIdentity {
        let store = try await store.required()
        do throws(Failure) {
            let known = try await store.transaction { values throws(Failure) in try Self.identity(values) }
            if let known { return known }
        } catch {
            guard error.code == .storeDamaged else { throw error }
            let isNeeded = try await store.transaction { values throws(Failure) in try Self.hasPairings(values) }
            guard !isNeeded else { throw error }
            Log.notice("the own key for remote readers is damaged, and no pairing needs it: a new one is made")
        }
        let new = try await RemoteIdentity.generate()
        let encodedKey = SecretBox(try cryptography(new.encodedKey()))
        try await save(encodedKey, SecretBox(Secret(new.encodedCertificate)), store)
        return new
    }

    /// Reads the own key and certificate; nil if they were never made.
    private static func identity(_ values: borrowing StoreTransaction) throws(Failure) -> RemoteIdentity? {
        let hasKey = try values.has("key", in: own)
        let hasCertificate = try values.has("certificate", in: own)
        guard hasKey || hasCertificate else { return nil }
        do throws(Failure) {
            if let key = try values.value("key", in: own)?.take(),
                let certificate = try values.value("certificate", in: own)?.take()
            {
                let known = try? RemoteIdentity(key: key, certificate: certificate.withBytes { Array($0) })
                if let known { return known }
            }
        } catch {
            guard error.code == .storeDamaged else { throw error }
        }
        throw Failure(
            .storeDamaged,
            "the own key for remote readers is damaged, or a later version of badged wrote it",
            advice: "restore the store from a backup, or delete all pairings with REMOVE_REMOTE and pair again: "
                + "badged then makes a new key"
        )
    }

    private static func hasPairings(_ values: borrowing StoreTransaction) throws(Failure) -> Bool {
        for partner in [Partner.lender, .borrower] {
            // REMOVE_REMOTE cannot name one whose name is damaged.
            let names = try values.names(in: partner.space)
            if names.contains(where: { Hex.decode($0, limit: 32)?.count == 32 }) { return true }
        }
        return false
    }

    private func save(_ key: SecretBox, _ certificate: SecretBox, _ store: Store) async throws(Failure) {
        try await store.transaction { values throws(Failure) in
            try values.set("key", in: Self.own, to: key)
            try values.set("certificate", in: Self.own, to: certificate)
        }
    }

    /// Returns the paired devices with this half of the protocol.
    package func devices(_ partner: Partner) async throws(Failure) -> [RemoteDevice] {
        let store = try await store.required()
        // A pairing that cannot be read is not trusted, and does not hide the others; GET_HEALTH names it.
        return try await store.transaction { values throws(Failure) in
            try values.records(in: partner.space) { name, content in Self.device(name, content) }.good.map(\.record)
        }
    }

    private static func device(_ fingerprint: String, _ content: borrowing Secret) -> RemoteDevice? {
        let name = content.withBytes { try? JSON(Array($0)) }?["name"]?.string
        return name.map { RemoteDevice(fingerprint: fingerprint, name: $0) }
    }

    /// The own key and the pairings, for GET_HEALTH.
    package static let recordKinds: [RecordKind] = {
        let pairings = [Partner.lender, .borrower].map { partner in
            RecordKind(
                partner.space,
                "pairings with devices",
                remedy: "REMOVE_REMOTE with the fingerprint deletes one"
            ) { device("", $0) != nil }
        }
        let remedy: Phrase = "REMOVE_REMOTE for all pairings; badged then makes a new one"
        return pairings + [RecordKind(own, "own key for remote readers", remedy: remedy)]
    }()

    /// Keeps a pairing, in place of an earlier one with the same fingerprint.
    package func add(_ device: RemoteDevice, _ partner: Partner) async throws(Failure) {
        let value = JSON.object([.init("name", .string(device.name))]).bytes
        try await store.required().set(device.fingerprint, in: partner.space, to: SecretBox(Secret(value)))
    }

    /// Removes all pairings with a device, also those that cannot be read; false if there is none.
    package func remove(_ fingerprint: String) async throws(Failure) -> Bool {
        try await store.required().transaction { values throws(Failure) in
            var isRemoved = false
            for partner in [Partner.lender, .borrower] where try values.has(fingerprint, in: partner.space) {
                try values.remove(fingerprint, in: partner.space)
                isRemoved = true
            }
            return isRemoved
        }
    }
}
