// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816

/// Why the card refuses a command: the status word that it answers.
struct Refusal: Error {
    let status: StatusWord

    init(_ status: UInt16) { self.status = StatusWord(status) }
}

/// Runs a cryptographic step that can fail only when libcrypto does, and then answers 6F00.
func crypto<T: ~Copyable>(_ body: () throws(CryptoError) -> T) throws(Refusal) -> T {
    do {
        return try body()
    } catch {
        throw Refusal(0x6F00)
    }
}

/// Data objects of a command, each tag once.
struct DataObjects {
    private var values: [UInt32: BERTLV] = [:]

    /// - Throws: 6A80 for anything else.
    init(_ bytes: [UInt8]) throws(Refusal) {
        let objects: [BERTLV]
        do {
            objects = try BERTLV.sequence(bytes)
        } catch {
            throw Refusal(0x6A80)
        }
        for object in objects {
            guard values.updateValue(object, forKey: object.tag) == nil else { throw Refusal(0x6A80) }
        }
    }

    subscript(_ tag: UInt32) -> BERTLV? { values[tag] }

    /// The value of an object that must be there.
    /// - Throws: 6A80 when it is not.
    func value(_ tag: UInt32) throws(Refusal) -> [UInt8] {
        guard let object = values[tag] else { throw Refusal(0x6A80) }
        return object.value
    }

    /// The value of an object of one byte that may be missing.
    func byte(_ tag: UInt32) throws(Refusal) -> UInt8? {
        guard let value = values[tag]?.value else { return nil }
        guard value.count == 1 else { throw Refusal(0x6A80) }
        return value[0]
    }

    /// - Throws: 6A80 when there is an object with another tag.
    func allow(only tags: Set<UInt32>) throws(Refusal) {
        guard tags.isSuperset(of: values.keys) else { throw Refusal(0x6A80) }
    }
}
