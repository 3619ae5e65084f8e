// SPDX-License-Identifier: Apache-2.0
import Text

/// A door reader as messages tell it. docs/protocol.md, Door readers. Strengths are dBm, times milliseconds.
package struct DoorReaderState: Sendable, Equatable {
    package struct Limit: Sendable, Equatable {
        package var type: String
        package var value: Int
        /// `config`, `advert` or `default`.
        package var source: String

        package init(type: String, value: Int, source: String) {
            (self.type, self.value, self.source) = (type, value, source)
        }
    }

    package struct Strength: Sendable, Equatable {
        package var age: Int64
        package var average: Double
        /// nil: not told.
        package var history: [Int8]?
        package var last: Int8
        /// What `inRange` is decided by.
        package var level: Double
        package var list: [Int8]
        package var mean: Double?
        package var median: Double?

        package init(age: Int64, average: Double, last: Int8, level: Double, list: [Int8]) {
            (self.age, self.average, self.last, self.level, self.list) = (age, average, last, level, list)
        }
    }

    package struct Distance: Sendable, Equatable {
        package var metres, low, high: Double

        package init(metres: Double, low: Double, high: Double) {
            (self.metres, self.low, self.high) = (metres, low, high)
        }
    }

    package var id: String
    package var profile: String
    package var address: String
    package var addressType: String
    package var name: String?
    package var lockServiceCode: Int?
    package var openingTypes: [String] = []
    package var limits: [Limit] = []
    package var strength: Strength
    package var distance: Distance?
    /// Those of `openingTypes` for which it is near enough.
    package var inRange: Set<String> = []
    package var isActive = true
    package var coolsDown = false
    package var isUnavailable = false
    /// Since 1970.
    package var firstSeen: Int64 = 0
    package var lastSeen: Int64 = 0
    package var adverts = 0
    package var interval: Int64?
    package var txPower: Int8?
    package var adapter = ""

    package init(id: String, profile: String, address: String, addressType: String, strength: Strength) {
        (self.id, self.profile, self.address) = (id, profile, address)
        (self.addressType, self.strength) = (addressType, strength)
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("active", isActive)
        writer.member("adapter", adapter)
        writer.member("address", address)
        writer.member("addressType", addressType)
        writer.member("adverts", adverts)
        writer.member("coolingDown", coolsDown)
        writer.key("estimate")
        if let distance { distance.write(to: &writer) } else { writer.null() }
        writer.member("firstSeen", Int(firstSeen))
        writer.member("id", id)
        writer.key("inRange")
        writer.beginObject()
        for type in openingTypes.sorted() {
            writer.key(type)
            writer.bool(inRange.contains(type))
        }
        writer.endObject()
        writer.member("intervalMs", interval.map(Int.init))
        writer.member("lastSeen", Int(lastSeen))
        writer.key("limits")
        writer.beginObject()
        for limit in limits.sorted(by: { $0.type < $1.type }) {
            writer.key(limit.type)
            writer.beginObject()
            writer.member("dBm", limit.value)
            writer.member("source", limit.source)
            writer.endObject()
        }
        writer.endObject()
        writer.member("lockServiceCode", lockServiceCode)
        writer.key("name")
        if let name { writer.string(name) } else { writer.null() }
        writer.key("openingTypes")
        writer.beginArray()
        for type in openingTypes { writer.string(type) }
        writer.endArray()
        writer.member("profile", profile)
        writer.key("rssi")
        strength.write(to: &writer)
        // Nobody has proven anything by advertising.
        writer.member("trust", "unauthenticated")
        writer.member("txPower", txPower.map(Int.init))
        writer.member("unavailable", isUnavailable)
        writer.endObject()
    }
}

extension DoorReaderState.Strength {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("ageMs", Int(age))
        writer.key("ema")
        writer.tenths(average)
        if let history {
            writer.key("history")
            writer.numbers(history)
        }
        writer.member("last", Int(last))
        writer.key("level")
        writer.tenths(level)
        writer.key("list")
        writer.numbers(list)
        writer.key("mean")
        if let mean { writer.tenths(mean) } else { writer.null() }
        writer.key("median")
        if let median { writer.tenths(median) } else { writer.null() }
        writer.endObject()
    }
}

extension DoorReaderState.Distance {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("high")
        writer.tenths(high)
        writer.key("low")
        writer.tenths(low)
        writer.key("metres")
        writer.tenths(metres)
        writer.endObject()
    }
}

extension JSONWriter {
    mutating func member(_ name: StaticString, _ value: Bool) {
        key(name)
        bool(value)
    }

    mutating func member(_ name: StaticString, _ value: Int?) {
        key(name)
        if let value { int(value) } else { null() }
    }

    fileprivate mutating func numbers(_ values: [Int8]) {
        beginArray()
        for value in values { int(Int(value)) }
        endArray()
    }

    /// A number with one digit after the point; what is no number or far beyond all measurements is null.
    fileprivate mutating func tenths(_ value: Double) {
        guard abs(value) < 1e9 else { return null() }
        let tenths = Int((value * 10).rounded())
        let sign = tenths < 0 ? "-" : ""
        self.value(.number("\(sign)\(tenths.magnitude / 10).\(tenths.magnitude % 10)"))
    }
}
