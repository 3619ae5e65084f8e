// SPDX-License-Identifier: Apache-2.0
import Text

/// A door reader that has appeared or changed: DOOR_READER, an entry of DOOR_READER_LIST.
///
/// Nothing of it is proven, because any device can send any advertisement. docs/protocol/door-readers.md, A reader,
/// lists all members; `Event.json` has those that are not here.
public struct DoorReader: ServerMessage, NamedMessage {
    static let names = ["DOOR_READER"]

    /// Identifies the reader as long as badged can follow it.
    public var id: String
    /// Whether the reader has no identity that stays when its address changes. It may be a person's device.
    public var isPassing: Bool {
        let start = "\(profile)-passing-".utf8
        return id.utf8.starts(with: start) && id.utf8.dropFirst(start.count).allSatisfy { (0x30...0x39).contains($0) }
    }
    /// `seos`, `pkoc`, `aliro`, `ccc`, `ibeacon` or `eddystone`.
    public var profile: String
    public var name: String?
    /// The first one of `lockServiceCodes`.
    public var lockServiceCode: Int?
    /// All lock service codes that the reader has advertised.
    public var lockServiceCodes: [Int]
    /// What an iBeacon says of its place; nil for other readers.
    public var beacon: Beacon?
    public var openingTypes: [String]
    /// The `openingTypes` for which the reader is near enough.
    public var inRange: [String]
    /// The strength in dBm from which on the reader is near enough, for each of the `openingTypes`.
    public var limits: [String: Int]
    /// The smoothed signal strength in dBm, which decides `inRange`.
    public var level: Double
    /// The signal strength of the last advertisement in dBm.
    public var lastRSSI: Int
    /// Whether an advertisement of the reader arrived lately.
    public var isActive: Bool
    /// Whether the reader was opened just now, so that it is not opened again at once.
    public var isCoolingDown: Bool

    /// UUID, major and minor of an iBeacon.
    public struct Beacon: Sendable, Equatable, CustomStringConvertible {
        /// Lower-case digits in groups, such as `00009999-0000-1000-8000-00177a000002`.
        public var uuid: String
        public var major: Int
        public var minor: Int

        public init(uuid: String, major: Int, minor: Int) {
            self.uuid = uuid
            self.major = major
            self.minor = minor
        }

        init?(_ json: JSON) {
            guard let uuid = json["uuid"]?.string, let major = json["major"]?.int, let minor = json["minor"]?.int else {
                return nil
            }
            self.init(uuid: uuid, major: major, minor: minor)
        }

        public var description: String { "\(uuid) \(major) \(minor)" }
    }

    public init(
        id: String,
        profile: String,
        name: String? = nil,
        lockServiceCode: Int? = nil,
        lockServiceCodes: [Int]? = nil,
        beacon: Beacon? = nil,
        openingTypes: [String] = [],
        inRange: [String] = [],
        limits: [String: Int] = [:],
        level: Double,
        lastRSSI: Int,
        isActive: Bool = true,
        isCoolingDown: Bool = false
    ) {
        self.id = id
        self.profile = profile
        self.name = name
        self.lockServiceCode = lockServiceCode
        self.lockServiceCodes = lockServiceCodes ?? lockServiceCode.map { [$0] } ?? []
        self.beacon = beacon
        self.openingTypes = openingTypes
        self.inRange = inRange
        self.limits = limits
        self.level = level
        self.lastRSSI = lastRSSI
        self.isActive = isActive
        self.isCoolingDown = isCoolingDown
    }

    init(_ json: JSON) throws(Malformed) { self = try json.required("reader", as: DoorReader.init(entry:)) }

    /// A reader inside another message; nil when it lacks what every reader has.
    init?(entry json: JSON) {
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
            lockServiceCodes: json["lockServiceCodes"]?.array?.compactMap(\.int),
            beacon: json["beacon"].flatMap(Beacon.init),
            openingTypes: json["openingTypes"]?.strings ?? [],
            inRange: json["inRange"]?.members?.filter { $0.value.bool == true }.map(\.key).sorted() ?? [],
            limits: Dictionary(
                (json["limits"]?.members ?? []).compactMap { entry in entry.value["dBm"]?.int.map { (entry.key, $0) } }
            ) { $1 },
            level: level,
            lastRSSI: last,
            isActive: json["active"]?.bool ?? true,
            isCoolingDown: json["coolingDown"]?.bool ?? false
        )
    }
}

/// No advertisement of a door reader arrives any more: DOOR_READER_LOST.
public struct DoorReaderLost: ServerMessage, NamedMessage {
    static let names = ["DOOR_READER_LOST"]

    public var id: String

    public init(id: String) { self.id = id }

    init(_ json: JSON) throws(Malformed) { self.init(id: try json.required("id", as: \.string)) }
}

/// All door readers, the strongest first: DOOR_READER_LIST.
public struct DoorReaderList: ServerMessage, NamedMessage {
    static let names = ["DOOR_READER_LIST"]

    public var readers: [DoorReader]

    public init(readers: [DoorReader]) { self.readers = readers }

    init(_ json: JSON) throws(Malformed) {
        self.init(readers: try json.required("readers", as: \.array).compactMap(DoorReader.init(entry:)))
    }
}

/// The closest door reader for a way of opening: CLOSEST_DOOR_READER.
public enum ClosestDoorReader: ServerMessage, NamedMessage {
    static let names = ["CLOSEST_DOOR_READER"]

    case reader(DoorReader)
    /// There is none, because of `none`, `notSupported`, `outOfRange` or `coolingDown`.
    case nobody(reason: String)

    init(_ json: JSON) {
        if let reader = json["reader"].flatMap(DoorReader.init(entry:)) {
            self = .reader(reader)
        } else {
            self = .nobody(reason: json["reason"]?.string ?? "none")
        }
    }
}
