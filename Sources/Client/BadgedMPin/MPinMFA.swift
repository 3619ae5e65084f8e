// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Text

/// Logs users in at the service of MIRACL, and signs documents. The methods are those of the class `MPinMFA` of the
/// Milagro Mobile SDK.
///
/// `pin0` is the PIN of four digits. `pin1` and `nfc` are a second factor of 1 to 64 ASCII characters.
///
/// Each call exists as an `async` method and as one that blocks the calling thread: see `MPinSDK`. The blocking ones
/// are not for threads of Swift's cooperative pool.
public final class MPinMFA: MPinSDK {
    public static let flavour = "MFA"
    public static let usualPrefix = "rps/v2"

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

    /// Sets the customer of the service for the following calls.
    public func setClientId(_ clientId: String) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.setClientId(clientId))
    }

    // MARK: Users

    /// Whether a customer has a user of this name at the present backend. `appId` has no meaning, as in the SDK.
    public func isUserExisting(
        _ identity: String,
        customerId: String,
        appId: String = ""
    ) async throws(ClientError) -> Bool {
        try await session.run(Calls.isUserExisting(identity, customerId))
    }

    // MARK: Sessions

    /// Asks a page which login service it belongs to; nil unless the status is OK.
    public func getServiceDetails(
        _ url: String
    ) async throws(ClientError) -> (status: MpinStatus, details: ServiceDetails?) {
        try await session.run(Calls.getServiceDetails(url))
    }

    /// Reports that the access code was taken, and asks about its session; nil unless the status is OK.
    public func getSessionDetails(
        _ accessCode: String
    ) async throws(ClientError) -> (status: MpinStatus, details: SessionDetails?) {
        try await session.run(Calls.getSessionDetails(accessCode))
    }

    public func abortSession(_ accessCode: String) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.abortSession(accessCode))
    }

    /// Opens a session for the app itself; the code is empty unless the status is OK.
    public func getAccessCode(
        _ authzUrl: String
    ) async throws(ClientError) -> (status: MpinStatus, accessCode: String) {
        try await session.run(Calls.getAccessCode(authzUrl))
    }

    // MARK: Registration

    /// Begins a registration. `pmi` is an identifier for push messages.
    public func startRegistration(
        _ user: IUser,
        accessCode: String = "",
        regCode: String = "",
        pmi: String = ""
    ) async throws(ClientError) -> MpinStatus {
        let options = RegistrationOptions(activateCode: regCode, accessCode: accessCode, pmi: pmi)
        return try await session.run(Calls.startRegistration(user, options))
    }

    public func restartRegistration(
        _ user: IUser,
        accessCode: String = "",
        regCode: String = ""
    ) async throws(ClientError) -> MpinStatus {
        let options = RegistrationOptions(activateCode: regCode, accessCode: accessCode)
        return try await session.run(Calls.restartRegistration(user, options))
    }

    public func confirmRegistration(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.confirmRegistration(user, ""))
    }

    /// Ends a registration with the factors that the user has chosen. With `card` the token is kept under the Keycard
    /// in this reader, or in any one. Every login needs this card and its PIN, too.
    public func finishRegistration(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil,
        card: Bool = false,
        reader: String = ""
    ) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.finishRegistration(user, Factors(pin0, pin1), card: card, reader))
    }

    // MARK: Login

    public func startAuthentication(_ user: IUser, accessCode: String = "") async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.startAuthentication(user, accessCode))
    }

    public func startAuthenticationOTP(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.startAuthentication(user))
    }

    public func startAuthenticationRegCode(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.startAuthentication(user))
    }

    /// Logs a user in. `authzCode` is for the back end of the app; empty if the service sent none.
    public func finishAuthentication(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil,
        accessCode: String = ""
    ) async throws(ClientError) -> (status: MpinStatus, authzCode: String) {
        try await session.run(Calls.finishAuthentication(user, Factors(pin0, pin1), accessCode: accessCode))
    }

    public func finishAuthenticationOTP(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil
    ) async throws(ClientError) -> OTP {
        try await session.run(Calls.finishAuthenticationOTP(user, Factors(pin0, pin1), session.logouts))
    }

    public func finishAuthenticationRegCode(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil
    ) async throws(ClientError) -> RegCode {
        try await session.run(Calls.finishAuthenticationRegCode(user, Factors(pin0, pin1)))
    }

    // MARK: Documents

    /// Begins the registration for signing. The back end of the app has the token from the service.
    public func startRegistrationDVS(_ user: IUser, token: String) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.startRegistrationDVS(user, token))
    }

    /// Ends the registration for signing with a PIN that may differ from the one for logins. The card of a user who has
    /// one keeps this token, too.
    public func finishRegistrationDVS(
        _ user: IUser,
        pinDVS: consuming Secret,
        nfc: consuming Secret? = nil
    ) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.finishRegistrationDVS(user, Factors(pinDVS, nfc)))
    }

    /// Whether `hash` is the hash of the document.
    public func verifyDocument(_ strDoc: String, hash: [UInt8]) async throws(ClientError) -> Bool {
        try await session.run(Calls.verifyDocument(strDoc, hash))
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
        try await session.run(Calls.sign(user, documentHash, Factors(pin0, pin1), epochTime, authZToken))
    }
}
