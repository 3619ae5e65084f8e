// SPDX-License-Identifier: Apache-2.0
import Text

/// The state of the scan for door readers: SCAN.
public struct ScanStatus: ServerMessage, NamedMessage {
    static let names = ["SCAN"]
    static let errorIsRefusal = false

    /// Whether this connection scans.
    public var isWanted: Bool
    /// Whether the radio listens, as far as the system says.
    public var isListening: Bool
    /// The interface to the radio, such as `bluez`.
    public var backend: String?
    /// Why the radio does not work, with advice; or why START_SCAN was refused.
    public var error: String?
    /// How long the radio has not worked; nil when it works, and for a refusal.
    public var errorAge: Duration?

    /// A fault of the radio has an age, a refused START_SCAN has none.
    public var refusal: ClientError? { errorAge == nil ? error.map(ClientError.refused) : nil }
}

extension ScanStatus {
    init(_ json: JSON) throws(Malformed) {
        isWanted = try json.required("wanted", as: \.bool)
        isListening = try json.required("radio", as: \.bool)
        backend = json["backend"]?.string
        error = json["error"]?.string
        errorAge = json["errorAgo"]?.int.map { .milliseconds($0) }
    }
}

/// What a scan looks for: the parameters of START_SCAN. nil: the default of badged.
public struct ScanOptions: Sendable, Equatable {
    /// How much of the time the radio listens.
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
    /// Whether each advertisement becomes an event, and with which addresses. Needs the permission admin.
    public var advertisements: Addresses?

    public init(
        mode: Mode? = nil,
        openingTypes: [String]? = nil,
        lockServiceCodes: [Int]? = nil,
        profiles: [String]? = nil,
        updates: Duration? = nil,
        advertisements: Addresses? = nil
    ) {
        self.mode = mode
        self.openingTypes = openingTypes
        self.lockServiceCodes = lockServiceCodes
        self.profiles = profiles
        self.updates = updates
        self.advertisements = advertisements
    }

    var members: [JSON.Member] {
        func strings(_ list: [String]) -> JSON { .array(list.map(JSON.string)) }
        func number(_ value: Int) -> JSON { .number(String(value)) }
        let all: [(String, JSON?)] = [
            ("mode", mode.map { .string($0.rawValue) }),
            ("openingTypes", openingTypes.map(strings)),
            ("lockServiceCodes", lockServiceCodes.map { .array($0.map(number)) }),
            ("profiles", profiles.map(strings)),
            ("updates", updates.map { number(Int($0 / .milliseconds(1))) }),
            ("adverts", advertisements.map { .string($0.rawValue) }),
        ]
        return all.compactMap { key, value in value.map { JSON.Member(key, $0) } }
    }
}

/// One received advertisement: ADVERT.
public struct Advertisement: ServerMessage, NamedMessage {
    static let names = ["ADVERT"]

    /// Name of the adapter that received it.
    public var adapter: String
    /// Six bytes in hexadecimal, with colons.
    public var address: String
    /// `public`, `static`, `resolvable` or `nonresolvable`.
    public var addressType: String
    public var data: [UInt8]
    /// dBm.
    public var rssi: Int?
    public var isScanResponse = false
    /// How many advertisements before this one were not sent, because this program was slow to read.
    public var lost = 0
}

extension Advertisement {
    init(_ json: JSON) throws(Malformed) {
        adapter = json["adapter"]?.string ?? ""
        address = try json.required("address", as: \.string)
        addressType = try json.required("addressType", as: \.string)
        data = try json.required("data") { $0.string.flatMap { Hex.decode($0) } }
        rssi = json["rssi"]?.int
        isScanResponse = json["scanResponse"]?.bool ?? false
        lost = json["lost"]?.int ?? 0
    }
}
