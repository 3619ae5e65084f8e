// SPDX-License-Identifier: Apache-2.0
public import Foundation
import Text

/// A door reader as it was received last. Nothing of it is proven, because any device can send any advertisement.
public final class OrigoKeysReader: NSObject, Sendable {
    /// Identifies the reader as long as badged can follow it.
    public let uuid: String?
    public let name: String?
    /// The same as `name`.
    public var localName: String? { name }
    public let lastRSSIUpdate: Date
    /// Always `blePeripheral`: badged connects to readers.
    public let readerType = OrigoKeysReaderType.blePeripheral
    /// Always nil: badged keeps no raw advertisements of readers.
    public let optionalScanResponseData: Data? = nil
    /// Always nil: no reader that badged opens sends a serial number.
    public let readerPSN: String? = nil

    /// An addition of badged: the place of an iBeacon, of `beacons()`; nil for door readers.
    public let beaconUUID: String?
    public let beaconMajor: Int?
    public let beaconMinor: Int?

    let id: String
    /// The smoothed signal strength in dBm.
    let level: Double
    private let types: [OrigoKeysOpeningType]
    private let inRange: [OrigoKeysOpeningType]
    private let mean: Int?
    private let measurements: (recent: [OrigoKeysRssiMeasurement], history: [OrigoKeysRssiMeasurement])

    /// Reads a reader of a message; nil when it lacks what every reader has.
    init?(_ json: JSON) {
        guard let id = json["id"]?.string, let signal = json["rssi"], let last = signal["last"]?.int else { return nil }
        self.id = id
        uuid = id
        name = json["name"]?.string
        let beacon = json["profile"]?.string == "ibeacon" ? json["beacon"] : nil
        beaconUUID = beacon?["uuid"]?.string
        beaconMajor = beacon?["major"]?.int
        beaconMinor = beacon?["minor"]?.int
        lastRSSIUpdate = Date(timeIntervalSince1970: Double(json["lastSeen"]?.int ?? 0) / 1000)
        level = Self.number(signal["level"]) ?? Double(last)
        // Whatever a reader advertises, a program may choose it.
        let advertised = (json["openingTypes"]?.array ?? []).compactMap(\.string).map(OrigoKeysOpeningType.init(name:))
        types = advertised.filter { ![.unknown, .applicationSpecific].contains($0) } + [.applicationSpecific]
        let near = (json["inRange"]?.members ?? []).filter { $0.value.bool == true }
        inRange = near.map { OrigoKeysOpeningType(name: $0.key) }
        mean = Self.number(signal["mean"]).map { Int($0.rounded()) }
        func list(_ name: String) -> [OrigoKeysRssiMeasurement] {
            (signal[name]?.array ?? []).compactMap(\.int).map(OrigoKeysRssiMeasurement.init)
        }
        measurements = (list("list"), list("history"))
    }

    private static func number(_ json: JSON?) -> Double? {
        guard case .number(let text)? = json, let number = Double(text), abs(number) < 1000 else { return nil }
        return number
    }

    /// The raw values of `OrigoKeysOpeningType`.
    public var supportedOpeningTypes: [Any] { types.map(\.rawValue) }

    public func supports(_ openingType: OrigoKeysOpeningType) -> Bool { types.contains(openingType) }

    /// Whether the reader is near enough. For `applicationSpecific` -80 dBm are enough.
    public func isInRange(for openingType: OrigoKeysOpeningType) -> Bool {
        inRange.contains(openingType) || openingType == .applicationSpecific && level >= -80
    }

    /// The mean of the newest values in dBm; `Int(Int32.min)` with fewer than two values in three seconds.
    public func meanRssi() -> Int { mean ?? Int(Int32.min) }

    /// At most three values of the last three seconds, newest first.
    public func rssiList() -> [OrigoKeysRssiMeasurement] { measurements.recent }

    /// At most fifty values; empty for a reader of a callback.
    public func rssiHistory() -> [OrigoKeysRssiMeasurement] { measurements.history }

    public override var description: String { "\(id) \(name ?? "")" }

    public override func isEqual(_ object: Any?) -> Bool { (object as? OrigoKeysReader)?.id == id }
    public override var hash: Int { id.hashValue }
}

/// A signal strength.
public final class OrigoKeysRssiMeasurement: NSObject, Sendable {
    /// dBm.
    public let rssi: Int

    init(_ rssi: Int) { self.rssi = rssi }
}

/// The role of a reader.
public enum OrigoKeysReaderType: Int, Sendable, CaseIterable {
    /// It advertises, and waits for a connection.
    case blePeripheral = 0
    case bleCentral = 1
    case httpRest = 2
}

/// How much of the time the radio listens.
public enum OrigoKeysScanMode: Int, Sendable, CaseIterable {
    /// Nearly all of the time.
    case optimizePerformance = 0
    /// With pauses.
    case optimizePowerConsumption = 1
}
