// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HTTP
package import Secrets
import Text

/// What a page says about its login service.
package struct ServiceDetails: Sendable, Equatable {
    package let name: String
    package let backendURL: String
    package let prefix: String
    package let logoURL: String
}

/// What a service says about the session of a browser. Members that it does not send are empty.
package struct SessionDetails: Sendable, Equatable {
    package let prerollID: String
    package let appName: String
    package let appIconURL: String
    package let customerID: String
    package let customerName: String
    package let customerIconURL: String
}

/// The first share of the client secret of an identity with a public key.
package struct KeyedShare: Sendable {
    package let identity: KeyedIdentity
    package let share: SecretBox
    package let keys: IdentityKeys
    /// Where the second share is.
    let address: String
}

/// For what a user proves token and PIN.
package enum ProofScope: String, Sendable {
    case login = "oidc"
    case otp
    case registrationCode = "reg-code"
    case signing = "dvs-auth"
}

/// How a proof has ended.
package enum ProofResult: Sendable {
    case accepted(LoginResult)
    /// The PIN is right, but the identity must be made again with this token.
    case mustRegister(token: String)
}

/// The calls of `MPinMFA`.
extension MPinConnection {
    // MARK: Sessions

    package nonisolated func serviceDetails(of page: String) async throws(MPinFailure) -> ServiceDetails {
        try await cancellable { server throws(MPinFailure) in
            let text = page.hasSuffix("/") ? "\(page)service" : "\(page)/service"
            let json = try ServerAnswer(try server.get(try Self.webAddress(text)).body).json()
            guard let name = json["name"]?.string, let url = json["url"]?.string,
                let prefix = json["rps_prefix"]?.string, let logo = json["logo_url"]?.string,
                json["type"]?.string == "online"
            else { throw MPinFailure(.responseParseError, "the page describes no login service") }
            return ServiceDetails(name: name, backendURL: url, prefix: prefix, logoURL: logo)
        }
    }

    /// Tells the service that the access code was taken, and returns what it says about the session.
    package nonisolated func sessionDetails(
        _ accessCode: String,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> SessionDetails {
        try await cancellable { server throws(MPinFailure) in
            let json = try server.codeStatus("wid", accessCode, user: nil, settings).json()
            func text(_ names: String...) -> String { names.lazy.compactMap { json[$0]?.string }.first ?? "" }
            return SessionDetails(
                prerollID: text("prerollId", "PrerollId"),
                appName: text("appName", "AppName"),
                appIconURL: text("appLogoURL", "AppLogoUrl"),
                customerID: text("customerId"),
                customerName: text("customerName"),
                customerIconURL: text("customerLogoURL")
            )
        }
    }

    package nonisolated func abortSession(_ accessCode: String, _ settings: ClientSettings) async throws(MPinFailure) {
        try await cancellable { server throws(MPinFailure) in
            _ = try server.codeStatus("abort", accessCode, user: nil, settings).bytes()
        }
    }

    /// Tells the service that this user logs in to the session.
    package nonisolated func announce(
        _ userID: String,
        _ accessCode: String,
        _ settings: ClientSettings
    ) async throws(MPinFailure) {
        try await cancellable { server throws(MPinFailure) in
            _ = try server.codeStatus("user", accessCode, user: userID, settings).bytes()
        }
    }

    private func codeStatus(
        _ status: String,
        _ accessCode: String,
        user: String?,
        _ settings: ClientSettings
    ) throws(MPinFailure) -> ServerAnswer {
        var body = JSONWriter()
        body.object { object in
            object.member("status", status)
            object.member("wid", accessCode)
            if let user { object.member("userId", user) }
        }
        let address = try settings.address("codeStatusURL")
        return try ServerAnswer(try send(.post, address, body.bytes) { $0 == 404 ? .requestExpired : nil }.body)
    }

    /// Opens a session for the program itself at the address that its own service has made.
    package nonisolated func accessCode(_ authorization: String) async throws(MPinFailure) -> String {
        try await cancellable { server throws(MPinFailure) in
            let response = try server.send(.post, try Self.webAddress(authorization), Array("{}".utf8))
            let text = try ServerAnswer(response.body).string("qrURL")
            guard let mark = text.lastIndex(of: "#") else {
                throw MPinFailure(.responseParseError, "qrURL of the service has no access code")
            }
            let code = String(text[text.index(after: mark)...])
            guard (1...Self.maximumCode).contains(code.utf8.count) else {
                throw MPinFailure(.responseParseError, "qrURL of the service has no access code")
            }
            return code
        }
    }

    /// The most bytes of an access code.
    package static let maximumCode = 512

    private static func webAddress(_ text: String) throws(MPinFailure) -> WebAddress {
        guard let address = WebAddress(text) else {
            throw MPinFailure(.flowError, "the address must be an http or https address")
        }
        return address
    }

    // MARK: Client secrets

    /// Fetches the first share of the client secret of a registration.
    package nonisolated func firstShare(
        _ registration: Registration,
        _ keys: IdentityKeys,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> KeyedShare {
        try await cancellable { server throws(MPinFailure) in
            let query = "regOTT=\(registration.regOTT)&publicKey=\(Hex.encode(keys.publicKey))"
            let address = try settings.address("signatureURL", "/\(registration.id.text)?\(query)")
            let response = try server.get(address) { [400, 401, 404].contains($0) ? .identityNotVerified : nil }
            return try Self.share(try ServerAnswer(response.body), registration.id, keys)
        }
    }

    /// Fetches the first share of the client secret with which documents are signed. `token` permits one registration.
    package nonisolated func firstShare(
        _ token: String,
        deviceName: String,
        _ keys: IdentityKeys,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> KeyedShare {
        try await cancellable { server throws(MPinFailure) in
            var body = JSONWriter()
            body.object { object in
                object.member("publicKey", Hex.encode(keys.publicKey))
                object.member("deviceName", deviceName)
                object.member("dvsRegisterToken", token)
            }
            let response = try server.send(.post, try settings.address("dvsRegURL"), body.bytes) { status in
                status == 400 || status == 401 || status == 403 ? .identityNotAuthorized : nil
            }
            let answer = try ServerAnswer(response.body)
            guard let id = MPinID(try answer.string("mpinId")) else {
                throw MPinFailure(.responseParseError, "the M-Pin id of the server is not hexadecimal")
            }
            return try Self.share(answer, id, keys)
        }
    }

    private static func share(
        _ answer: borrowing ServerAnswer,
        _ id: MPinID,
        _ keys: IdentityKeys
    ) throws(MPinFailure) -> KeyedShare {
        guard try answer.string("curve") == "BN254CX" else {
            throw MPinFailure(.cryptoError, "the service uses another curve than BN254CX")
        }
        let address = try answer.string("cs2url")
        guard let identity = KeyedIdentity(id: id, publicKey: keys.publicKey, dtas: try answer.string("dtas")) else {
            throw MPinFailure(.responseParseError, "'dtas' of the server is too long")
        }
        let share = SecretBox(try answer.secret("dvsClientSecretShare", count: pointCount))
        return KeyedShare(identity: identity, share: share, keys: keys, address: address)
    }

    /// Fetches the second share.
    package nonisolated func secondShare(
        _ first: KeyedShare,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> SecretBox {
        try await cancellable { server throws(MPinFailure) in
            let response = try server.get(try settings.backend.address(first.address)) { status in
                status == 408 ? .requestExpired : nil
            }
            return SecretBox(try ServerAnswer(response.body).secret("dvsClientSecret", count: Self.pointCount))
        }
    }

    // MARK: Proofs

    /// Proves token and PIN: pass 1, pass 2, and the question what the proof is worth. The token is taken once. The app
    /// made `authorization`, which may be empty, for the header of this name.
    package nonisolated func prove(
        _ identity: KeyedIdentity,
        _ scope: ProofScope,
        token: SecretBox,
        _ factors: Factors,
        accessCode: String,
        authorization: String = "",
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> ProofResult {
        try await cancellable { server throws(MPinFailure) in
            guard let token = token.take() else { throw MPinFailure(.invalidKey) }
            let pin = try Self.crypto { () throws(CryptoError) in try factors.pin() }
            let proof = try Self.crypto { () throws(CryptoError) in try LoginProof(identity.signingID, day: nil) }
            let lines = authorization.isEmpty ? [] : ["Authorization: \(authorization)"]

            let first = try server.send(
                .post,
                try settings.address("mpinAuthServerURL", "/pass1"),
                Self.passOne(identity, scope, proof.u),
                more: lines
            )
            let y = try ServerAnswer(first.body).secret("y", count: ClientKeys.scalarCount)
            let none: Secret? = nil
            let v = try Self.crypto { () throws(CryptoError) in
                try proof.answer(to: y, token: token, pin, permit: none)
            }
            var body = JSONWriter()
            body.object { object in
                object.member("mpin_id", identity.id.text)
                object.member("WID", accessCode.isEmpty ? "0" : accessCode)
                object.member("V", Hex.encode(v))
            }
            let address = try settings.address("mpinAuthServerURL", "/pass2")
            let second = try ServerAnswer(try server.send(.post, address, body.bytes, more: lines).body)

            body = JSONWriter()
            let authOTT = try second.string("authOTT")
            body.object { object in
                object.member("authOTT", authOTT)
                object.member("wam", "dvs")
            }
            let last = try server.send(.post, try settings.address("authenticateURL"), body.bytes, more: lines) {
                switch $0 {
                case 401, 410: .incorrectPIN
                case 403: .identityNotAuthorized
                case 408: .requestExpired
                case 409: .clientSecretExpired
                case 412: .incorrectAccessNumber
                default: nil
                }
            }
            return try Self.result(try ServerAnswer(last.body), scope)
        }
    }

    private static func passOne(_ identity: KeyedIdentity, _ scope: ProofScope, _ u: [UInt8]) -> [UInt8] {
        var body = JSONWriter()
        body.object { object in
            object.member("mpin_id", identity.id.text)
            object.member("dtas", identity.dtas)
            object.member("U", Hex.encode(u))
            object.member("publicKey", Hex.encode(identity.publicKey))
            object.member("scope", [scope.rawValue])
        }
        return body.bytes
    }

    /// Reads the last answer of a proof.
    package static func result(
        _ answer: borrowing ServerAnswer,
        _ scope: ProofScope
    ) throws(MPinFailure) -> ProofResult {
        let json = answer.json()
        if let token = json["dvsRegister"]?["token"]?.string, !token.isEmpty { return .mustRegister(token: token) }
        var code: LoginResult.Code?
        if scope == .otp || scope == .registrationCode { code = try LoginResult.Code(answer) }
        return .accepted(LoginResult(data: answer.text(), code: code, logout: nil))
    }
}

extension LoginResult.Code {
    /// Reads a one-time code with its times in milliseconds.
    /// - Throws: `.flowError` if there are no times, because then the service issues no codes.
    fileprivate init(_ answer: borrowing ServerAnswer) throws(MPinFailure) {
        try self.init(otp: try answer.string("otp"), answer)
    }

    init(otp: String, _ answer: borrowing ServerAnswer) throws(MPinFailure) {
        guard let expireTime = try? answer.int("expireTime"), let ttl = try? answer.int("ttlSeconds"),
            let now = try? answer.int("nowTime"), expireTime > 0, ttl > 0, now > 0
        else { throw MPinFailure(.flowError, "the relying party accepts no one-time codes: it sent no times") }
        self.init(otp: otp, expireTime: expireTime / 1000, ttlSeconds: ttl, nowTime: now / 1000)
    }
}

extension LoginResult {
    /// The code that the program gives to its own service; empty if the login service sent none.
    package var authorizationCode: String { (try? JSON(Array(data.utf8)))?["code"]?.string ?? "" }
}
