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

/// What a user proves: a login, a login with a one-time code, or a login of a browser.
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
            let answer = try ServerAnswer(response.body)
            guard let number = UInt32(exactly: try answer.int("date")) else {
                throw MPinFailure(.responseParseError, "the day of the time permit is out of range")
            }
            let day = PermitDay(number)
            let first = try answer.secret("timePermit", count: Self.pointCount)
            var second: Secret?
            if let cached, cached.day == day { second = cached.second.take() }
            if second == nil {
                second = try server.secondPermit(
                    day,
                    storageID: try answer.string("storageId"),
                    signature: try answer.string("signature"),
                    settings
                )
            }
            guard let second else { throw MPinFailure(.cryptoError, "there is no second share of the time permit") }
            let sum = try Self.crypto { () throws(CryptoError) in try ClientKeys.sum(first, second) }
            return TimePermit(day: day, sum: SecretBox(sum), second: SecretBox(second))
        }
    }

    /// Proves token and PIN: pass 1, pass 2, and the question to the relying party what the proof is worth. The token is
    /// taken once.
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
        _ day: PermitDay,
        storageID: String,
        signature: String,
        _ settings: ClientSettings
    ) throws(MPinFailure) -> Secret? {
        guard Hex.decode(storageID)?.count == 32, let signed = Hex.decode(signature), (1...128).contains(signed.count)
        else {
            throw MPinFailure(.responseParseError, "storageId or signature of the time permit is not hexadecimal")
        }
        if let address = try settings.cachedPermit(day, storageID) {
            let response = try run(.get, address, nil)
            if response.status == 200 {
                let text = Secret(response.body)
                let permit = text.withBytes { text in
                    ServerAnswer.decode(UnsafeRawBufferPointer(rebasing: text.trimmed), count: Self.pointCount)
                }
                guard let permit else {
                    throw MPinFailure(.cryptoError, "the stored time permit is not a point in hexadecimal")
                }
                return permit
            }
        }
        let query = "hash_mpin_id=\(storageID)&app_id=\(try settings.appID())&mobile=1&signature=\(signature)"
        let response = try get(try settings.authority("timePermit?\(query)")) { $0 == 410 ? .revoked : nil }
        return try ServerAnswer(response.body).secret("timePermit", count: Self.pointCount)
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
        return try ServerAnswer(try send(.post, address, body.bytes).body).secret("y", count: ClientKeys.scalarCount)
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
        let answer = try ServerAnswer(try send(.post, address, body.bytes).body)
        _ = try answer.string("authOTT")
        var otp: String?
        if mode == .otp {
            let code = try answer.string("OTP")
            guard code.utf8.count == 6, code.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw MPinFailure(.responseParseError, "the one-time code is not six digits")
            }
            otp = code
        }
        return (answer.bytes(), otp)
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
        let answer = try ServerAnswer(response.body)
        var code: LoginResult.Code?
        if let otp = second.otp { code = try LoginResult.Code(otp: otp, answer) }
        let json = answer.json()
        var logout: LoginResult.Logout?
        if isForBrowser, let url = json["logoutURL"]?.string, !url.isEmpty {
            logout = LoginResult.Logout(url: url, data: json["logoutData"].flatMap(Self.object) ?? .object([]))
        }
        return LoginResult(data: answer.text(), code: code, logout: logout)
    }

    private static func object(_ json: JSON) -> JSON? { json.members == nil ? nil : json }
}

extension UnsafeRawBufferPointer {
    /// The bytes without white space at both ends.
    fileprivate var trimmed: Slice<UnsafeRawBufferPointer> {
        let begun = drop { $0 <= 0x20 }
        return begun.prefix(begun.count - begun.reversed().prefix { $0 <= 0x20 }.count)
    }
}
