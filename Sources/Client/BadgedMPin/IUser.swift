// SPDX-License-Identifier: Apache-2.0
import Text

/// A user at a backend, as badged knew it at the time of a call.
public struct IUser: Sendable, Equatable {
    /// The state of a user. docs/protocol/mpin.md, Users.
    public enum UserState: String, Sendable, CaseIterable {
        case invalid = "INVALID"
        case startedRegistration = "STARTED_REGISTRATION"
        case activated = "ACTIVATED"
        case registered = "REGISTERED"
        case blocked = "BLOCKED"
    }

    public var identity: String
    public var state: UserState
    public var backend: Backend
    public var deviceName: String
    /// Hexadecimal; nil before the registration.
    public var mPinId: String?
    /// When the registration expires, as the server wrote it; nil if no registration is under way.
    public var registrationExpiration: String?
    /// The number of digits.
    public var pinLength: Int
    /// MPinMFA: the customer to whom the user belongs; empty for `MPin`.
    public var customerId = ""
    /// MPinMFA: whether the user can sign documents.
    public var canSign = false
    /// MPinMFA: whether the login needs a second factor; nil before the registration, and for the token of an earlier
    /// badged.
    public var hasSecondFactor: Bool?
    /// MPinMFA: the same for signing documents.
    public var signerHasSecondFactor: Bool?
    /// The Keycard under which the token is kept, in hexadecimal: logins need this card. nil: no card.
    public var keyUID: String?

    public init(
        identity: String,
        state: UserState,
        backend: Backend,
        deviceName: String = "",
        mPinId: String? = nil,
        registrationExpiration: String? = nil,
        pinLength: Int = 4
    ) {
        self.identity = identity
        self.state = state
        self.backend = backend
        self.deviceName = deviceName
        self.mPinId = mPinId
        self.registrationExpiration = registrationExpiration
        self.pinLength = pinLength
    }

    /// Reads `user` of MPIN_RESULT; nil if a member is missing.
    init?(_ json: JSON) {
        guard let identity = json["userId"]?.string, let state = json["state"]?.string.flatMap(UserState.init),
            let url = json["backend"]?.string, let prefix = json["rpsPrefix"]?.string,
            let length = json["pinLength"]?.int
        else { return nil }
        self.init(
            identity: identity,
            state: state,
            backend: Backend(url: url, rpsPrefix: prefix),
            deviceName: json["deviceName"]?.string ?? "",
            mPinId: json["mpinId"]?.string,
            registrationExpiration: json["registrationExpiration"]?.string,
            pinLength: length
        )
        customerId = json["customerId"]?.string ?? ""
        canSign = json["canSign"]?.bool ?? false
        hasSecondFactor = json["secondFactor"]?.bool
        signerHasSecondFactor = json["signerSecondFactor"]?.bool
        keyUID = json["keyUID"]?.string
    }
}

/// A login server with its relying party.
public struct Backend: Sendable, Hashable {
    public var url: String
    public var rpsPrefix: String

    public init(url: String, rpsPrefix: String = "rps") { (self.url, self.rpsPrefix) = (url, rpsPrefix) }

    init?(_ json: JSON) {
        guard let url = json["url"]?.string, let prefix = json["rpsPrefix"]?.string else { return nil }
        self.init(url: url, rpsPrefix: prefix)
    }
}

/// A one-time code.
public struct OTP: Sendable, Equatable {
    public var status: MpinStatus
    /// Six digits; empty if the login has failed.
    public var otp: String
    /// Seconds since 1970, as the clock of the server has them.
    public var expireTime: Int
    public var ttlSeconds: Int
    public var nowTime: Int

    public init(status: MpinStatus, otp: String = "", expireTime: Int = 0, ttlSeconds: Int = 0, nowTime: Int = 0) {
        self.status = status
        self.otp = otp
        self.expireTime = expireTime
        self.ttlSeconds = ttlSeconds
        self.nowTime = nowTime
    }

    /// Reads `otp` of MPIN_RESULT.
    init(_ status: MpinStatus, _ json: JSON?) {
        self.init(
            status: status,
            otp: json?["otp"]?.string ?? "",
            expireTime: json?["expireTime"]?.int ?? 0,
            ttlSeconds: json?["ttlSeconds"]?.int ?? 0,
            nowTime: json?["nowTime"]?.int ?? 0
        )
    }
}
