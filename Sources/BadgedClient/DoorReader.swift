// SPDX-License-Identifier: Apache-2.0
import Wire

/// A door reader that is heard. Nothing of it is proven: anybody can advertise anything. docs/protocol.md, A reader;
/// `Event.json` has the members that are not here.
public struct DoorReader: Sendable, Equatable {
    /// By which it is known again.
    public var id: String
    /// `seos`, `pkoc`, `aliro`, `ccc`, `ibeacon` or `eddystone`.
    public var profile: String
    public var name: String?
    public var lockServiceCode: Int?
    public var openingTypes: [String]
    /// Those of `openingTypes` for which it is near enough.
    public var inRange: [String]
    /// dBm: the smoothed strength by which that is decided, and the last value.
    public var level: Double
    public var lastRSSI: Int
    public var isActive: Bool

    public init(
        id: String,
        profile: String,
        name: String? = nil,
        lockServiceCode: Int? = nil,
        openingTypes: [String] = [],
        inRange: [String] = [],
        level: Double,
        lastRSSI: Int,
        isActive: Bool = true
    ) {
        (self.id, self.profile, self.name, self.lockServiceCode) = (id, profile, name, lockServiceCode)
        (self.openingTypes, self.inRange, self.level) = (openingTypes, inRange, level)
        (self.lastRSSI, self.isActive) = (lastRSSI, isActive)
    }

    init?(_ json: JSON) {
        guard let id = json["id"]?.string, let profile = json["profile"]?.string, let rssi = json["rssi"],
            let last = rssi["last"]?.int
        else { return nil }
        var level = Double(last)
        if case .number(let text) = rssi["ema"], let value = Double(text) { level = value }
        self.init(
            id: id,
            profile: profile,
            name: json["name"]?.string,
            lockServiceCode: json["lockServiceCode"]?.int,
            openingTypes: json["openingTypes"]?.array?.compactMap(\.string) ?? [],
            inRange: json["inRange"]?.members?.filter { $0.value.bool == true }.map(\.key) ?? [],
            level: level,
            lastRSSI: last,
            isActive: json["active"]?.bool ?? true
        )
    }
}

/// The scan for door readers: SCAN.
public struct ScanStatus: Sendable, Equatable {
    /// This connection scans.
    public var isWanted: Bool
    /// The radio listens, as far as the system says.
    public var isListening: Bool
    /// The way to the radio, such as `bluez`.
    public var backend: String?
    /// What is in the way, with advice; or why START_SCAN was refused.
    public var error: String?

    public init(isWanted: Bool, isListening: Bool, backend: String? = nil, error: String? = nil) {
        (self.isWanted, self.isListening, self.backend, self.error) = (isWanted, isListening, backend, error)
    }

    init?(_ json: JSON) {
        guard let isWanted = json["wanted"]?.bool, let isListening = json["radio"]?.bool else { return nil }
        self.init(
            isWanted: isWanted,
            isListening: isListening,
            backend: json["backend"]?.string,
            error: json["error"]?.string
        )
    }
}
