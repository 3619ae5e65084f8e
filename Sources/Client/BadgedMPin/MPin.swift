// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Secrets
import Synchronization
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
    private let connection: DaemonConnection
    private var logouts: Set<String> = []

    public init(_ connection: DaemonConnection) { self.connection = connection }

    // MARK: The SDK

    /// Begins to use M-Pin. The headers are sent with every request to a server.
    public func initSDK(headers: [String: String] = [:]) async throws(ClientError) -> MpinStatus {
        try await ask("MPIN_INIT", [.init("headers", Self.object(headers))])
    }

    /// Forgets backend, headers and trusted domains. The users stay.
    public func destroy() async throws(ClientError) -> MpinStatus {
        logouts = []
        return try await ask("MPIN_DESTROY")
    }

    public func addCustomHeaders(_ headers: [String: String]) async throws(ClientError) -> MpinStatus {
        try await ask("MPIN_SET_HEADERS", [.init("add", Self.object(headers))])
    }

    public func clearCustomHeaders() async throws(ClientError) -> MpinStatus {
        try await ask("MPIN_SET_HEADERS", [.init("clear", .bool(true))])
    }

    /// Trusts a domain and all names below it. All other hosts are then refused.
    public func addTrustedDomain(_ domain: String) async throws(ClientError) -> MpinStatus {
        try await ask("MPIN_TRUSTED_DOMAINS", [.init("add", .array([.string(domain)]))])
    }

    public func clearTrustedDomains() async throws(ClientError) -> MpinStatus {
        try await ask("MPIN_TRUSTED_DOMAINS", [.init("clear", .bool(true))])
    }

    // MARK: Backends

    public func testBackend(_ url: String, rpsPrefix: String = "rps") async throws(ClientError) -> MpinStatus {
        try status(
            await run("MPIN_TEST_BACKEND", [.init("url", .string(url)), .init("rpsPrefix", .string(rpsPrefix))])
        )
    }

    public func setBackend(_ url: String, rpsPrefix: String = "rps") async throws(ClientError) -> MpinStatus {
        try status(await run("MPIN_SET_BACKEND", [.init("url", .string(url)), .init("rpsPrefix", .string(rpsPrefix))]))
    }

    /// Returns a member of the settings of the backend as text; empty if there is none.
    public func getClientParam(_ key: String) async throws(ClientError) -> String {
        let result = try await connection.request("MPIN_CLIENT_PARAM", [.init("key", .string(key))])
        _ = try status(result.json)
        return result.json["value"]?.string ?? ""
    }

    // MARK: Users

    /// Makes a user of the present backend; nil unless the status is OK.
    public func makeNewUser(
        _ identity: String,
        deviceName: String = ""
    ) async throws(ClientError) -> (status: MpinStatus, user: IUser?) {
        let members = [JSON.Member("userId", .string(identity)), .init("deviceName", .string(deviceName))]
        let json = try await connection.request("MPIN_MAKE_USER", members).json
        return (try status(json), json["user"].flatMap(IUser.init))
    }

    /// Whether the present backend, or any other one, has a user of this name.
    public func isUserExisting(_ identity: String) async throws(ClientError) -> Bool {
        try await !users([.init("userId", .string(identity))]).isEmpty
    }

    public func deleteUser(_ user: IUser) async throws(ClientError) -> MpinStatus {
        logouts.remove(Self.key(user))
        return try await ask("MPIN_DELETE_USER", Self.members(user) + Self.members(user.backend))
    }

    /// All users of the own user of the system.
    public func listUsers() async throws(ClientError) -> [IUser] { try await users([]) }

    public func listUsers(_ backend: Backend) async throws(ClientError) -> [IUser] {
        try await users(Self.members(backend))
    }

    public func listBackends() async throws(ClientError) -> [Backend] {
        let json = try await connection.request("MPIN_BACKENDS").json
        _ = try status(json)
        return (json["backends"]?.array ?? []).compactMap(Backend.init)
    }

    private func users(_ members: [JSON.Member]) async throws(ClientError) -> [IUser] {
        let json = try await connection.request("MPIN_USERS", members).json
        _ = try status(json)
        return (json["users"]?.array ?? []).compactMap(IUser.init)
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
        return try status(await run(command, Self.members(user) + options))
    }

    public func confirmRegistration(
        _ user: IUser,
        pushNotificationIdentifier: String = ""
    ) async throws(ClientError) -> MpinStatus {
        let push = JSON.Member("pushNotificationIdentifier", .string(pushNotificationIdentifier))
        return try status(await run("MPIN_CONFIRM_REGISTRATION", Self.members(user) + [push]))
    }

    /// Ends a registration with the PIN that the user has chosen.
    public func finishRegistration(_ user: IUser, pin: consuming Secret) async throws(ClientError) -> MpinStatus {
        try status(await run("MPIN_FINISH_REGISTRATION", Self.members(user), pin: SecretBox(pin)))
    }

    // MARK: Login

    public func startAuthentication(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try status(await run("MPIN_START_AUTHENTICATION", Self.members(user)))
    }

    public func checkAccessNumber(_ accessNumber: String) async throws(ClientError) -> MpinStatus {
        try await ask("MPIN_CHECK_ACCESS_NUMBER", [.init("accessNumber", .string(accessNumber))])
    }

    /// Logs a user in. `authResultData` is what the service says; empty unless the status is OK.
    public func finishAuthentication(
        _ user: IUser,
        pin: consuming Secret
    ) async throws(ClientError) -> (status: MpinStatus, authResultData: String) {
        let json = try await finish(user, [], SecretBox(pin))
        return (try status(json), json["authResultData"]?.string ?? "")
    }

    public func finishAuthenticationOTP(_ user: IUser, pin: consuming Secret) async throws(ClientError) -> OTP {
        let json = try await finish(user, [.init("mode", .string("OTP"))], SecretBox(pin))
        let (status, code) = (try status(json), json["otp"])
        return OTP(
            status: status,
            otp: code?["otp"]?.string ?? "",
            expireTime: code?["expireTime"]?.int ?? 0,
            ttlSeconds: code?["ttlSeconds"]?.int ?? 0,
            nowTime: code?["nowTime"]?.int ?? 0
        )
    }

    /// Logs in the browser that shows the access number.
    public func finishAuthenticationAN(
        _ user: IUser,
        pin: consuming Secret,
        accessNumber: String
    ) async throws(ClientError) -> MpinStatus {
        let members = [JSON.Member("mode", .string("AN")), .init("accessNumber", .string(accessNumber))]
        return try status(await finish(user, members, SecretBox(pin)))
    }

    private func finish(_ user: IUser, _ members: [JSON.Member], _ pin: SecretBox) async throws(ClientError) -> JSON {
        let json = try await run("MPIN_FINISH_AUTHENTICATION", Self.members(user) + members, pin: pin)
        if json["canLogout"]?.bool == true { logouts.insert(Self.key(user)) } else { logouts.remove(Self.key(user)) }
        return json
    }

    /// Whether the last login of the user was that of a browser, which can be ended.
    public func canLogout(_ user: IUser) -> Bool { logouts.contains(Self.key(user)) }

    /// Ends the session of the browser.
    public func logout(_ user: IUser) async throws(ClientError) -> Bool {
        let isOut = try status(await run("MPIN_LOGOUT", Self.members(user))).isOK
        if isOut { logouts.remove(Self.key(user)) }
        return isOut
    }

    // MARK: Commands

    /// A call that runs.
    private final class Call: Sendable {
        let isCancelled = Mutex(false)
    }

    private static func key(_ user: IUser) -> String { "\(user.backend.url)\n\(user.identity)" }

    private static func members(_ user: IUser) -> [JSON.Member] { [.init("userId", .string(user.identity))] }

    private static func members(_ backend: Backend) -> [JSON.Member] {
        [.init("url", .string(backend.url)), .init("rpsPrefix", .string(backend.rpsPrefix))]
    }

    private static func object(_ texts: [String: String]) -> JSON {
        .object(texts.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })
    }

    private func status(_ json: JSON) throws(ClientError) -> MpinStatus {
        guard let status = MpinStatus(json) else { throw .malformed("MPIN_RESULT without a usable status") }
        return status
    }

    private func ask(_ command: String, _ members: [JSON.Member] = []) async throws(ClientError) -> MpinStatus {
        let event = try await connection.request(command, members)
        if let refusal = event.message.refusal { throw refusal }
        return try status(event.json)
    }

    /// Runs a workflow and answers its question for the PIN once.
    private func run(
        _ command: String,
        _ members: [JSON.Member],
        pin: SecretBox? = nil
    ) async throws(ClientError) -> JSON {
        let (connection, call) = (connection, Call())
        // A task of its own: it reads the result even if the calling task is cancelled.
        let task = Task { () -> Result<JSON, ClientError> in
            do throws(ClientError) {
                return .success(try await Self.dialogue(connection, command, members, pin, call))
            } catch {
                return .failure(error)
            }
        }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            call.isCancelled.withLock { $0 = true }
            Task { _ = try? await connection.cancel() }
        }
        return try result.get()
    }

    private static func dialogue(
        _ connection: DaemonConnection,
        _ command: String,
        _ members: [JSON.Member],
        _ pin: SecretBox?,
        _ call: Call
    ) async throws(ClientError) -> JSON {
        let id = try await connection.send(command, members)
        for await event in connection.events {
            switch event.name {
            case "MPIN_RESULT": return event.json
            // A CANCEL that was sent before the start has cancelled nothing.
            case "MPIN_STARTED": if call.isCancelled.withLock({ $0 }) { _ = try await connection.cancel() }
            case "ENTER_PIN", "ENTER_NEW_PIN":
                let question = event.json["question"].map { [JSON.Member("question", $0)] } ?? []
                guard let secret = pin?.take() else {
                    _ = try await connection.cancel()
                    continue
                }
                let answer = event.name == "ENTER_PIN" ? "SET_PIN" : "SET_NEW_PIN"
                _ = try await connection.send(answer, question, value: secret)
            default:
                if event.answers(id), let refusal = event.message.refusal { throw refusal }
            }
        }
        throw connection.ending ?? .closed
    }
}
