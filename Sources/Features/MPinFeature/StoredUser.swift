// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import MPin
import Text

/// The state of a user at a backend. The names are those of the SDK.
enum UserState: String, Sendable {
    case invalid = "INVALID"
    case startedRegistration = "STARTED_REGISTRATION"
    case activated = "ACTIVATED"
    case registered = "REGISTERED"
    case blocked = "BLOCKED"

    /// What to do next with a user in this state.
    var advice: Phrase {
        switch self {
        case .invalid: "send MPIN_START_REGISTRATION"
        case .startedRegistration: "confirm the identity, then send MPIN_CONFIRM_REGISTRATION"
        case .activated: "send MPIN_CONFIRM_REGISTRATION, then MPIN_FINISH_REGISTRATION"
        case .registered: "send MPIN_START_AUTHENTICATION, or delete the user to register again"
        case .blocked: "the service has blocked the user after wrong PINs. Delete the user and register again"
        }
    }
}

/// Whether a token needs a second factor.
enum SecondFactor: Sendable {
    case none
    case set
    /// An earlier badged has made the token, so the user is asked and may leave the answer empty.
    case unknown
}

/// A user of M-Pin. The token is kept apart from this record.
struct StoredUser: Sendable, Equatable {
    let identity: String
    let deviceName: String
    let backend: Backend
    /// What MPinMFA needs; nil for a user of MPin.
    var account: Account?
    var state = UserState.invalid
    /// nil until the registration has begun.
    var id: MPinID?
    /// The one-time token of the registration; nil after it.
    var regOTT: String?
    /// When the registration expires, as the server wrote it.
    var expiration: String?
    /// The key UID of the card under which the tokens are sealed; nil: the store alone has them.
    var cardUID: [UInt8]?

    var flavour: Flavour { account == nil ? .mpin : .mfa }

    /// The maximum number of bytes of an identity.
    static let maximumIdentity = 255
    static let maximumDeviceName = 128

    /// A user of MPinMFA.
    struct Account: Sendable, Equatable {
        let customer: String
        /// The identity for logins; nil before the registration.
        var login: KeyedIdentity?
        /// The identity for signing documents; nil before the registration for it.
        var signer: KeyedIdentity?
        /// Whether a second factor was set when the token was made; nil for the token of an earlier badged.
        var loginHasSecond: Bool?
        var signerHasSecond: Bool?

        init(customer: String) { self.customer = customer }
    }

    /// The maximum number of bytes of the identifier of a customer.
    static let maximumCustomer = 255

    init(identity: String, deviceName: String, backend: Backend, customer: String? = nil) {
        self.identity = identity
        self.deviceName = deviceName
        self.backend = backend
        account = customer.map { Account(customer: $0) }
    }

    /// The name in the store: the user of the system, and a hash, since names in the store are not sealed.
    static func name(
        _ uid: UInt32,
        _ identity: String,
        _ backend: Backend,
        customer: String?
    ) throws(CryptoError) -> String {
        let text = Array(("\(backend.key)\n\(identity)" + (customer.map { "\nMFA\n\($0)" } ?? "")).utf8)
        return Self.prefix(uid) + Hex.encode(try DigestAlgorithm.sha256.hash(text))
    }

    /// What the names of all users of one user of the system begin with.
    static func prefix(_ uid: UInt32) -> String { "\(uid)/" }

    mutating func apply(_ registration: MPinRegistration) {
        id = registration.id
        regOTT = registration.regOTT
        expiration = registration.expiration
        state = registration.isActive ? .activated : .startedRegistration
    }

    /// The registration that has begun.
    var registration: MPinRegistration? {
        guard let id, let regOTT else { return nil }
        return MPinRegistration(id: id, regOTT: regOTT, isActive: state == .activated, expiration: expiration)
    }

    // MARK: In the store

    /// Reads a record; nil if a later version has written it or if it is damaged.
    init?(_ bytes: [UInt8]) {
        guard let json = try? JSON(bytes), json["version"]?.int == 1, let identity = json["identity"]?.string,
            let deviceName = json["deviceName"]?.string, let url = json["backend"]?.string,
            let prefix = json["prefix"]?.string, let backend = Backend(url, prefix: prefix),
            let state = json["state"]?.string.flatMap(UserState.init)
        else { return nil }
        self.init(identity: identity, deviceName: deviceName, backend: backend)
        if let account = json["account"] {
            guard let account = Account(account) else { return nil }
            self.account = account
        }
        self.state = state
        id = json["mpinId"]?.string.flatMap { MPinID($0) }
        regOTT = json["regOTT"]?.string
        expiration = json["expiration"]?.string
        if let text = json["card"]?.string {
            guard let uid = Hex.decode(text), uid.count == 32 else { return nil }
            cardUID = uid
        }
    }

    var bytes: [UInt8] {
        JSONWriter.bytes { object in
            object.member("version", 1)
            object.member("identity", identity)
            object.member("deviceName", deviceName)
            object.member("backend", backend.text)
            object.member("prefix", backend.prefix)
            object.member("state", state.rawValue)
            object.member("mpinId", id?.text)
            object.member("regOTT", regOTT)
            object.member("expiration", expiration)
            if let cardUID { object.member("card", Hex.encode(cardUID)) }
            if let account { object.object("account") { account.write(to: &$0) } }
        }
    }
}

/// The record of a user in the store, for the fuzz target.
package enum MPinUserRecord {
    /// Reads a record, writes it and reads it again.
    /// - Returns: nil for bytes that are no record; false if the second user differs from the first.
    package static func isStable(_ bytes: [UInt8]) -> Bool? {
        guard let user = StoredUser(bytes) else { return nil }
        return StoredUser(user.bytes) == user
    }
}

extension StoredUser.Account {
    /// Reads an object of the store; nil if it is damaged.
    fileprivate init?(_ json: JSON) {
        guard let customer = json["customer"]?.string else { return nil }
        self.init(customer: customer)
        if let login = json["login"] {
            guard let login = KeyedIdentity(login) else { return nil }
            self.login = login
        }
        if let signer = json["signer"] {
            guard let signer = KeyedIdentity(signer) else { return nil }
            self.signer = signer
        }
        loginHasSecond = json["secondFactor"]?.bool
        signerHasSecond = json["signerSecondFactor"]?.bool
    }

    fileprivate func write(to object: inout JSONWriter) {
        object.member("customer", customer)
        if let login { object.object("login") { login.write(to: &$0) } }
        if let signer { object.object("signer") { signer.write(to: &$0) } }
        if let loginHasSecond { object.member("secondFactor", loginHasSecond) }
        if let signerHasSecond { object.member("signerSecondFactor", signerHasSecond) }
    }
}
