// SPDX-License-Identifier: GPL-3.0-or-later
import Store
package import Text

/// Data objects of keys.
extension Vault {
    /// Returns an object of a key; nil if there is none.
    package func data(_ tag: DataTag, key id: String, of uid: UInt32) async throws(Failure) -> SecretBox? {
        let time = now()
        return try await transaction { values throws(Failure) in
            _ = try Self.key(values, uid, id, time)
            return try values.value("\(Self.name(uid, id))/\(tag.hex)", in: Self.data)
        }
    }

    /// Stores an object of a key. An empty `content` removes the object.
    package func setData(
        _ content: SecretBox,
        _ tag: DataTag,
        key id: String,
        of uid: UInt32
    ) async throws(Failure) {
        let time = now()
        try await transaction { values throws(Failure) -> Void in
            _ = try Self.key(values, uid, id, time)
            guard let bytes = content.take() else { throw Failure(.internalError, "the data were used before") }
            let own = "\(Self.name(uid, id))/\(tag.hex)"
            guard bytes.count > 0 else {
                try values.remove(own, in: Self.data)
                return
            }
            var count = bytes.count + tag.bytes.count
            for name in try values.names(in: Self.data, prefix: Self.name(uid, id) + "/") where name != own {
                count += try Self.count(values, name)
            }
            guard count <= Self.maximumData else {
                throw .full("the data of a key are limited to \(Self.maximumData / 1024) KiB: remove some")
            }
            try values.set(own, in: Self.data, to: SecretBox(bytes))
        }
    }

    /// Returns the number of bytes of all data of a user, with their tags.
    package func dataCount(of uid: UInt32) async throws(Failure) -> Int {
        try await transaction { values throws(Failure) in
            var count = 0
            for name in try values.names(in: Self.data, prefix: Self.prefix(uid)) {
                count += try Self.count(values, name)
            }
            return count
        }
    }

    private static func count(_ values: borrowing StoreTransaction, _ name: String) throws(Failure) -> Int {
        let tag = name.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.count
        do throws(Failure) {
            guard let object = try values.value(name, in: data)?.take() else { return 0 }
            return object.count + tag / 2
        } catch {
            // A damaged object does not block the others.
            guard error.code == .storeDamaged else { throw error }
            return 0
        }
    }
}

/// The BER tag of a data object: one or two bytes.
package struct DataTag: Sendable, Equatable {
    package let bytes: [UInt8]

    /// Takes a tag; nil for another form. ISO/IEC 7816-4, 5.2.2.1.
    package init?(_ bytes: [UInt8]) {
        switch bytes.count {
        case 1: guard bytes[0] != 0, bytes[0] & 0x1F != 0x1F else { return nil }
        case 2: guard bytes[0] & 0x1F == 0x1F, (0x1F...0x7F).contains(bytes[1]) else { return nil }
        default: return nil
        }
        self.bytes = bytes
    }

    package var hex: String { Hex.encode(bytes) }
}
