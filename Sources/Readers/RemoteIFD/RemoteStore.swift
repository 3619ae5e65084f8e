// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Secrets
package import Store
import Text

/// A device with which this one is paired.
package struct RemoteDevice: Sendable, Equatable {
    /// SHA-256 of the certificate: 64 lower-case digits.
    package let fingerprint: String
    /// The name that the device has given itself.
    package var name: String

    package init(fingerprint: String, name: String) { (self.fingerprint, self.name) = (fingerprint, name) }
}

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
    private var made: Task<Result<RemoteIdentity, StoreError>, Never>?
    private static let own = StoreSpace("remote")
    package static let maximumDevices = 64

    package init(_ store: StateStore) { self.store = store }

    /// Returns the own key and certificate, which are made at the first call.
    package func identity() async throws(StoreError) -> RemoteIdentity {
        let task =
            made
            ?? Task {
                let result: Result<RemoteIdentity, StoreError>
                do throws(StoreError) {
                    result = .success(try await loadIdentity())
                } catch {
                    // The next call tries again.
                    made = nil
                    result = .failure(error)
                }
                return result
            }
        made = task
        return try await task.value.get()
    }

    private func loadIdentity() async throws(StoreError) -> RemoteIdentity {
        let store = try await store.required()
        let key = try await store.value("key", in: Self.own)?.take()
        let certificate = try await store.value("certificate", in: Self.own)?.take()
        do throws(CryptoError) {
            if let key, let certificate {
                return try RemoteIdentity(key: key, certificate: certificate.withBytes { Array($0) })
            }
        } catch {
            throw .damaged("key")
        }
        let new: RemoteIdentity
        let encodedKey: SecretBox
        do throws(CryptoError) {
            new = try await RemoteIdentity.generate()
            encodedKey = SecretBox(try new.encodedKey())
        } catch {
            throw .library("cannot make a key for remote readers: \(error)")
        }
        try await save(encodedKey, SecretBox(Secret(new.encodedCertificate)), store)
        return new
    }

    private func save(_ key: SecretBox, _ certificate: SecretBox, _ store: Store) async throws(StoreError) {
        try await store.transaction { values throws(StoreError) in
            try values.set("key", in: Self.own, to: key)
            try values.set("certificate", in: Self.own, to: certificate)
        }
    }

    /// Returns the paired devices with this half of the protocol.
    package func devices(_ partner: Partner) async throws(StoreError) -> [RemoteDevice] {
        let store = try await store.required()
        var devices: [RemoteDevice] = []
        for name in try await store.names(in: partner.space) {
            guard let value = try await store.value(name, in: partner.space)?.take() else { continue }
            let json = try? JSON(value.withBytes { Array($0) })
            devices.append(RemoteDevice(fingerprint: name, name: json?["name"]?.string ?? "?"))
        }
        return devices
    }

    /// Keeps a pairing, in place of an earlier one with the same fingerprint.
    package func add(_ device: RemoteDevice, _ partner: Partner) async throws(StoreError) {
        let value = JSON.object([.init("name", .string(device.name))]).bytes
        try await store.required().set(device.fingerprint, in: partner.space, to: SecretBox(Secret(value)))
    }

    package func remove(_ fingerprint: String, _ partner: Partner) async throws(StoreError) {
        try await store.required().remove(fingerprint, in: partner.space)
    }
}
