// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Secrets
import Text

/// Logs users in with M-Pin. The methods are those of the class `MPin` of the Milagro Mobile SDK.
///
/// ```swift
/// let mpin = MPin(try await DaemonConnection.connect())
/// _ = try await mpin.initSDK()
/// _ = try await mpin.setBackend("https://login.example.org")
/// let user = try await mpin.makeNewUser("alice@example.org").user
/// ```
///
/// A call ends with a status; it throws only if badged cannot be asked. The connection must serve nothing else, because
/// this class reads its events. One call runs at a time. Cancelling the calling task cancels the call.
public actor MPin {
    private let session: MPinSession
    private var logouts: Set<String> = []

    public init(_ connection: DaemonConnection) { session = MPinSession(connection) }

    // MARK: The SDK

    /// Begins to use M-Pin. The headers are sent with every request to a server.
    public func initSDK(headers: [String: String] = [:]) async throws(ClientError) -> MpinStatus {
        try await session.ask("MPIN_INIT", [.init("headers", MPinSession.object(headers))])
    }

    /// Forgets backend, headers and trusted domains. The users stay.
    public func destroy() async throws(ClientError) -> MpinStatus {
        logouts = []
        return try await session.ask("MPIN_DESTROY")
    }

    public func addCustomHeaders(_ headers: [String: String]) async throws(ClientError) -> MpinStatus {
        try await session.ask("MPIN_SET_HEADERS", [.init("add", MPinSession.object(headers))])
    }

    public func clearCustomHeaders() async throws(ClientError) -> MpinStatus {
        try await session.ask("MPIN_SET_HEADERS", [.init("clear", .bool(true))])
    }

    /// Trusts a domain and all names below it. All other hosts are then refused.
    public func addTrustedDomain(_ domain: String) async throws(ClientError) -> MpinStatus {
        try await session.ask("MPIN_TRUSTED_DOMAINS", [.init("add", .array([.string(domain)]))])
    }

    public func clearTrustedDomains() async throws(ClientError) -> MpinStatus {
        try await session.ask("MPIN_TRUSTED_DOMAINS", [.init("clear", .bool(true))])
    }

    // MARK: Backends

    public func testBackend(_ url: String, rpsPrefix: String = "rps") async throws(ClientError) -> MpinStatus {
        try session.status(
            await session.run(
                "MPIN_TEST_BACKEND",
                [.init("url", .string(url)), .init("rpsPrefix", .string(rpsPrefix))]
            )
        )
    }

    public func setBackend(_ url: String, rpsPrefix: String = "rps") async throws(ClientError) -> MpinStatus {
        try session.status(
            await session.run("MPIN_SET_BACKEND", [.init("url", .string(url)), .init("rpsPrefix", .string(rpsPrefix))])
        )
    }

    /// Returns a member of the settings of the backend as text; empty if there is none.
    public func getClientParam(_ key: String) async throws(ClientError) -> String {
        let result = try await session.request("MPIN_CLIENT_PARAM", [.init("key", .string(key))])
        _ = try session.status(result)
        return result["value"]?.string ?? ""
    }

    // MARK: Users

    /// Makes a user of the present backend; nil unless the status is OK.
    public func makeNewUser(
        _ identity: String,
        deviceName: String = ""
    ) async throws(ClientError) -> (status: MpinStatus, user: IUser?) {
        let members = [JSON.Member("userId", .string(identity)), .init("deviceName", .string(deviceName))]
        let json = try await session.request("MPIN_MAKE_USER", members)
        return (try session.status(json), json["user"].flatMap(IUser.init))
    }

    /// Whether the present backend, or any other one, has a user of this name.
    public func isUserExisting(_ identity: String) async throws(ClientError) -> Bool {
        try await !session.users([.init("userId", .string(identity))]).isEmpty
    }

    public func deleteUser(_ user: IUser) async throws(ClientError) -> MpinStatus {
        logouts.remove(Self.key(user))
        return try await session.ask("MPIN_DELETE_USER", MPinSession.members(user) + MPinSession.members(user.backend))
    }

    /// All users of the own user of the system.
    public func listUsers() async throws(ClientError) -> [IUser] { try await session.users([]) }

    public func listUsers(_ backend: Backend) async throws(ClientError) -> [IUser] {
        try await session.users(MPinSession.members(backend))
    }

    public func listBackends() async throws(ClientError) -> [Backend] {
        let json = try await session.request("MPIN_BACKENDS")
        _ = try session.status(json)
        return (json["backends"]?.array ?? []).compactMap(Backend.init)
    }

    // MARK: Registration

    public func startRegistration(
        _ user: IUser,
        activateCode: String = "",
        userData: String = ""
    ) async throws(ClientError) -> MpinStatus {
        try await register("MPIN_START_REGISTRATION", user, activateCode, userData)
    }

    public func restartRegistration(
        _ user: IUser,
        activateCode: String = "",
        userData: String = ""
    ) async throws(ClientError) -> MpinStatus {
        try await register("MPIN_RESTART_REGISTRATION", user, activateCode, userData)
    }

    private func register(
        _ command: String,
        _ user: IUser,
        _ activateCode: String,
        _ userData: String
    ) async throws(ClientError) -> MpinStatus {
        let options = [
            JSON.Member("activateCode", .string(activateCode)), JSON.Member("userData", .string(userData)),
        ]
        return try session.status(await session.run(command, MPinSession.members(user) + options))
    }

    public func confirmRegistration(
        _ user: IUser,
        pushNotificationIdentifier: String = ""
    ) async throws(ClientError) -> MpinStatus {
        let push = JSON.Member("pushNotificationIdentifier", .string(pushNotificationIdentifier))
        return try session.status(await session.run("MPIN_CONFIRM_REGISTRATION", MPinSession.members(user) + [push]))
    }

    /// Ends a registration with the PIN that the user has chosen.
    public func finishRegistration(_ user: IUser, pin: consuming Secret) async throws(ClientError) -> MpinStatus {
        try session.status(
            await session.run("MPIN_FINISH_REGISTRATION", MPinSession.members(user), pin: SecretBox(pin))
        )
    }

    // MARK: Login

    public func startAuthentication(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try session.status(await session.run("MPIN_START_AUTHENTICATION", MPinSession.members(user)))
    }

    public func checkAccessNumber(_ accessNumber: String) async throws(ClientError) -> MpinStatus {
        try await session.ask("MPIN_CHECK_ACCESS_NUMBER", [.init("accessNumber", .string(accessNumber))])
    }

    /// Logs a user in. `authResultData` is what the service says; empty unless the status is OK.
    public func finishAuthentication(
        _ user: IUser,
        pin: consuming Secret
    ) async throws(ClientError) -> (status: MpinStatus, authResultData: String) {
        let json = try await finish(user, [], SecretBox(pin))
        return (try session.status(json), json["authResultData"]?.string ?? "")
    }

    public func finishAuthenticationOTP(_ user: IUser, pin: consuming Secret) async throws(ClientError) -> OTP {
        let json = try await finish(user, [.init("mode", .string("OTP"))], SecretBox(pin))
        return OTP(try session.status(json), json["otp"])
    }

    /// Logs in the browser that shows the access number.
    public func finishAuthenticationAN(
        _ user: IUser,
        pin: consuming Secret,
        accessNumber: String
    ) async throws(ClientError) -> MpinStatus {
        let members = [JSON.Member("mode", .string("AN")), .init("accessNumber", .string(accessNumber))]
        return try session.status(await finish(user, members, SecretBox(pin)))
    }

    private func finish(_ user: IUser, _ members: [JSON.Member], _ pin: SecretBox) async throws(ClientError) -> JSON {
        let json = try await session.run("MPIN_FINISH_AUTHENTICATION", MPinSession.members(user) + members, pin: pin)
        if json["canLogout"]?.bool == true { logouts.insert(Self.key(user)) } else { logouts.remove(Self.key(user)) }
        return json
    }

    /// Whether the last login of the user was that of a browser, which can be ended.
    public func canLogout(_ user: IUser) -> Bool { logouts.contains(Self.key(user)) }

    /// Ends the session of the browser.
    public func logout(_ user: IUser) async throws(ClientError) -> Bool {
        let isOut = try session.status(await session.run("MPIN_LOGOUT", MPinSession.members(user))).isOK
        if isOut { logouts.remove(Self.key(user)) }
        return isOut
    }

    private static func key(_ user: IUser) -> String { "\(user.backend.url)\n\(user.identity)" }
}
