// SPDX-License-Identifier: Apache-2.0
import Text
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
    /// dBm: the steady strength by which that is decided, and the last value.
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
        if case .number(let text) = rssi["level"], let value = Double(text) { level = value }
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
    /// For how long it has been in the way; nil when that is not it.
    public var errorAge: Duration?

    public init(
        isWanted: Bool,
        isListening: Bool,
        backend: String? = nil,
        error: String? = nil,
        errorAge: Duration? = nil
    ) {
        (self.isWanted, self.isListening, self.backend) = (isWanted, isListening, backend)
        (self.error, self.errorAge) = (error, errorAge)
    }

    /// START_SCAN was refused: a fault of the radio has an age.
    var isRefusal: Bool { error != nil && errorAge == nil }

    init?(_ json: JSON) {
        guard let isWanted = json["wanted"]?.bool, let isListening = json["radio"]?.bool else { return nil }
        self.init(
            isWanted: isWanted,
            isListening: isListening,
            backend: json["backend"]?.string,
            error: json["error"]?.string,
            errorAge: json["errorAgo"]?.int.map { .milliseconds($0) }
        )
    }
}

/// The answer to GET_CLOSEST_DOOR_READER.
public enum ClosestDoorReader: Sendable, Equatable {
    case reader(DoorReader)
    /// `none`, `notSupported`, `outOfRange` or `coolingDown`.
    case nobody(reason: String)
}

/// What a scan is to find: the parameters of START_SCAN. nil: as badged has it by default.
public struct ScanOptions: Sendable, Equatable {
    /// How hard the radio listens.
    public enum Mode: String, Sendable, CaseIterable {
        case performance, powerSaving
    }

    /// The addresses in advertisements: made-up ones, or the real ones.
    public enum Addresses: String, Sendable, CaseIterable {
        case hashed, raw
    }

    public var mode: Mode?
    /// Readers that can be opened in one of these ways; default: any.
    public var openingTypes: [String]?
    /// Readers with one of these codes; empty: any; default: 2.
    public var lockServiceCodes: [Int]?
    public var profiles: [String]?
    /// The shortest time between two events of one reader.
    public var updates: Duration?
    /// Each advertisement is an event as well. Needs the permission admin.
    public var advertisements: Addresses?

    public init(
        mode: Mode? = nil,
        openingTypes: [String]? = nil,
        lockServiceCodes: [Int]? = nil,
        profiles: [String]? = nil,
        updates: Duration? = nil,
        advertisements: Addresses? = nil
    ) {
        (self.mode, self.openingTypes, self.lockServiceCodes) = (mode, openingTypes, lockServiceCodes)
        (self.profiles, self.updates, self.advertisements) = (profiles, updates, advertisements)
    }

    var members: [JSON.Member] {
        func strings(_ list: [String]) -> JSON { .array(list.map(JSON.string)) }
        func number(_ value: Int) -> JSON { .number(String(value)) }
        let all: [(String, JSON?)] = [
            ("adverts", advertisements.map { .string($0.rawValue) }),
            ("lockServiceCodes", lockServiceCodes.map { .array($0.map(number)) }),
            ("mode", mode.map { .string($0.rawValue) }),
            ("openingTypes", openingTypes.map(strings)),
            ("profiles", profiles.map(strings)),
            ("updates", updates.map { number(Int($0 / .milliseconds(1))) }),
        ]
        return all.compactMap { key, value in value.map { JSON.Member(key, $0) } }
    }
}

/// One advertisement as it was heard: ADVERT.
public struct Advertisement: Sendable, Equatable {
    /// Name of the adapter that has heard it.
    public var adapter: String
    /// Six bytes in hexadecimal, with colons.
    public var address: String
    /// `public`, `static`, `resolvable` or `nonresolvable`.
    public var addressType: String
    public var data: [UInt8]
    /// dBm.
    public var rssi: Int?
    public var isScanResponse: Bool

    public init(
        adapter: String,
        address: String,
        addressType: String,
        data: [UInt8],
        rssi: Int? = nil,
        isScanResponse: Bool = false
    ) {
        (self.adapter, self.address, self.addressType) = (adapter, address, addressType)
        (self.data, self.rssi, self.isScanResponse) = (data, rssi, isScanResponse)
    }

    init?(_ json: JSON) {
        guard let address = json["address"]?.string, let type = json["addressType"]?.string,
            let text = json["data"]?.string, let data = Self.bytes(text)
        else { return nil }
        self.init(
            adapter: json["adapter"]?.string ?? "",
            address: address,
            addressType: type,
            data: data,
            rssi: json["rssi"]?.int,
            isScanResponse: json["scanResponse"]?.bool ?? false
        )
    }

    private static func bytes(_ text: String) -> [UInt8]? {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue.map(UInt8.init) }
        guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
