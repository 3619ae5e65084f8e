// SPDX-License-Identifier: GPL-3.0-or-later
package import Secrets
import Store

/// Data objects of keys.
extension Vault {
    /// Returns an object of a key; nil if there is none.
    package func data(_ tag: DataTag, key id: String, of uid: UInt32) async throws(VaultError) -> SecretBox? {
        let time = now()
        return try await transaction { values throws(StoreError) in
            if case .failure(let error) = try Self.key(values, uid, id, time) { return .failure(error) }
            return .success(try values.value("\(Self.name(uid, id))/\(tag.hex)", in: Self.data))
        }
    }

    /// Stores an object of a key. An empty `content` removes the object.
    package func setData(
        _ content: SecretBox,
        _ tag: DataTag,
        key id: String,
        of uid: UInt32
    ) async throws(VaultError) {
        let time = now()
        try await transaction { values throws(StoreError) -> Result<Void, VaultError> in
            if case .failure(let error) = try Self.key(values, uid, id, time) { return .failure(error) }
            guard let bytes = content.take() else { return .failure(.library("the data were used before")) }
            let own = "\(Self.name(uid, id))/\(tag.hex)"
            guard bytes.count > 0 else {
                try values.remove(own, in: Self.data)
                return .success(())
            }
            var count = bytes.count + tag.bytes.count
            for name in try values.names(in: Self.data, prefix: Self.name(uid, id) + "/") where name != own {
                count += try Self.count(values, name)
            }
            guard count <= Self.maximumData else {
                return .failure(.full("the data of a key are limited to \(Self.maximumData / 1024) KiB: remove some"))
            }
            try values.set(own, in: Self.data, to: SecretBox(bytes))
            return .success(())
        }
    }

    /// Returns the number of bytes of all data of a user, with their tags.
    package func dataCount(of uid: UInt32) async throws(VaultError) -> Int {
        try await transaction { values throws(StoreError) in
            var count = 0
            for name in try values.names(in: Self.data, prefix: Self.prefix(uid)) {
                count += try Self.count(values, name)
            }
            return .success(count)
        }
    }

    private static func count(_ values: borrowing StoreTransaction, _ name: String) throws(StoreError) -> Int {
        let tag = name.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.count
        guard let object = try values.value(name, in: data)?.take() else { return 0 }
        return object.count + tag / 2
    }
}
