// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Store
package import Text

/// One-time codes.
extension Vault {
    /// A one-time code, and the counter or the step of the time that made it.
    package struct Code: Sendable, Equatable {
        package let text: String
        package let codes: OneTimeCodes
        package let counter: UInt64
    }

    /// Makes a code. The counter of HOTP is increased on the disk before the code is returned.
    package func code(_ id: String, of uid: UInt32) async throws(Failure) -> Code {
        let time = now()
        let (codes, counter, secret) = try await transaction {
            values throws(Failure) -> (OneTimeCodes, UInt64, SecretBox) in
            let record = try Self.key(values, uid, id, time)
            guard let codes = record.codes else { throw .unfit("the key makes no codes") }
            guard record.isUsable else { throw .unfit("the key is not active") }
            let name = Self.name(uid, id)
            guard let secret = try values.value(name, in: Self.secrets) else { throw .recordDamaged(name) }
            guard codes.kind == .hotp else { return (codes, codes.step(at: time), secret) }
            guard let counter = try Self.counter(values, name) else { throw .recordDamaged(name) }
            guard counter < Int.max else { throw .full("the counter has reached its maximum") }
            try values.set(name, in: Self.counters, to: Self.box(counter + 1))
            return (codes, counter, secret)
        }
        guard let key = secret.take() else { throw Failure(.internalError, "the secret was used before") }
        return try cryptography(Code(text: try codes.code(key, counter: counter), codes: codes, counter: counter))
    }

    /// Returns the counter of the next code, or the step of the time now. Changes nothing.
    package func counter(_ id: String, of uid: UInt32) async throws(Failure) -> UInt64 {
        let time = now()
        return try await transaction { values throws(Failure) in
            guard let codes = try Self.key(values, uid, id, time).codes else { throw .unfit("the key makes no codes") }
            guard codes.kind == .hotp else { return codes.step(at: time) }
            let name = Self.name(uid, id)
            guard let counter = try Self.counter(values, name) else { throw .recordDamaged(name) }
            return counter
        }
    }

    static func box(_ counter: UInt64) -> SecretBox {
        SecretBox(Secret(withUnsafeBytes(of: counter.bigEndian) { Array($0) }))
    }

    static func counter(_ values: borrowing StoreTransaction, _ name: String) throws(Failure) -> UInt64? {
        guard let bytes = try bytes(values, name, counters), bytes.count == 8 else { return nil }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
