// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
import HTTP
package import Text

/// A time permit: the sum of both shares, and the second one, which can be used again on the same day.
package struct TimePermit: Sendable {
    package let day: PermitDay
    package let sum: SecretBox
    package let second: SecretBox
}

extension TimePermit {
    /// - Throws: `CryptoError` if a share is no point, or if the sum is infinity.
    fileprivate init(_ first: borrowing ServerReply.Permit, _ second: borrowing Secret) throws(CryptoError) {
        day = first.day
        sum = SecretBox(try ClientKeys.sum(first.share, second))
        self.second = SecretBox(second.clone())
    }
}

/// What a client has kept of an earlier time permit.
package enum CachedPermit: Sendable {
    case none
    /// The second share of a day.
    case share(PermitDay, SecretBox)
    /// A login with the last share has failed. The share may have been wrong, so the trust authority itself is asked.
    case doubtful
}

/// The kind of login: plain, with a one-time code, or of a browser.
package enum LoginMode: Sendable, Equatable {
    case login
    case otp
    /// The browser shows this number.
    case accessNumber(String)
}

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
    /// Fetches the time permit of today; nil if the server uses none. The second share comes from the cache, from the
    /// storage of the service, or from the trust authority. A fault of the first two has no other effect.
    package func timePermit(
        _ id: MPinID,
        cached: CachedPermit,
        _ settings: ClientSettings
    ) async throws(Failure) -> TimePermit? {
        guard settings.usesPermits else { return nil }
        let address = try settings.address("timePermitsURL", "/\(id.text)")
        var response = try await get(address) { $0 == 410 ? .revoked : nil }
        let first = try ServerReply.permit(response.takeSecret(), today: Glibc.time(nil) / 86_400)
        switch cached {
        case .share(let day, let share) where day == first.day:
            if let second = share.take(), let permit = try? TimePermit(first, second) { return permit }
        case .none, .share:
            if let second = await storedPermit(first, settings), let permit = try? TimePermit(first, second) {
                return permit
            }
        case .doubtful: break
        }
        let second = try await secondPermit(first, settings)
        return try serverValues(TimePermit(first, second))
    }

    /// Proves token and PIN: pass 1, pass 2, and the request to the relying party for the result. The token is taken
    /// once.
    package func authenticate(
        _ id: MPinID,
        _ mode: LoginMode,
        token: SecretBox,
        _ factors: Factors,
        permit: (day: PermitDay, sum: SecretBox)?,
        _ settings: ClientSettings
    ) async throws(Failure) -> LoginResult {
        guard let token = token.take() else { throw Failure.ofServer(.invalidKey) }
        let pin = try serverValues(factors.pin())
        let sum = permit?.sum.take()
        let proof = try serverValues(LoginProof(id, day: permit?.day))
        let y = try await passOne(id, proof, settings)
        let v = try serverValues(proof.answer(to: y, token: token, pin, permit: sum))
        let second = try await passTwo(id, mode, v, settings)
        return try await askRelyingParty(mode, second, settings)
    }

    /// Logs a user out of the session of a browser.
    package func logOut(_ logout: LoginResult.Logout, _ backend: Backend) async throws(Failure) {
        _ = try await send(.post, try backend.address(logout.url), logout.data.bytes)
    }

    // MARK: Parts of a login

    /// Asks the storage of the service for a second share; nil if it has none, or fails.
    private func storedPermit(_ first: borrowing ServerReply.Permit, _ settings: ClientSettings) async -> Secret? {
        guard let address = try? settings.storedPermit(first.day, first.storageID),
            var response = try? await run(.get, address, nil, isApart: true), response.status == 200
        else { return nil }
        return try? ServerReply.storedPermit(response.takeSecret())
    }

    /// Asks the trust authority for a second share.
    private func secondPermit(
        _ first: borrowing ServerReply.Permit,
        _ settings: ClientSettings
    ) async throws(Failure) -> Secret {
        let id = "hash_mpin_id=\(first.storageID)&app_id=\(try settings.appID())"
        let address = try settings.authority("timePermit?\(id)&mobile=1&signature=\(first.signature)")
        var response = try await get(address, isApart: true) { $0 == 410 ? .revoked : nil }
        return try ServerReply.secondPermit(response.takeSecret())
    }

    private func passOne(
        _ id: MPinID,
        _ proof: borrowing LoginProof,
        _ settings: ClientSettings
    ) async throws(Failure) -> Secret {
        let (u, ut) = (Hex.encode(proof.u), proof.ut.map { Hex.encode($0) } ?? "")
        let body = JSONWriter.bytes { object in
            object.member("pass", 1)
            object.member("mpin_id", id.text)
            object.member("U", u)
            object.member("UT", ut)
        }
        let address = try settings.address("mpinAuthServerURL", "/pass1")
        return try ServerReply.challenge(try await send(.post, address, body).body)
    }

    /// Returns the whole answer to pass 2, and the one-time code in it.
    private func passTwo(
        _ id: MPinID,
        _ mode: LoginMode,
        _ v: [UInt8],
        _ settings: ClientSettings
    ) async throws(Failure) -> (body: [UInt8], otp: String?) {
        var number = "0"
        if case .accessNumber(let text) = mode { number = text }
        let body = JSONWriter.bytes { object in
            object.member("pass", 2)
            object.member("mpin_id", id.text)
            object.member("WID", number)
            object.member("OTP", mode == .otp)
            object.member("V", Hex.encode(v))
        }
        let address = try settings.address("mpinAuthServerURL", "/pass2")
        return try ServerReply.proof(try await send(.post, address, body).body, mode)
    }

    private func askRelyingParty(
        _ mode: LoginMode,
        _ second: (body: [UInt8], otp: String?),
        _ settings: ClientSettings
    ) async throws(Failure) -> LoginResult {
        let body = JSONWriter.bytes { object in
            object.key("mpinResponse")
            object.raw(second.body)
        }
        var isForBrowser = false
        if case .accessNumber = mode { isForBrowser = true }
        let address = try settings.address(isForBrowser ? "mobileAuthenticateURL" : "authenticateURL")
        let response = try await send(.post, address, body) { status in
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
