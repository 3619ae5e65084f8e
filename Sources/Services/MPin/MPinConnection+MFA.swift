// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import HTTP
package import Text

/// The description of a login service on its page.
package struct ServiceDetails: Sendable, Equatable {
    package let name: String
    package let backendURL: String
    package let prefix: String
    package let logoURL: String
}

/// The description of a browser session by its service. Members that it does not send are empty.
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
    /// The address of the second share.
    let address: String
}

/// The purpose of a proof of token and PIN.
package enum ProofScope: String, Sendable {
    case login = "oidc"
    case otp
    case registrationCode = "reg-code"
    case signing = "dvs-auth"
}

package enum ProofResult: Sendable {
    case accepted(LoginResult)
    /// The PIN is right, but the identity must be registered again with this token.
    case mustRegister(token: String)
}

/// The calls of `MPinMFA`.
extension MPinConnection {
    // MARK: Sessions

    /// The address of the description of the login service on a page.
    package static func serviceAddress(of page: String) throws(Failure) -> WebAddress {
        try address(page.hasSuffix("/") ? "\(page)service" : "\(page)/service")
    }

    package func serviceDetails(at address: WebAddress) async throws(Failure) -> ServiceDetails {
        try ServerReply.service(try await get(address).body)
    }

    /// Tells the service that the access code was scanned or typed, and returns the description of the session.
    package func sessionDetails(
        _ accessCode: String,
        _ settings: ClientSettings
    ) async throws(Failure) -> SessionDetails {
        return try ServerReply.session(try await codeStatus("wid", accessCode, user: nil, settings))
    }

    package func abortSession(_ accessCode: String, _ settings: ClientSettings) async throws(Failure) {
        try ServerReply.acknowledgement(try await codeStatus("abort", accessCode, user: nil, settings))
    }

    /// Tells the service which user logs in to the session.
    package func announce(
        _ userID: String,
        _ accessCode: String,
        _ settings: ClientSettings
    ) async throws(Failure) {
        try ServerReply.acknowledgement(try await codeStatus("user", accessCode, user: userID, settings))
    }

    private func codeStatus(
        _ status: String,
        _ accessCode: String,
        user: String?,
        _ settings: ClientSettings
    ) async throws(Failure) -> [UInt8] {
        let body = JSONWriter.bytes { object in
            object.member("status", status)
            object.member("wid", accessCode)
            if let user { object.member("userId", user) }
        }
        let address = try settings.address("codeStatusURL")
        return try await send(.post, address, body) { $0 == 404 ? .requestExpired : nil }.body
    }

    /// Opens a session for the program itself at the address that its own service has made. Returns its access code.
    package func accessCode(_ authorization: WebAddress) async throws(Failure) -> String {
        let response = try await send(.post, authorization, Array("{}".utf8))
        return try ServerReply.accessCode(response.body)
    }

    /// The maximum number of bytes of an access code.
    package static let maximumCode = 512

    /// Reads an address that a client has given.
    package static func address(_ text: String) throws(Failure) -> WebAddress {
        guard let address = WebAddress(text) else {
            throw Failure(.flowError, "the address must be an http or https address")
        }
        return address
    }

    // MARK: Client secrets

    /// Fetches the first share of the client secret of a registration.
    package func firstShare(
        _ registration: MPinRegistration,
        _ keys: IdentityKeys,
        _ settings: ClientSettings
    ) async throws(Failure) -> KeyedShare {
        let query = "regOTT=\(registration.regOTT)&publicKey=\(Hex.encode(keys.publicKey))"
        let address = try settings.address("signatureURL", "/\(registration.id.text)?\(query)")
        var response = try await get(address) { [400, 401, 404].contains($0) ? .identityNotVerified : nil }
        return try ServerReply.keyedShare(response.takeSecret(), of: registration.id, keys)
    }

    /// Fetches the first share of the client secret with which documents are signed. `token` permits one registration.
    package func firstShare(
        _ token: String,
        deviceName: String,
        _ keys: IdentityKeys,
        _ settings: ClientSettings
    ) async throws(Failure) -> KeyedShare {
        let body = JSONWriter.bytes { object in
            object.member("publicKey", Hex.encode(keys.publicKey))
            object.member("deviceName", deviceName)
            object.member("dvsRegisterToken", token)
        }
        var response = try await send(.post, try settings.address("dvsRegURL"), body) { status in
            status == 400 || status == 401 || status == 403 ? .identityNotAuthorized : nil
        }
        return try ServerReply.keyedShare(response.takeSecret(), of: nil, keys)
    }

    /// Fetches the second share.
    package func secondShare(
        _ first: KeyedShare,
        _ settings: ClientSettings
    ) async throws(Failure) -> SecretBox {
        var response = try await get(try settings.backend.address(first.address), isApart: true) { status in
            status == 408 ? .requestExpired : nil
        }
        return try ServerReply.secondKeyedShare(response.takeSecret())
    }

    // MARK: Proofs

    /// Proves token and PIN: pass 1, pass 2, and the request for the result. The token is taken once. `authorization`
    /// is the value of the header Authorization, which the app has made; it may be empty.
    package func prove(
        _ identity: KeyedIdentity,
        _ scope: ProofScope,
        token: SecretBox,
        _ factors: Factors,
        accessCode: String,
        authorization: String = "",
        _ settings: ClientSettings
    ) async throws(Failure) -> ProofResult {
        guard let token = token.take() else { throw Failure.ofServer(.invalidKey) }
        let pin = try serverValues(factors.pin())
        let proof = try serverValues(LoginProof(identity.signingID, day: nil))
        let lines = authorization.isEmpty ? [] : ["Authorization: \(authorization)"]

        let first = try await send(
            .post,
            try settings.address("mpinAuthServerURL", "/pass1"),
            Self.passOne(identity, scope, proof.u),
            more: lines
        )
        let y = try ServerReply.challenge(first.body)
        let none: Secret? = nil
        let v = try serverValues(proof.answer(to: y, token: token, pin, permit: none))
        let body = JSONWriter.bytes { object in
            object.member("mpin_id", identity.id.text)
            object.member("WID", accessCode.isEmpty ? "0" : accessCode)
            object.member("V", Hex.encode(v))
        }
        let address = try settings.address("mpinAuthServerURL", "/pass2")
        let second = try await send(.post, address, body, more: lines)
        let authOTT = try ServerReply.keyedProof(second.body)

        let question = JSONWriter.bytes { object in
            object.member("authOTT", authOTT)
            object.member("wam", "dvs")
        }
        let last = try await send(.post, try settings.address("authenticateURL"), question, more: lines) {
            switch $0 {
            case 401, 410: .incorrectPIN
            case 403: .identityNotAuthorized
            case 408: .requestExpired
            case 409: .clientSecretExpired
            case 412: .incorrectAccessNumber
            default: nil
            }
        }
        return try ServerReply.result(last.body, scope)
    }

    private static func passOne(_ identity: KeyedIdentity, _ scope: ProofScope, _ u: [UInt8]) -> [UInt8] {
        JSONWriter.bytes { object in
            object.member("mpin_id", identity.id.text)
            object.member("dtas", identity.dtas)
            object.member("U", Hex.encode(u))
            object.member("publicKey", Hex.encode(identity.publicKey))
            object.member("scope", [scope.rawValue])
        }
    }
}
