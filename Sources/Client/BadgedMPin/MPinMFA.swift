// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Secrets
import Text

/// Logs users in at the service of MIRACL, and signs documents. The methods are those of the class `MPinMFA` of the
/// Milagro Mobile SDK.
///
/// A call ends with a status; it throws only if badged cannot be asked. The connection must serve nothing else, because
/// this class reads its events. One call runs at a time. Cancelling the calling task cancels the call.
///
/// `pin0` is the PIN of four digits. `pin1` and `nfc` are a second factor of 1 to 64 ASCII characters.
public actor MPinMFA {
    private let session: MPinSession

    public init(_ connection: DaemonConnection) { session = MPinSession(connection) }

    // MARK: The SDK

    /// Begins to use M-Pin. The headers are sent with every request to a server.
    public func initSDK(headers: [String: String] = [:]) async throws(ClientError) -> MpinStatus {
        let flavour = JSON.Member("flavour", .string("MFA"))
        return try await session.ask("MPIN_INIT", [flavour, .init("headers", MPinSession.object(headers))])
    }

    /// Forgets backend, headers and trusted domains. The users stay.
    public func destroy() async throws(ClientError) -> MpinStatus { try await session.ask("MPIN_DESTROY") }

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

    /// Says for which customer of the service the following calls are.
    public func setClientId(_ clientId: String) async throws(ClientError) -> MpinStatus {
        try await session.ask("MPIN_SET_CLIENT_ID", [.init("clientId", .string(clientId))])
    }

    public func testBackend(_ url: String, rpsPrefix: String = "rps/v2") async throws(ClientError) -> MpinStatus {
        let members = MPinSession.members(Backend(url: url, rpsPrefix: rpsPrefix))
        return try session.status(await session.run("MPIN_TEST_BACKEND", members))
    }

    public func setBackend(_ url: String, rpsPrefix: String = "rps/v2") async throws(ClientError) -> MpinStatus {
        let members = MPinSession.members(Backend(url: url, rpsPrefix: rpsPrefix))
        return try session.status(await session.run("MPIN_SET_BACKEND", members))
    }

    // MARK: Users

    /// Makes a user of the present backend and customer; nil unless the status is OK.
    public func makeNewUser(
        _ identity: String,
        deviceName: String = ""
    ) async throws(ClientError) -> (status: MpinStatus, user: IUser?) {
        let members = [JSON.Member("userId", .string(identity)), .init("deviceName", .string(deviceName))]
        let json = try await session.request("MPIN_MAKE_USER", members)
        return (try session.status(json), json["user"].flatMap(IUser.init))
    }

    /// Whether a customer has a user of this name. `appId` has no meaning, as in the SDK.
    public func isUserExisting(
        _ identity: String,
        customerId: String,
        appId: String = ""
    ) async throws(ClientError) -> Bool {
        try await session.users([.init("userId", .string(identity))]).contains { $0.customerId == customerId }
    }

    public func deleteUser(_ user: IUser) async throws(ClientError) -> MpinStatus {
        let customer = JSON.Member("customerId", .string(user.customerId))
        let members = MPinSession.members(user) + MPinSession.members(user.backend) + [customer]
        return try await session.ask("MPIN_DELETE_USER", members)
    }

    /// All users of the own user of the system, of all customers.
    public func listUsers() async throws(ClientError) -> [IUser] { try await session.users([]) }

    // MARK: Sessions

    /// Asks a page which login service it belongs to; nil unless the status is OK.
    public func getServiceDetails(
        _ url: String
    ) async throws(ClientError) -> (status: MpinStatus, details: ServiceDetails?) {
        let json = try await session.run("MPIN_SERVICE_DETAILS", [.init("url", .string(url))])
        return (try session.status(json), json["serviceDetails"].map(ServiceDetails.init))
    }

    /// Says that the access code was taken, and asks about its session; nil unless the status is OK.
    public func getSessionDetails(
        _ accessCode: String
    ) async throws(ClientError) -> (status: MpinStatus, details: SessionDetails?) {
        let json = try await session.run("MPIN_SESSION_DETAILS", [Self.member(accessCode)])
        return (try session.status(json), json["sessionDetails"].map(SessionDetails.init))
    }

    public func abortSession(_ accessCode: String) async throws(ClientError) -> MpinStatus {
        try session.status(await session.run("MPIN_ABORT_SESSION", [Self.member(accessCode)]))
    }

    /// Opens a session for the app itself; the code is empty unless the status is OK.
    public func getAccessCode(
        _ authzUrl: String
    ) async throws(ClientError) -> (status: MpinStatus, accessCode: String) {
        let json = try await session.run("MPIN_ACCESS_CODE", [.init("url", .string(authzUrl))])
        return (try session.status(json), json["accessCode"]?.string ?? "")
    }

    private static func member(_ accessCode: String) -> JSON.Member { .init("accessCode", .string(accessCode)) }

    // MARK: Registration

    /// Begins a registration. `pmi` is an identifier for push messages.
    public func startRegistration(
        _ user: IUser,
        accessCode: String = "",
        regCode: String = "",
        pmi: String = ""
    ) async throws(ClientError) -> MpinStatus {
        let options = [
            Self.member(accessCode), JSON.Member("activateCode", .string(regCode)),
            JSON.Member("pushNotificationIdentifier", .string(pmi)),
        ]
        return try session.status(
            await session.run("MPIN_START_REGISTRATION", MPinSession.members(user) + options)
        )
    }

    public func restartRegistration(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try session.status(await session.run("MPIN_RESTART_REGISTRATION", MPinSession.members(user)))
    }

    public func confirmRegistration(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try session.status(await session.run("MPIN_CONFIRM_REGISTRATION", MPinSession.members(user)))
    }

    public func finishRegistration(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil
    ) async throws(ClientError) -> MpinStatus {
        let factors = Factors(pin0, pin1)
        return try session.status(await run("MPIN_FINISH_REGISTRATION", user, [], factors))
    }

    // MARK: Login

    public func startAuthentication(_ user: IUser, accessCode: String = "") async throws(ClientError) -> MpinStatus {
        let members = MPinSession.members(user) + [Self.member(accessCode)]
        return try session.status(await session.run("MPIN_START_AUTHENTICATION", members))
    }

    public func startAuthenticationOTP(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try await startAuthentication(user)
    }

    public func startAuthenticationRegCode(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try await startAuthentication(user)
    }

    /// Logs a user in. `authzCode` is for the back end of the app; empty if the service sent none.
    public func finishAuthentication(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil,
        accessCode: String = ""
    ) async throws(ClientError) -> (status: MpinStatus, authzCode: String) {
        let factors = Factors(pin0, pin1)
        let json = try await run("MPIN_FINISH_AUTHENTICATION", user, [Self.member(accessCode)], factors)
        return (try session.status(json), json["authzCode"]?.string ?? "")
    }

    public func finishAuthenticationOTP(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil
    ) async throws(ClientError) -> OTP { try await code(user, "OTP", Factors(pin0, pin1)) }

    public func finishAuthenticationRegCode(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil
    ) async throws(ClientError) -> RegCode { RegCode(try await code(user, "REGCODE", Factors(pin0, pin1))) }

    private func code(_ user: IUser, _ mode: String, _ factors: Factors) async throws(ClientError) -> OTP {
        let json = try await run("MPIN_FINISH_AUTHENTICATION", user, [.init("mode", .string(mode))], factors)
        return OTP(try session.status(json), json["otp"])
    }

    // MARK: Documents

    /// Begins the registration for signing. The back end of the app has the token from the service.
    public func startRegistrationDVS(_ user: IUser, token: String) async throws(ClientError) -> MpinStatus {
        let members = MPinSession.members(user) + [.init("token", .string(token))]
        return try session.status(await session.run("MPIN_START_DVS", members))
    }

    /// Ends the registration for signing with a PIN that may differ from the one for logins.
    public func finishRegistrationDVS(
        _ user: IUser,
        pinDVS: consuming Secret,
        nfc: consuming Secret? = nil
    ) async throws(ClientError) -> MpinStatus {
        let factors = Factors(pinDVS, nfc)
        return try session.status(await run("MPIN_FINISH_DVS", user, [], factors, flag: "nfc"))
    }

    /// Whether `hash` is the hash of the document.
    public func verifyDocument(_ strDoc: String, hash: [UInt8]) async throws(ClientError) -> Bool {
        let members = [JSON.Member("document", .string(strDoc)), .init("hash", .string(Hex.encode(hash)))]
        return try await session.request("MPIN_VERIFY_DOCUMENT", members)["verified"]?.bool ?? false
    }

    /// Signs the hash of a document; nil unless the status is OK.
    public func sign(
        _ user: IUser,
        documentHash: [UInt8],
        pin0: consuming Secret,
        pin1: consuming Secret? = nil,
        epochTime: UInt32,
        authZToken: String = ""
    ) async throws(ClientError) -> (status: MpinStatus, signature: BridgeSignature?) {
        let order = [
            JSON.Member("documentHash", .string(Hex.encode(documentHash))),
            JSON.Member("epochTime", .number("\(epochTime)")), JSON.Member("authZToken", .string(authZToken)),
        ]
        let json = try await run("MPIN_SIGN", user, order, Factors(pin0, pin1))
        return (try session.status(json), json["signature"].flatMap(BridgeSignature.init))
    }

    /// What answers the questions of a workflow.
    private struct Factors: Sendable {
        let pin: SecretBox
        var second: SecretBox?

        init(_ pin: consuming Secret, _ second: consuming Secret?) {
            self.pin = SecretBox(pin)
            if let second { self.second = SecretBox(second) }
        }
    }

    private func run(
        _ command: String,
        _ user: IUser,
        _ members: [JSON.Member],
        _ factors: Factors,
        flag: String = "pin1"
    ) async throws(ClientError) -> JSON {
        let all = MPinSession.members(user) + members + [.init(flag, .bool(factors.second != nil))]
        return try await session.run(command, all, pin: factors.pin, second: factors.second)
    }
}
