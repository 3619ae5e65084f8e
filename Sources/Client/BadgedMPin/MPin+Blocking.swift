// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Text

/// The calls that block the calling thread until badged has answered, as those of the original SDK do. The `async`
/// methods of the same names describe them.
extension MPin {
    // MARK: The SDK

    @available(*, noasync)
    public func getClientParam(_ key: String) throws(ClientError) -> String {
        try session.wait(Calls.getClientParam(key))
    }

    // MARK: Users

    @available(*, noasync)
    public func isUserExisting(_ identity: String) throws(ClientError) -> Bool {
        try session.wait(Calls.isUserExisting(identity, nil))
    }

    @available(*, noasync)
    public func listUsers(_ backend: Backend) throws(ClientError) -> [IUser] {
        try session.wait(Calls.listUsers(backend))
    }

    @available(*, noasync)
    public func listBackends() throws(ClientError) -> [Backend] { try session.wait(Calls.listBackends) }

    // MARK: Registration

    @available(*, noasync)
    public func startRegistration(
        _ user: IUser,
        activateCode: String = "",
        userData: String = ""
    ) throws(ClientError) -> MpinStatus {
        let options = RegistrationOptions(activateCode: activateCode, userData: userData)
        return try session.wait(Calls.startRegistration(user, options))
    }

    @available(*, noasync)
    public func restartRegistration(
        _ user: IUser,
        activateCode: String = "",
        userData: String = ""
    ) throws(ClientError) -> MpinStatus {
        let options = RegistrationOptions(activateCode: activateCode, userData: userData)
        return try session.wait(Calls.restartRegistration(user, options))
    }

    @available(*, noasync)
    public func confirmRegistration(
        _ user: IUser,
        pushNotificationIdentifier: String = ""
    ) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.confirmRegistration(user, pushNotificationIdentifier))
    }

    @available(*, noasync)
    public func finishRegistration(
        _ user: IUser,
        pin: consuming Secret,
        card: Bool = false,
        reader: String = ""
    ) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.finishRegistration(user, Factors(pin), card: card, reader))
    }

    // MARK: Login

    @available(*, noasync)
    public func startAuthentication(_ user: IUser) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.startAuthentication(user))
    }

    @available(*, noasync)
    public func checkAccessNumber(_ accessNumber: String) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.checkAccessNumber(accessNumber))
    }

    @available(*, noasync)
    public func finishAuthentication(
        _ user: IUser,
        pin: consuming Secret
    ) throws(ClientError) -> (status: MpinStatus, authResultData: String) {
        try session.wait(Calls.finishAuthentication(user, Factors(pin), session.logouts))
    }

    @available(*, noasync)
    public func finishAuthenticationOTP(_ user: IUser, pin: consuming Secret) throws(ClientError) -> OTP {
        try session.wait(Calls.finishAuthenticationOTP(user, Factors(pin), session.logouts))
    }

    @available(*, noasync)
    public func finishAuthenticationAN(
        _ user: IUser,
        pin: consuming Secret,
        accessNumber: String
    ) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.finishAuthenticationAN(user, Factors(pin), accessNumber, session.logouts))
    }

    @available(*, noasync)
    @discardableResult
    public func logout(_ user: IUser) throws(ClientError) -> Bool {
        try session.wait(Calls.logout(user, session.logouts))
    }
}
