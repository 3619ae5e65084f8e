// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Reads the answers of servers; no other file does. An answer is an object of at most 64 KiB. Each text has a limit,
/// and each point and number has an exact length. All functions throw `.responseParseError` for members that are
/// missing or malformed, and `.cryptoError` for hexadecimal digits of another length.
package enum ServerReply {
    /// The length of a point in bytes.
    private static let pointCount = ClientKeys.encodedCount

    // MARK: Settings and sessions

    package static func settings(
        _ body: [UInt8],
        of backend: Backend,
        _ flavour: Flavour
    ) throws(Failure) -> ClientSettings {
        let settings = ClientSettings(backend, try ServerAnswer(body).json(), flavour)
        try settings.check()
        return settings
    }

    package static func service(_ body: [UInt8]) throws(Failure) -> ServiceDetails {
        let answer = try ServerAnswer(body)
        guard try answer.string("type", limit: 16) == "online" else {
            throw Failure(.responseParseError, "the page describes no login service")
        }
        return ServiceDetails(
            name: try answer.string("name", limit: 256),
            backendURL: try answer.string("url", limit: 1024),
            prefix: answer.text("rps_prefix", limit: 128),
            logoURL: answer.text("logo_url", limit: 1024)
        )
    }

    package static func session(_ body: [UInt8]) throws(Failure) -> SessionDetails {
        let answer = try ServerAnswer(body)
        return SessionDetails(
            prerollID: answer.text("prerollId", "PrerollId", limit: 1024),
            appName: answer.text("appName", "AppName", limit: 1024),
            appIconURL: answer.text("appLogoURL", "AppLogoUrl", limit: 1024),
            customerID: answer.text("customerId", limit: 1024),
            customerName: answer.text("customerName", limit: 1024),
            customerIconURL: answer.text("customerLogoURL", limit: 1024)
        )
    }

    /// Reads an answer whose members are not used. It may have no body.
    package static func acknowledgement(_ body: [UInt8]) throws(Failure) { _ = try answer(orEmpty: body) }

    /// Reads an answer that may have no body, which means an object without members.
    private static func answer(orEmpty body: [UInt8]) throws(Failure) -> ServerAnswer {
        try ServerAnswer(body.allSatisfy { $0 <= 0x20 } ? Array("{}".utf8) : body)
    }

    /// Reads the access code after the `#` of an address.
    package static func accessCode(_ body: [UInt8]) throws(Failure) -> String {
        let text = try ServerAnswer(body).string("qrURL", limit: 4096)
        guard let mark = text.utf8.lastIndex(of: UInt8(ascii: "#")) else {
            throw Failure(.responseParseError, "qrURL of the service has no access code")
        }
        let code = String(text[text.utf8.index(after: mark)...])
        guard (1...MPinConnection.maximumCode).contains(code.utf8.count) else {
            throw Failure(.responseParseError, "qrURL of the service has no access code")
        }
        return code
    }

    // MARK: Registration

    package static func registration(_ body: [UInt8], _ flavour: Flavour) throws(Failure) -> MPinRegistration {
        let answer = try ServerAnswer(body)
        let id = try id(answer)
        let regOTT = try answer.string("regOTT", limit: 256)
        guard Hex.decode(regOTT) != nil else {
            throw Failure(.responseParseError, "the token of the registration is not hexadecimal")
        }
        let expiration = answer.text("expireTime", limit: 64)
        let isPrintable = !expiration.isEmpty && expiration.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        // The service of MIRACL confirms an identity before it begins the registration, and does not send `active`.
        let isActive = flavour == .mfa && !answer.has("active") ? true : try answer.bool("active")
        return MPinRegistration(id: id, regOTT: regOTT, isActive: isActive, expiration: isPrintable ? expiration : nil)
    }

    private static func id(_ answer: borrowing ServerAnswer) throws(Failure) -> MPinID {
        guard let id = MPinID(try answer.string("mpinId", limit: 2 * MPinID.maximumCount)) else {
            throw Failure(.responseParseError, "the M-Pin id of the server is not hexadecimal")
        }
        return id
    }

    package static func firstShare(_ body: consuming Secret) throws(Failure) -> FirstShare {
        let answer = try ServerAnswer(body)
        let share = try answer.secret("clientSecretShare", count: pointCount)
        return FirstShare(share: SecretBox(share), parameters: try answer.string("params", limit: 8192))
    }

    package static func secondShare(_ body: consuming Secret) throws(Failure) -> SecretBox {
        SecretBox(try ServerAnswer(body).secret("clientSecret", count: pointCount))
    }

    /// Reads the first share of an identity with a public key. `id` is nil if the answer contains the identity.
    package static func keyedShare(
        _ body: consuming Secret,
        of id: MPinID?,
        _ keys: IdentityKeys
    ) throws(Failure) -> KeyedShare {
        let answer = try ServerAnswer(body)
        let known: MPinID
        if let id { known = id } else { known = try Self.id(answer) }
        guard try answer.string("curve", limit: 32) == "BN254CX" else {
            throw Failure(.cryptoError, "the service uses another curve than BN254CX")
        }
        let address = try answer.string("cs2url", limit: 8192)
        let dtas = try answer.string("dtas", limit: KeyedIdentity.maximumAuthorities)
        guard let identity = KeyedIdentity(id: known, publicKey: keys.publicKey, dtas: dtas) else {
            throw Failure(.responseParseError, "'dtas' of the server is too long")
        }
        let share = SecretBox(try answer.secret("dvsClientSecretShare", count: pointCount))
        return KeyedShare(identity: identity, share: share, keys: keys, address: address)
    }

    package static func secondKeyedShare(_ body: consuming Secret) throws(Failure) -> SecretBox {
        SecretBox(try ServerAnswer(body).secret("dvsClientSecret", count: pointCount))
    }

    // MARK: Time permits

    /// The first share of a time permit, and the parameters of the request for the second share.
    package struct Permit: ~Copyable {
        package let day: PermitDay
        package let share: Secret
        /// Hexadecimal.
        let storageID: String
        let signature: String
    }

    /// The days by which the clock of this computer may differ from that of the service.
    private static let maximumDistance = 31

    /// Reads the first share. `today` is the number of days since 1970.
    package static func permit(_ body: consuming Secret, today: Int) throws(Failure) -> Permit {
        let answer = try ServerAnswer(body)
        // A permit of another day would count as a wrong PIN.
        guard let number = UInt32(exactly: try answer.int("date")), abs(Int(number) - today) <= maximumDistance else {
            throw Failure(
                .responseParseError,
                "the time permit is of another day: compare the clock of this computer"
            )
        }
        let share = try answer.secret("timePermit", count: pointCount)
        let (storageID, signature) = (
            try answer.string("storageId", limit: 64), try answer.string("signature", limit: 256)
        )
        guard Hex.decode(storageID)?.count == 32, Hex.decode(signature) != nil else {
            throw Failure(.responseParseError, "storageId or signature of the time permit is not hexadecimal")
        }
        return Permit(day: PermitDay(number), share: share, storageID: storageID, signature: signature)
    }

    package static func secondPermit(_ body: consuming Secret) throws(Failure) -> Secret {
        try ServerAnswer(body).secret("timePermit", count: pointCount)
    }

    /// Reads a second share as the store of a service has it: hexadecimal digits alone.
    package static func storedPermit(_ text: borrowing Secret) throws(Failure) -> Secret {
        let permit = text.withBytes { text in
            ServerAnswer.decode(UnsafeRawBufferPointer(rebasing: text.trimmed { $0 <= 0x20 }), count: pointCount)
        }
        guard let permit else {
            throw Failure(.cryptoError, "the stored time permit is not a point in hexadecimal")
        }
        return permit
    }

    // MARK: Logins

    /// Reads the challenge of pass 1.
    package static func challenge(_ body: [UInt8]) throws(Failure) -> Secret {
        try ServerAnswer(body).secret("y", count: ClientKeys.scalarCount)
    }

    /// Reads the answer to pass 2, which is sent to the relying party unchanged.
    /// - Returns: the answer, and the one-time code in it.
    package static func proof(_ body: [UInt8], _ mode: LoginMode) throws(Failure) -> (body: [UInt8], otp: String?) {
        let answer = try ServerAnswer(body)
        _ = try answer.string("authOTT", limit: 256)
        return (answer.bytes(), mode == .otp ? try code(answer, "OTP") : nil)
    }

    /// Reads a one-time code of six digits.
    private static func code(_ answer: borrowing ServerAnswer, _ name: StaticString) throws(Failure) -> String {
        let code = try answer.string(name, limit: 6)
        guard code.utf8.count == 6, code.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw Failure(.responseParseError, "the one-time code is not six digits")
        }
        return code
    }

    /// Reads the answer of the relying party, which may have no body. `otp` is the code of pass 2.
    package static func login(_ body: [UInt8], _ mode: LoginMode, otp: String?) throws(Failure) -> LoginResult {
        let answer = try answer(orEmpty: body)
        var code: LoginResult.Code?
        if let otp { code = try Self.code(otp, answer) }
        var logout: LoginResult.Logout?
        if case .accessNumber = mode {
            let url = answer.text("logoutURL", limit: 1024)
            if !url.isEmpty {
                logout = LoginResult.Logout(url: url, data: answer.object("logoutData") ?? .object([]))
            }
        }
        return LoginResult(data: text(body), code: code, logout: logout, authorizationCode: "")
    }

    /// Reads the answer to pass 2 of a service of MIRACL: the token of the proof.
    package static func keyedProof(_ body: [UInt8]) throws(Failure) -> String {
        try ServerAnswer(body).string("authOTT", limit: 256)
    }

    /// The answer of a login as the service wrote it; empty without a body.
    private static func text(_ body: [UInt8]) -> String {
        body.allSatisfy { $0 <= 0x20 } ? "" : String(decoding: body, as: UTF8.self)
    }

    /// Reads the last answer of a proof, which may have no body.
    package static func result(_ body: [UInt8], _ scope: ProofScope) throws(Failure) -> ProofResult {
        let answer = try answer(orEmpty: body)
        if let token = answer.object("dvsRegister")?["token"]?.string, !token.isEmpty {
            guard token.utf8.count <= 8192 else {
                throw Failure(.responseParseError, "the token of the service is too long")
            }
            return .mustRegister(token: token)
        }
        var code: LoginResult.Code?
        if scope == .otp || scope == .registrationCode { code = try Self.code(try Self.code(answer, "otp"), answer) }
        let authorization = answer.text("code", limit: 4096)
        return .accepted(
            LoginResult(data: text(body), code: code, logout: nil, authorizationCode: authorization)
        )
    }

    /// Reads the times of a one-time code, in milliseconds.
    /// - Throws: `.flowError` if there are no times, because then the service issues no codes.
    private static func code(
        _ otp: String,
        _ answer: borrowing ServerAnswer
    ) throws(Failure) -> LoginResult.Code {
        guard let expireTime = try? answer.int("expireTime"), let ttl = try? answer.int("ttlSeconds"),
            let now = try? answer.int("nowTime"), expireTime > 0, ttl > 0, now > 0
        else { throw Failure(.flowError, "the relying party accepts no one-time codes: it sent no times") }
        return LoginResult.Code(otp: otp, expireTime: expireTime / 1000, ttlSeconds: ttl, nowTime: now / 1000)
    }
}

/// The errors that a service of MIRACL names in the body of a refusal.
package enum ServerRefusal: String {
    case expired = "EXPIRED_MPINID"
    case revoked = "REVOKED_MPINID"
    case invalidSession = "INVALID_AUTH_SESSION"
    case unsuccessful = "UNSUCCESSFUL_AUTHENTICATION"
    case invalidActivation = "INVALID_ACTIVATION_TOKEN"

    /// Reads a body; nil if it names none of them.
    package init?(body: [UInt8]) {
        guard let answer = try? ServerAnswer(body) else { return nil }
        self.init(rawValue: answer.text("error", limit: 64))
    }

    var status: MPinStatus {
        switch self {
        case .expired: .clientSecretExpired
        case .revoked, .unsuccessful: .incorrectPIN
        case .invalidSession: .requestExpired
        case .invalidActivation: .identityNotVerified
        }
    }
}
