// SPDX-License-Identifier: Apache-2.0
public import Foundation
import Text

/// The store of the keys of this user.
public final class OrigoKeysEndpointInfo: NSObject, Sendable {
    /// A number made of the first eight bytes of the identifier; 0 without an endpoint.
    public let seosId: UInt
    /// Always `local`: the store is on this computer.
    public let environmentType = OrigoEnvironmentType.local
    public let isSetup: Bool
    /// The bytes for the data of all keys.
    public let allocatedFileSystemSize: Int
    /// The bytes of data that are there.
    public let currentTopOfFileSystem: Int
    /// When the keys were compared with the issuer; nil: never.
    public let lastServerSyncDate: Date?
    /// Always empty: there is no applet.
    public let seosAppletVersion = ""
    /// Always empty: there is no applet.
    public let fileSystemAppletVersion = ""
    /// Always empty: there is no applet.
    public let toolsAppletVersion = ""

    /// The identifier of the endpoint: the thumbprint of its key; empty without an endpoint.
    let id: String

    /// Reads the answer to GET_ENDPOINT; without one there is no endpoint.
    init(_ json: JSON = .null) {
        id = json["id"]?.string ?? ""
        isSetup = json["setUp"]?.bool ?? false
        seosId = (Base64.url.decode(id) ?? []).prefix(8).reduce(0) { $0 << 8 | UInt($1) }
        let size = (json["maximumKeys"]?.int ?? 0).multipliedReportingOverflow(by: json["bytesPerKey"]?.int ?? 0)
        allocatedFileSystemSize = size.overflow ? 0 : size.partialValue
        currentTopOfFileSystem = json["bytesUsed"]?.int ?? 0
        lastServerSyncDate = Date(daemon: json["lastSync"]?.string)
    }

    public func getEnvironmentName() -> String { "local" }
}

/// What `updateEndpoint` has changed.
public final class OrigoKeysEndpointUpdateSummary: NSObject, Sendable {
    /// When the update began.
    public let updateDate: Date
    /// Seconds.
    public let updateDuration: Double
    public let keyIssuedCount: UInt
    public let keyRevokedCount: UInt
    public let keyUpdatedCount: UInt

    init(_ json: JSON, begun: Date) {
        func count(_ name: String) -> UInt { UInt(clamping: json[name]?.int ?? 0) }
        updateDate = begun
        updateDuration = Double(json["durationMs"]?.int ?? 0) / 1000
        (keyIssuedCount, keyRevokedCount, keyUpdatedCount) = (count("issued"), count("revoked"), count("updated"))
    }
}

/// The last use of a key at a reader.
public final class OrigoKeysLastAuthenticationInfo: NSObject, Sendable {
    /// nil: the key was deleted.
    public let lastAuthenticatedOrigoKey: OrigoKeysKey?
    /// How often keys of this user were used.
    public let authenticationCounter: UInt
    /// Whether the reader has written data. Readers of PKOC never do.
    public let isModified: Bool

    init(_ json: JSON, _ key: OrigoKeysKey?) {
        lastAuthenticatedOrigoKey = key
        authenticationCounter = UInt(clamping: json["counter"]?.int ?? 0)
        isModified = json["modified"]?.bool ?? false
    }
}

/// Where keys come from.
public enum OrigoEnvironmentType: Int, Sendable, CaseIterable {
    case prod = 0
    case demo = 1
    case test = 2
    case dev = 3
    /// The endpoint of badged.
    case local = 4
    case staging = 5
    case acceptance = 6
    case unknown = 15
}

/// Where a key can be kept.
public enum OrigoKeysTarget: String, Sendable, CaseIterable {
    /// The store of badged.
    case OrigoSDK
    case OrigoAppleWallet
    case OrigoAppleWalletPreview
}
