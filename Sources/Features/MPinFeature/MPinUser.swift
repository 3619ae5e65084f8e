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
}

/// A user of M-Pin. The token is kept apart from this record.
struct MPinUser: Sendable, Equatable {
    let identity: String
    let deviceName: String
    let backend: Backend
    var state = UserState.invalid
    /// nil until the registration has begun.
    var id: MPinID?
    /// The one-time token of the registration; nil after it.
    var regOTT: String?
    /// When the registration expires, as the server wrote it.
    var expiration: String?

    /// The most bytes of an identity.
    static let maximumIdentity = 255
    static let maximumDeviceName = 128

    init(identity: String, deviceName: String, backend: Backend) {
        (self.identity, self.deviceName, self.backend) = (identity, deviceName, backend)
    }

    /// The name in the store: the user of the system, and a hash, since names in the store are not sealed.
    static func name(_ uid: UInt32, _ identity: String, _ backend: Backend) throws(CryptoError) -> String {
        let text = Array("\(backend.key)\n\(identity)".utf8)
        return Self.prefix(uid) + Hex.encode(try DigestAlgorithm.sha256.hash(text))
    }

    /// What the names of all users of one user of the system begin with.
    static func prefix(_ uid: UInt32) -> String { "\(uid)/" }

    mutating func take(_ registration: Registration) {
        (id, regOTT, expiration) = (registration.id, registration.regOTT, registration.expiration)
        state = registration.isActive ? .activated : .startedRegistration
    }

    /// The registration that has begun.
    var registration: Registration? {
        guard let id, let regOTT else { return nil }
        return Registration(id: id, regOTT: regOTT, isActive: state == .activated, expiration: expiration)
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
        self.state = state
        id = json["mpinId"]?.string.flatMap { MPinID($0) }
        regOTT = json["regOTT"]?.string
        expiration = json["expiration"]?.string
    }

    var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.object { object in
            object.member("version", 1)
            object.member("identity", identity)
            object.member("deviceName", deviceName)
            object.member("backend", backend.text)
            object.member("prefix", backend.prefix)
            object.member("state", state.rawValue)
            object.member("mpinId", id?.text)
            object.member("regOTT", regOTT)
            object.member("expiration", expiration)
        }
        return writer.bytes
    }
}
