// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import HTTP
package import Secrets
package import Text

/// A registration as the login server has begun it.
package struct Registration: Sendable, Equatable {
    package let id: MPinID
    /// The one-time token with which the client gets its secret.
    package let regOTT: String
    /// Whether the identity needs no other confirmation.
    package let isActive: Bool
    /// When the registration expires, as the server wrote it; nil if it did not say.
    package let expiration: String?

    package init(id: MPinID, regOTT: String, isActive: Bool, expiration: String?) {
        (self.id, self.regOTT, self.isActive, self.expiration) = (id, regOTT, isActive, expiration)
    }
}

/// The first share of a client secret, and the signed request for the second one.
package struct FirstShare: Sendable {
    package let share: SecretBox
    let parameters: String
}

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

/// The requests of one call to M-Pin servers, on a thread of their own.
///
/// A cancelled task ends its request at once. Nothing is sent twice.
package actor MPinConnection {
    private let configuration: MPinConfiguration
    private let headers: [CustomHeader]
    private let domains: TrustedDomains
    /// nil when the system had no thread left: then every request fails.
    private nonisolated let thread: NetworkThread?
    private nonisolated let canceller = HTTPCanceller()
    private let addresses: HostAddresses
    private var session: HTTPSession?

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        thread?.asUnownedSerialExecutor() ?? Loop.sharedUnownedExecutor
    }

    package init(
        _ configuration: MPinConfiguration,
        headers: [CustomHeader],
        domains: TrustedDomains,
        startThread: NetworkThread.Start = Concurrency.startThread
    ) {
        (self.configuration, self.headers, self.domains) = (configuration, headers, domains)
        addresses = HostAddresses(configuration.lookUp, canceller)
        thread = try? NetworkThread(start: startThread)
    }

    deinit { thread?.finish() }

    // MARK: Calls

    /// Fetches the settings of a backend.
    package nonisolated func settings(of backend: Backend) async throws(MPinFailure) -> ClientSettings {
        try await cancellable { server throws(MPinFailure) in
            let address = try backend.address(backend.settingsAddress)
            return ClientSettings(backend, try ServerAnswer(try server.get(address).body).json())
        }
    }

    /// Begins a registration, or repeats one whose answer is `earlier`.
    package nonisolated func register(
        _ userID: String,
        deviceName: String,
        userData: String,
        activateCode: String,
        repeating earlier: Registration?,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> Registration {
        try await cancellable { server throws(MPinFailure) in
            var body = JSONWriter()
            body.object { object in
                object.member("userId", userID)
                object.member("mobile", 1)
                if !deviceName.isEmpty { object.member("deviceName", deviceName) }
                if !userData.isEmpty { object.member("userData", userData) }
                if !activateCode.isEmpty { object.member("activateCode", activateCode) }
                if let earlier { object.member("regOTT", earlier.regOTT) }
            }
            let address = try settings.address("registerURL", earlier.map { "/\($0.id.text)" } ?? "")
            let response = try server.send(.put, address, body.bytes) { $0 == 403 ? .identityNotAuthorized : nil }
            let answer = try ServerAnswer(response.body)
            guard let id = MPinID(try answer.string("mpinId")) else {
                throw MPinFailure(.responseParseError, "the M-Pin id of the server is not hexadecimal")
            }
            let regOTT = try answer.string("regOTT")
            guard (1...256).contains(regOTT.utf8.count), Hex.decode(regOTT) != nil else {
                throw MPinFailure(.responseParseError, "the token of the registration is not hexadecimal")
            }
            let expiration = (try? answer.string("expireTime")).flatMap { text in
                text.utf8.count <= 64 && text.utf8.allSatisfy { (0x20...0x7E).contains($0) } ? text : nil
            }
            let isActive = try answer.bool("active")
            return Registration(id: id, regOTT: regOTT, isActive: isActive, expiration: expiration)
        }
    }

    /// Fetches the first share of the client secret. The server gives it once. `push` is an identifier for push messages,
    /// which is passed on, and may be empty.
    package nonisolated func firstShare(
        _ registration: Registration,
        push: String,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> FirstShare {
        try await cancellable { server throws(MPinFailure) in
            let token = push.isEmpty ? "" : "&pmiToken=\(Self.percentEncoded(push))"
            let address = try settings.address(
                "signatureURL",
                "/\(registration.id.text)?regOTT=\(registration.regOTT)\(token)"
            )
            let response = try server.get(address) { $0 == 400 || $0 == 401 ? .identityNotVerified : nil }
            let answer = try ServerAnswer(response.body)
            let share = try answer.secret("clientSecretShare", count: Self.pointCount)
            return FirstShare(share: SecretBox(share), parameters: try answer.string("params"))
        }
    }

    /// Fetches the second share of the client secret.
    package nonisolated func secondShare(
        _ first: FirstShare,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> SecretBox {
        try await cancellable { server throws(MPinFailure) in
            let address = try settings.authority("clientSecret?\(first.parameters)")
            let response = try server.get(address) { $0 == 408 ? .requestExpired : nil }
            return SecretBox(try ServerAnswer(response.body).secret("clientSecret", count: Self.pointCount))
        }
    }

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

    /// Proves token and PIN: pass 1, pass 2, and the question to the relying party what the proof is worth. Token and PIN
    /// are taken once.
    package nonisolated func authenticate(
        _ id: MPinID,
        _ mode: LoginMode,
        token: SecretBox,
        pin: SecretBox,
        permit: (day: PermitDay, sum: SecretBox)?,
        _ settings: ClientSettings
    ) async throws(MPinFailure) -> LoginResult {
        try await cancellable { server throws(MPinFailure) in
            guard let token = token.take(), let digits = pin.take(), let pin = PIN(digits) else {
                throw MPinFailure(.cryptoError, "a PIN has \(PIN.length) digits")
            }
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

    // MARK: Parts of calls

    private static let pointCount = ClientKeys.encodedCount

    /// Turns errors of the arithmetic into a failure.
    static func crypto<T: ~Copyable>(_ body: () throws(CryptoError) -> T) throws(MPinFailure) -> T {
        do throws(CryptoError) {
            return try body()
        } catch {
            throw MPinFailure(error)
        }
    }

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
        if let otp = second.otp {
            guard let expireTime = try? answer.int("expireTime"), let ttl = try? answer.int("ttlSeconds"),
                let now = try? answer.int("nowTime"), expireTime > 0, ttl > 0, now > 0
            else { throw MPinFailure(.flowError, "the relying party accepts no one-time codes: it sent no times") }
            code = LoginResult.Code(otp: otp, expireTime: expireTime / 1000, ttlSeconds: ttl, nowTime: now / 1000)
        }
        let json = answer.json()
        var logout: LoginResult.Logout?
        if isForBrowser, let url = json["logoutURL"]?.string, !url.isEmpty {
            logout = LoginResult.Logout(url: url, data: json["logoutData"].flatMap(Self.object) ?? .object([]))
        }
        return LoginResult(data: answer.text(), code: code, logout: logout)
    }

    private static func object(_ json: JSON) -> JSON? { json.members == nil ? nil : json }

    /// Percent-encodes everything but the unreserved characters of RFC 3986.
    private static func percentEncoded(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                String(UnicodeScalar(byte))
            default: "%" + Hex.encode([byte]).uppercased()
            }
        }.joined()
    }

    // MARK: Requests

    /// Names the status for an HTTP status of a context; nil: the general rule.
    private typealias Meaning = (Int) -> MPinStatus?

    private func get(
        _ address: WebAddress,
        _ meaning: Meaning = { _ in nil }
    ) throws(MPinFailure) -> HTTPResponse { try send(.get, address, nil, meaning) }

    /// Sends a request, whose answer must have status 200.
    private func send(
        _ method: HTTPRequest.Method,
        _ address: WebAddress,
        _ body: [UInt8]?,
        _ meaning: Meaning = { _ in nil }
    ) throws(MPinFailure) -> HTTPResponse {
        let response = try run(method, address, body)
        let status = response.status
        guard status != 200 else { return response }
        let general: MPinStatus =
            switch status {
            case 406: .badUserAgent
            case 400...499: .httpRequestError
            case 500...599: .httpServerError
            case 201...299: .responseParseError
            default: .networkError
            }
        throw MPinFailure(
            meaning(status) ?? general,
            "\(address.origin.host) answered with HTTP status \(status)",
            http: status
        )
    }

    private func run(
        _ method: HTTPRequest.Method,
        _ address: WebAddress,
        _ body: [UInt8]?
    ) throws(MPinFailure) -> HTTPResponse {
        guard thread != nil else { throw MPinFailure(.networkError, "no thread is left for the connection") }
        try domains.check(address)
        var lines = headers.map { "\($0.name): \($0.value)" }
        if !headers.contains(where: { $0.name.lowercased() == "user-agent" }) {
            lines.append("User-Agent: \(configuration.userAgent)")
        }
        if body != nil { lines += ["Content-Type: application/json; charset=UTF-8", "Accept: text/plain"] }
        let request = HTTPRequest(method: method, address: address, headers: lines, body: body ?? [])
        do throws(HTTPFault) {
            return try connected().run(request, by: .now + configuration.limits.transfer)
        } catch {
            let host = address.origin.host
            switch error {
            case .cancelled: throw MPinFailure(.networkError, "it was cancelled")
            case .timeout: throw MPinFailure(.networkError, "\(host) did not answer in time")
            case .tooLarge: throw MPinFailure(.responseParseError, "the answer of \(host) is too long")
            case .proxy(let fault, let words):
                throw MPinFailure(.networkError, "the proxy opens no connection to \(host): \(fault) \(words)")
            case .tls(_, let words): throw MPinFailure(.networkError, "\(host) cannot be trusted: \(words)")
            case .unreachable(let words), .broken(let words), .unavailable(let words):
                throw MPinFailure(.networkError, "no answer of \(host): \(words)")
            }
        }
    }

    private func connected() throws(HTTPFault) -> HTTPSession {
        if let session { return session }
        let new = try HTTPSession(nil, configuration.limits, configuration.proxies, canceller, addresses)
        session = new
        return new
    }

    // MARK: Cancellation

    private typealias Call<T> = @Sendable (isolated MPinConnection) throws(MPinFailure) -> T

    /// Runs one call on the actor's thread; the cancellation of the task ends its request.
    private nonisolated func cancellable<T: Sendable>(_ call: Call<T>) async throws(MPinFailure) -> T {
        let result = await withTaskCancellationHandler {
            await run(call)
        } onCancel: {
            canceller.cancel()
        }
        return try result.get()
    }

    private func run<T: Sendable>(_ call: Call<T>) -> Result<T, MPinFailure> {
        Result { () throws(MPinFailure) in try call(self) }
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes without white space at both ends.
    fileprivate var trimmed: Slice<UnsafeRawBufferPointer> {
        let begun = drop { $0 <= 0x20 }
        return begun.prefix(begun.count - begun.reversed().prefix { $0 <= 0x20 }.count)
    }
}
