// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
package import Text

/// The state of a door reader at one moment, for messages. docs/protocol/door-readers.md.
///
/// Strengths are in dBm, times in milliseconds.
package struct DoorReaderState {
    private let reader: DoorReader
    private let now: Milliseconds
    /// Whether the state includes the history of the signal.
    private let withHistory: Bool
    /// The time of `now` since 1970.
    private let clock: Milliseconds

    /// - Parameters:
    ///   - reader: the door reader.
    ///   - now: the moment, on the clock of the tracker.
    ///   - withHistory: whether the state includes the history of the signal.
    ///   - clock: the same moment since 1970; nil: the clock of the system.
    package init(_ reader: DoorReader, at now: Milliseconds, withHistory: Bool, clock: Milliseconds? = nil) {
        self.reader = reader
        self.now = now
        self.withHistory = withHistory
        self.clock = clock ?? Self.systemClock
    }

    package func write(to object: inout JSONWriter) {
        let types = reader.openingTypes.types
        object.member("id", reader.id)
        object.member("profile", reader.profile.rawValue)
        object.member("name", reader.name)
        object.member("address", reader.address.description)
        object.member("addressType", reader.address.kind.rawValue)
        object.member("lockServiceCode", reader.lockServiceCode)
        object.member("lockServiceCodes", reader.lockServiceCodes)
        if let beacon = reader.beacon {
            object.object("beacon") { object in
                object.member("uuid", beacon.uuid)
                object.member("major", beacon.major)
                object.member("minor", beacon.minor)
            }
        }
        object.member("openingTypes", types.map(\.name))
        object.object("inRange") { inRange in
            for type in types {
                inRange.key(type.name)
                inRange.bool(reader.inRange.contains(type))
            }
        }
        object.object("limits") { limits in
            for type in types {
                let limit = reader.limit(type)
                limits.key(type.name)
                limits.object {
                    $0.member("dBm", limit.value)
                    $0.member("source", limit.source.rawValue)
                }
            }
        }
        object.member("active", reader.isActive(at: now))
        object.member("coolingDown", reader.coolsDown(at: now))
        object.member("unavailable", reader.isUnavailable)
        // An advertisement is not authenticated.
        object.member("trust", "unauthenticated")
        object.object("rssi") { writeSignal(to: &$0) }
        writeDistance(to: &object)
        object.member("txPower", reader.txPower)
        object.member("firstSeen", clock - now + reader.firstSeen)
        object.member("lastSeen", clock - now + reader.lastSeen)
        object.member("adverts", reader.adverts)
        object.member("intervalMs", reader.interval)
        object.member("adapter", "hci\(reader.adapter)")
    }

    private func writeSignal(to object: inout JSONWriter) {
        let signal = reader.signal
        object.member("last", signal.last)
        object.member("ageMs", now - signal.lastSeen)
        object.member("list", reader.list(at: now))
        object.member("mean", tenths: reader.mean(at: now))
        object.member("median", tenths: reader.median(at: now))
        object.member("ema", tenths: signal.average)
        object.member("level", tenths: signal.level)
        if withHistory { object.member("history", signal.history) }
    }

    private func writeDistance(to object: inout JSONWriter) {
        guard let distance = reader.distance else { return object.member("estimate", JSON.null) }
        object.object("estimate") {
            $0.member("metres", tenths: distance.metres)
            $0.member("low", tenths: distance.low)
            $0.member("high", tenths: distance.high)
        }
    }

    private static var systemClock: Milliseconds {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Milliseconds(time.tv_sec) * 1000 + Milliseconds(time.tv_nsec) / 1_000_000
    }
}
