// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Text

/// The calls that block the calling thread until badged has answered, as those of the original SDK do. The `async`
/// methods of the same names describe them.
extension MPinMFA {
    // MARK: The SDK

    @available(*, noasync)
    public func setClientId(_ clientId: String) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.setClientId(clientId))
    }

    // MARK: Users

    @available(*, noasync)
    public func isUserExisting(
        _ identity: String,
        customerId: String,
        appId: String = ""
    ) throws(ClientError) -> Bool {
        try session.wait(Calls.isUserExisting(identity, customerId))
    }

    // MARK: Sessions

    @available(*, noasync)
    public func getServiceDetails(
        _ url: String
    ) throws(ClientError) -> (status: MpinStatus, details: ServiceDetails?) {
        try session.wait(Calls.getServiceDetails(url))
    }

    @available(*, noasync)
    public func getSessionDetails(
        _ accessCode: String
    ) throws(ClientError) -> (status: MpinStatus, details: SessionDetails?) {
        try session.wait(Calls.getSessionDetails(accessCode))
    }

    @available(*, noasync)
    public func abortSession(_ accessCode: String) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.abortSession(accessCode))
    }

    @available(*, noasync)
    public func getAccessCode(
        _ authzUrl: String
    ) throws(ClientError) -> (status: MpinStatus, accessCode: String) {
        try session.wait(Calls.getAccessCode(authzUrl))
    }

    // MARK: Registration

    @available(*, noasync)
    public func startRegistration(
        _ user: IUser,
        accessCode: String = "",
        regCode: String = "",
        pmi: String = ""
    ) throws(ClientError) -> MpinStatus {
        let options = RegistrationOptions(activateCode: regCode, accessCode: accessCode, pmi: pmi)
        return try session.wait(Calls.startRegistration(user, options))
    }

    @available(*, noasync)
    public func restartRegistration(
        _ user: IUser,
        accessCode: String = "",
        regCode: String = ""
    ) throws(ClientError) -> MpinStatus {
        let options = RegistrationOptions(activateCode: regCode, accessCode: accessCode)
        return try session.wait(Calls.restartRegistration(user, options))
    }

    @available(*, noasync)
    public func confirmRegistration(_ user: IUser) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.confirmRegistration(user, ""))
    }

    @available(*, noasync)
    public func finishRegistration(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil,
        card: Bool = false,
        reader: String = ""
    ) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.finishRegistration(user, Factors(pin0, pin1), card: card, reader))
    }

    // MARK: Login

    @available(*, noasync)
    public func startAuthentication(_ user: IUser, accessCode: String = "") throws(ClientError) -> MpinStatus {
        try session.wait(Calls.startAuthentication(user, accessCode))
    }

    @available(*, noasync)
    public func startAuthenticationOTP(_ user: IUser) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.startAuthentication(user))
    }

    @available(*, noasync)
    public func startAuthenticationRegCode(_ user: IUser) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.startAuthentication(user))
    }

    @available(*, noasync)
    public func finishAuthentication(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil,
        accessCode: String = ""
    ) throws(ClientError) -> (status: MpinStatus, authzCode: String) {
        try session.wait(Calls.finishAuthentication(user, Factors(pin0, pin1), accessCode: accessCode))
    }

    @available(*, noasync)
    public func finishAuthenticationOTP(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil
    ) throws(ClientError) -> OTP {
        try session.wait(Calls.finishAuthenticationOTP(user, Factors(pin0, pin1), session.logouts))
    }

    @available(*, noasync)
    public func finishAuthenticationRegCode(
        _ user: IUser,
        pin0: consuming Secret,
        pin1: consuming Secret? = nil
    ) throws(ClientError) -> RegCode {
        try session.wait(Calls.finishAuthenticationRegCode(user, Factors(pin0, pin1)))
    }

    // MARK: Documents

    @available(*, noasync)
    public func startRegistrationDVS(_ user: IUser, token: String) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.startRegistrationDVS(user, token))
    }

    @available(*, noasync)
    public func finishRegistrationDVS(
        _ user: IUser,
        pinDVS: consuming Secret,
        nfc: consuming Secret? = nil
    ) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.finishRegistrationDVS(user, Factors(pinDVS, nfc)))
    }

    @available(*, noasync)
    public func verifyDocument(_ strDoc: String, hash: [UInt8]) throws(ClientError) -> Bool {
        try session.wait(Calls.verifyDocument(strDoc, hash))
    }

    @available(*, noasync)
    public func sign(
        _ user: IUser,
        documentHash: [UInt8],
        pin0: consuming Secret,
        pin1: consuming Secret? = nil,
        epochTime: UInt32,
        authZToken: String = ""
    ) throws(ClientError) -> (status: MpinStatus, signature: BridgeSignature?) {
        try session.wait(Calls.sign(user, documentHash, Factors(pin0, pin1), epochTime, authZToken))
    }
}
