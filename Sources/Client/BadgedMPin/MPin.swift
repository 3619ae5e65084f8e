// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Text

/// Logs users in with M-Pin. The methods are those of the class `MPin` of the Milagro Mobile SDK.
///
/// ```swift
/// let mpin = try await MPin()
/// _ = try await mpin.initSDK()
/// _ = try await mpin.setBackend("https://login.example.org")
/// let user = try await mpin.makeNewUser("alice@example.org").user
/// ```
///
/// Each call exists as an `async` method and as one that blocks the calling thread: see `MPinSDK`. The blocking ones
/// are not for threads of Swift's cooperative pool.
public final class MPin: MPinSDK {
    public static let flavour = "MPIN"
    public static let usualPrefix = "rps"

    public let session: MPinSession

    /// Uses a connection, which must run no other workflow meanwhile.
    ///
    /// - Parameters:
    ///   - connection: to badged.
    ///   - cardUser: answers questions about the card under which a token is kept. Without one, calls for such a token end
    ///     with `pinInputCanceled`.
    public init(_ connection: DaemonConnection, cardUser: (any CardUser)? = nil) {
        session = MPinSession(connection, cardUser)
    }

    // MARK: The SDK

    /// Returns a member of the settings of the backend as text; empty if there is none.
    public func getClientParam(_ key: String) async throws(ClientError) -> String {
        try await session.run(Calls.getClientParam(key))
    }

    // MARK: Users

    /// Whether the present backend has a user of this name.
    public func isUserExisting(_ identity: String) async throws(ClientError) -> Bool {
        try await session.run(Calls.isUserExisting(identity, nil))
    }

    public func listUsers(_ backend: Backend) async throws(ClientError) -> [IUser] {
        try await session.run(Calls.listUsers(backend))
    }

    public func listBackends() async throws(ClientError) -> [Backend] { try await session.run(Calls.listBackends) }

    // MARK: Registration

    public func startRegistration(
        _ user: IUser,
        activateCode: String = "",
        userData: String = ""
    ) async throws(ClientError) -> MpinStatus {
        let options = RegistrationOptions(activateCode: activateCode, userData: userData)
        return try await session.run(Calls.startRegistration(user, options))
    }

    public func restartRegistration(
        _ user: IUser,
        activateCode: String = "",
        userData: String = ""
    ) async throws(ClientError) -> MpinStatus {
        let options = RegistrationOptions(activateCode: activateCode, userData: userData)
        return try await session.run(Calls.restartRegistration(user, options))
    }

    public func confirmRegistration(
        _ user: IUser,
        pushNotificationIdentifier: String = ""
    ) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.confirmRegistration(user, pushNotificationIdentifier))
    }

    /// Ends a registration with the PIN that the user has chosen. With `card` the token is kept under the Keycard in
    /// this reader, or in any one. Every login needs this card and its PIN, too.
    public func finishRegistration(
        _ user: IUser,
        pin: consuming Secret,
        card: Bool = false,
        reader: String = ""
    ) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.finishRegistration(user, Factors(pin), card: card, reader))
    }

    // MARK: Login

    public func startAuthentication(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.startAuthentication(user))
    }

    public func checkAccessNumber(_ accessNumber: String) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.checkAccessNumber(accessNumber))
    }

    /// Logs a user in. `authResultData` is what the service says; empty unless the status is OK.
    public func finishAuthentication(
        _ user: IUser,
        pin: consuming Secret
    ) async throws(ClientError) -> (status: MpinStatus, authResultData: String) {
        try await session.run(Calls.finishAuthentication(user, Factors(pin), session.logouts))
    }

    public func finishAuthenticationOTP(_ user: IUser, pin: consuming Secret) async throws(ClientError) -> OTP {
        try await session.run(Calls.finishAuthenticationOTP(user, Factors(pin), session.logouts))
    }

    /// Logs in the browser that shows the access number.
    public func finishAuthenticationAN(
        _ user: IUser,
        pin: consuming Secret,
        accessNumber: String
    ) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.finishAuthenticationAN(user, Factors(pin), accessNumber, session.logouts))
    }

    /// Whether the last login of the user was that of a browser, which can be ended.
    public func canLogout(_ user: IUser) -> Bool { session.logouts.contains(user) }

    /// Ends the session of the browser. Returns false if there is none; a failure is thrown with its status.
    @discardableResult
    public func logout(_ user: IUser) async throws(ClientError) -> Bool {
        try await session.run(Calls.logout(user, session.logouts))
    }
}
