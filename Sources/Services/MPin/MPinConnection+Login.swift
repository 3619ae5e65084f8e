// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HTTP
package import Secrets
package import Text

/// A time permit: the sum of both shares, and the second one, which can be used again on the same day.
package struct TimePermit: Sendable {
    package let day: PermitDay
    package let sum: SecretBox
    package let second: SecretBox
}

/// The kind of login: plain, with a one-time code, or of a browser.
package enum LoginMode: Sendable, Equatable {
    case login
    case otp
    /// The browser shows this number.
    case accessNumber(String)
}

/// The result of a login.
package struct LoginResult: Sendable, Equatable {
    /// A one-time code, with times in seconds.
    package struct Code: Sendable, Equatable {
        /// Six digits.
        package let otp: String
        package let expireTime: Int
        package let ttlSeconds: Int
        package let nowTime: Int
    }

    /// Where the user can be logged out again.
    package struct Logout: Sendable, Equatable {
        package let url: String
        package let data: JSON
    }

    /// The object of the relying party as it was sent.
    package let data: String
    package let code: Code?
    package let logout: Logout?
    /// MPinMFA: the code that the program passes to its own service; empty if the login service sent none.
    package let authorizationCode: String
}

extension MPinConnection {
    /// Fetches the time permit of today; nil if the server uses none. `cached` is the second share of an earlier permit.
    package nonisolated func timePermit(
        _ id: MPinID,
        cached: (day: PermitDay, second: SecretBox)?,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> TimePermit? {
        guard settings.usesPermits else { return nil }
        return try await cancellable { server throws(MPinFailure) in
            let address = try settings.address("timePermitsURL", "/\(id.text)")
            let response = try server.get(address) { $0 == 410 ? .revoked : nil }
            let first = try ServerReply.permit(response.body)
            var second: Secret?
            if let cached, cached.day == first.day { second = cached.second.take() }
            if second == nil { second = try server.secondPermit(first, settings) }
            guard let second else { throw MPinFailure(.cryptoError, "there is no second share of the time permit") }
            let sum = try Self.crypto { () throws(CryptoError) in try ClientKeys.sum(first.share, second) }
            return TimePermit(day: first.day, sum: SecretBox(sum), second: SecretBox(second))
        }
    }

    /// Proves token and PIN: pass 1, pass 2, and the request to the relying party for the result. The token is taken
    /// once.
    package nonisolated func authenticate(
        _ id: MPinID,
        _ mode: LoginMode,
        token: SecretBox,
        _ factors: Factors,
        permit: (day: PermitDay, sum: SecretBox)?,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> LoginResult {
        try await cancellable { server throws(MPinFailure) in
            guard let token = token.take() else { throw MPinFailure(.invalidKey) }
            let pin = try Self.crypto { () throws(CryptoError) in try factors.pin() }
            let sum = permit?.sum.take()
            let proof = try Self.crypto { () throws(CryptoError) in try LoginProof(id, day: permit?.day) }
            let y = try server.passOne(id, proof, settings)
            let v = try Self.crypto { () throws(CryptoError) in
                try proof.answer(to: y, token: token, pin, permit: sum)
            }
            let second = try server.passTwo(id, mode, v, settings)
            return try server.askRelyingParty(mode, second, settings)
        }
    }

    /// Logs a user out of the session of a browser.
    package nonisolated func logOut(_ logout: LoginResult.Logout, _ backend: Backend) async throws(MPinFailure) {
        try await cancellable { server throws(MPinFailure) in
            _ = try server.send(.post, try backend.address(logout.url), logout.data.bytes)
        }
    }

    // MARK: Parts of a login

    private func secondPermit(
        _ first: borrowing ServerReply.Permit,
        _ settings: ClientSettings
    ) throws(MPinFailure) -> Secret {
        if let address = try settings.cachedPermit(first.day, first.storageID) {
            let response = try run(.get, address, nil)
            if response.status == 200 { return try ServerReply.storedPermit(response.body) }
        }
        let id = "hash_mpin_id=\(first.storageID)&app_id=\(try settings.appID())"
        let address = try settings.authority("timePermit?\(id)&mobile=1&signature=\(first.signature)")
        return try ServerReply.secondPermit(try get(address) { $0 == 410 ? .revoked : nil }.body)
    }

    private func passOne(
        _ id: MPinID,
        _ proof: borrowing LoginProof,
        _ settings: ClientSettings
    ) throws(MPinFailure) -> Secret {
        var body = JSONWriter()
        let (u, ut) = (Hex.encode(proof.u), proof.ut.map { Hex.encode($0) } ?? "")
        body.object { object in
            object.member("pass", 1)
            object.member("mpin_id", id.text)
            object.member("U", u)
            object.member("UT", ut)
        }
        let address = try settings.address("mpinAuthServerURL", "/pass1")
        return try ServerReply.challenge(try send(.post, address, body.bytes).body)
    }

    /// Returns the whole answer to pass 2, and the one-time code in it.
    private func passTwo(
        _ id: MPinID,
        _ mode: LoginMode,
        _ v: [UInt8],
        _ settings: ClientSettings
    ) throws(MPinFailure) -> (body: [UInt8], otp: String?) {
        var body = JSONWriter()
        var number = "0"
        if case .accessNumber(let text) = mode { number = text }
        body.object { object in
            object.member("pass", 2)
            object.member("mpin_id", id.text)
            object.member("WID", number)
            object.member("OTP", mode == .otp)
            object.member("V", Hex.encode(v))
        }
        let address = try settings.address("mpinAuthServerURL", "/pass2")
        return try ServerReply.proof(try send(.post, address, body.bytes).body, mode)
    }

    private func askRelyingParty(
        _ mode: LoginMode,
        _ second: (body: [UInt8], otp: String?),
        _ settings: ClientSettings
    ) throws(MPinFailure) -> LoginResult {
        var body = JSONWriter()
        body.object { object in
            object.key("mpinResponse")
            object.raw(second.body)
        }
        var isForBrowser = false
        if case .accessNumber = mode { isForBrowser = true }
        let address = try settings.address(isForBrowser ? "mobileAuthenticateURL" : "authenticateURL")
        let response = try send(.post, address, body.bytes) { status in
            switch status {
            case 401, 410: .incorrectPIN
            case 403: .identityNotAuthorized
            case 408: .requestExpired
            case 409: .clientSecretExpired
            case 412 where isForBrowser: .incorrectAccessNumber
            default: nil
            }
        }
        return try ServerReply.login(response.body, mode, otp: second.otp)
    }
}
