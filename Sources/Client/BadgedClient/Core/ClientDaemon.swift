// SPDX-License-Identifier: Apache-2.0
@_exported public import Text

/// The program that serves this connection: INFO.
public struct DaemonInfo: ServerMessage, NamedMessage {
    static let names = ["INFO"]

    /// `badged`, or the name of another server that speaks the protocol.
    public var name: String
    public var version: String
    /// Version of badged's additions to the SDK's protocol; nil for another server.
    public var protocolVersion: Int?
    /// The card reader drivers that run, such as `pcsc` and `virtual`.
    public var drivers: [String] = []
    /// The door reader scanners that run.
    public var scanners: [String] = []
    /// The permissions of this user, in the words of `[access]` in badged.conf; nil: this badged does not say.
    public var permissions: [String]?
}

extension DaemonInfo {
    init(_ json: JSON) throws(Malformed) {
        guard let version = json["VersionInfo"], let name = version["Name"]?.string else {
            throw Malformed("VersionInfo")
        }
        let badged = json["badged"]
        self.name = name
        self.version = version["Implementation-Version"]?.string ?? ""
        protocolVersion = badged?["protocol"]?.int
        drivers = badged?["drivers"]?.strings ?? []
        scanners = badged?["scanners"]?.strings ?? []
        permissions = badged?["permissions"]?.strings
    }
}

/// The API level of this connection: API_LEVEL.
public struct APILevels: ServerMessage, NamedMessage {
    static let names = ["API_LEVEL"]

    public var current: Int
    /// The levels that badged offers; empty when the answer does not list them.
    public var available: [Int]

    public init(current: Int, available: [Int] = []) { (self.current, self.available) = (current, available) }

    init(_ json: JSON) throws(Malformed) {
        let available = json["available"]?.array ?? []
        self.init(current: try json.required("current", as: \.int), available: available.compactMap(\.int))
    }
}

/// What badged needs to do its work: HEALTH.
public struct HealthReport: ServerMessage, NamedMessage {
    static let names = ["HEALTH"]

    public var checks: [HealthCheck]

    public init(checks: [HealthCheck]) { self.checks = checks }

    init(_ json: JSON) throws(Malformed) {
        self.init(checks: try json.required("checks", as: \.array).compactMap(HealthCheck.init))
    }
}

/// One check of HEALTH.
public struct HealthCheck: Sendable, Equatable {
    public var name: String
    public var isOK: Bool
    /// Whether badged could not make the check, because another one has failed. Then `isOK` is false.
    public var isUnknown = false
    /// Whether the check fails because this host lacks a part that it can do without, such as Bluetooth.
    public var isOptional = false
    /// What is wrong.
    public var cause: String?
    /// What to do when the check fails.
    public var advice: String?
    /// How long the check has failed. badged knows this only while it watches; it watches the radio during a scan.
    public var errorAge: Duration?
    /// With `bluetoothAdapter`: `missing` or `off`.
    public var state: String?
    /// What the check `trustAnchors` has found; nil for any other check.
    public var trustAnchors: TrustAnchorReport?
    /// With `trustAnchors` and `documentAnchors`: where the certificates are.
    public var folder: String?
    /// The package that this host lacks. badged must be restarted when it is there.
    public var missingPackage: String?
}

extension HealthCheck {
    init?(_ json: JSON) {
        guard let name = json["name"]?.string, let isOK = json["ok"]?.bool else { return nil }
        self.name = name
        self.isOK = isOK
        isUnknown = json["unknown"]?.bool ?? false
        isOptional = json["optional"]?.bool ?? false
        cause = json["cause"]?.string
        advice = json["advice"]?.string
        errorAge = json["errorAgo"]?.int.map { .milliseconds($0) }
        state = json["state"]?.string
        trustAnchors = name == TrustAnchorReport.checkName ? TrustAnchorReport(json) : nil
        folder = json["folder"]?.string
        missingPackage = json["missingPackage"]?.string
    }
}

/// The country authorities that badged trusts: the check `trustAnchors`.
public struct TrustAnchorReport: Sendable, Equatable {
    public static let checkName = "trustAnchors"

    /// The name of the authority whose certificate is valid longest; nil: badged trusts none, and every authentication
    /// fails.
    public var newest: String?
    /// The last day of that certificate, as `yyyy-MM-dd`.
    public var lastDay: String?
    /// The number of link certificates that badged has learnt from services.
    public var linksLearnt = 0

    init(_ json: JSON) {
        newest = json["newest"]?.string
        lastDay = json["lastDay"]?.string
        linksLearnt = json["linksLearnt"]?.int ?? 0
    }
}
