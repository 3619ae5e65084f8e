// SPDX-License-Identifier: Apache-2.0
import Text

/// What a page says about its login service. Members that are missing are empty.
public struct ServiceDetails: Sendable, Equatable {
    public var name: String
    public var backendUrl: String
    public var rpsPrefix: String
    public var logoUrl: String

    init(_ json: JSON) {
        name = json["name"]?.string ?? ""
        backendUrl = json["backendUrl"]?.string ?? ""
        rpsPrefix = json["rpsPrefix"]?.string ?? ""
        logoUrl = json["logoUrl"]?.string ?? ""
    }
}

/// What a service says about the session of a browser. Members that it did not send are empty.
public struct SessionDetails: Sendable, Equatable {
    public var prerollId: String
    public var appName: String
    public var appIconUrl: String
    public var customerId: String
    public var customerName: String
    public var customerIconUrl: String

    init(_ json: JSON) {
        prerollId = json["prerollId"]?.string ?? ""
        appName = json["appName"]?.string ?? ""
        appIconUrl = json["appIconUrl"]?.string ?? ""
        customerId = json["customerId"]?.string ?? ""
        customerName = json["customerName"]?.string ?? ""
        customerIconUrl = json["customerIconUrl"]?.string ?? ""
    }
}

/// A code with which the same user registers on another device.
public struct RegCode: Sendable, Equatable {
    public var status: MpinStatus
    /// Empty if the login has failed.
    public var otp: String
    /// Seconds since 1970, as the clock of the server has them.
    public var expireTime: Int
    public var ttlSeconds: Int
    public var nowTime: Int

    init(_ code: OTP) {
        status = code.status
        otp = code.otp
        expireTime = code.expireTime
        ttlSeconds = code.ttlSeconds
        nowTime = code.nowTime
    }
}

/// A signature of a document, for the back end of the app. All members are bytes.
public struct BridgeSignature: Sendable, Equatable {
    /// 32 bytes.
    public var strHash: [UInt8]
    public var strMpinId: [UInt8]
    /// Points, 65 bytes each.
    public var strU: [UInt8]
    public var strV: [UInt8]
    /// 128 bytes.
    public var strPublicKey: [UInt8]
    /// The trust authorities, which the verifier of the service also needs.
    public var dtas: String
    /// Seconds since 1970.
    public var epochTime: UInt32

    /// Reads `signature` of MPIN_RESULT; nil if a member is missing.
    init?(_ json: JSON) {
        func bytes(_ name: String) -> [UInt8]? { json[name]?.string.flatMap { Hex.decode($0) } }
        guard let hash = bytes("hash"), let id = bytes("mpinId"), let u = bytes("u"), let v = bytes("v"),
            let publicKey = bytes("publicKey"), let dtas = json["dtas"]?.string,
            let time = json["epochTime"]?.int.flatMap({ UInt32(exactly: $0) })
        else { return nil }
        strHash = hash
        strMpinId = id
        strU = u
        strV = v
        strPublicKey = publicKey
        self.dtas = dtas
        epochTime = time
    }
}
