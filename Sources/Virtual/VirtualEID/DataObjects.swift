// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import ReadersVirtual

/// The data objects of a command. Each tag occurs once.
struct DataObjects {
    private var values: [UInt32: BERTLV] = [:]

    /// Parses the data field of a command.
    /// - Throws: 6A80 for malformed data, and for a repeated tag.
    init(_ bytes: [UInt8]) throws(Refusal) {
        guard let objects = try? BERTLV.sequence(bytes) else { throw Refusal(0x6A80) }
        for object in objects {
            guard values.updateValue(object, forKey: object.tag) == nil else { throw Refusal(0x6A80) }
        }
    }

    subscript(_ tag: UInt32) -> BERTLV? { values[tag] }

    /// The value of a required object.
    /// - Throws: 6A80 when there is no such object.
    func value(_ tag: UInt32) throws(Refusal) -> [UInt8] {
        guard let object = values[tag] else { throw Refusal(0x6A80) }
        return object.value
    }

    /// The value of an optional object of one byte.
    /// - Throws: 6A80 for another length.
    func byte(_ tag: UInt32) throws(Refusal) -> UInt8? {
        guard let value = values[tag]?.value else { return nil }
        guard value.count == 1 else { throw Refusal(0x6A80) }
        return value[0]
    }

    /// Refuses objects with other tags than these.
    /// - Throws: 6A80 when there is such an object.
    func allow(only tags: Set<UInt32>) throws(Refusal) {
        guard tags.isSuperset(of: values.keys) else { throw Refusal(0x6A80) }
    }
}
