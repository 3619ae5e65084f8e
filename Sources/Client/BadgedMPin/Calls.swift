// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Text

/// Every call of `MPin` and `MPinMFA`. The blocking method and the `async` method of a name run the same one.
enum Calls {
    // MARK: The SDK

    static func initSDK(_ flavour: String, _ headers: [String: String]) -> MPinCall<MpinStatus> {
        .request("MPIN_INIT", nil, ["flavour": .string(flavour), "headers": object(headers)])
    }

    static func destroy(_ logouts: Logouts) -> MPinCall<MpinStatus> {
        .request("MPIN_DESTROY") { status, _ in
            if status.isOK { logouts.clear() }
            return status
        }
    }

    static func addCustomHeaders(_ headers: [String: String]) -> MPinCall<MpinStatus> {
        .request("MPIN_SET_HEADERS", nil, ["add": object(headers)])
    }

    static let clearCustomHeaders = MPinCall.request("MPIN_SET_HEADERS", nil, ["clear": .bool(true)])

    static func addTrustedDomain(_ domain: String) -> MPinCall<MpinStatus> {
        .request("MPIN_TRUSTED_DOMAINS", nil, ["add": .array([.string(domain)])])
    }

    static let clearTrustedDomains = MPinCall.request("MPIN_TRUSTED_DOMAINS", nil, ["clear": .bool(true)])

    static func setClientId(_ clientId: String) -> MPinCall<MpinStatus> {
        .request("MPIN_SET_CLIENT_ID", nil, ["clientId": .string(clientId)])
    }

    // MARK: Backends

    static func testBackend(_ backend: Backend) -> MPinCall<MpinStatus> {
        .workflow("MPIN_TEST_BACKEND", nil, ["url": .string(backend.url), "rpsPrefix": .string(backend.rpsPrefix)])
    }

    static func setBackend(_ backend: Backend) -> MPinCall<MpinStatus> {
        .workflow("MPIN_SET_BACKEND", nil, ["url": .string(backend.url), "rpsPrefix": .string(backend.rpsPrefix)])
    }

    static func getClientParam(_ key: String) -> MPinCall<String> {
        .request("MPIN_CLIENT_PARAM", nil, ["key": .string(key)]) { status, json throws(ClientError) in
            try status.check()
            return json["value"]?.string ?? ""
        }
    }

    static let listBackends: MPinCall<[Backend]> = .request("MPIN_BACKENDS") { status, json throws(ClientError) in
        try status.check()
        return (json["backends"]?.array ?? []).compactMap(Backend.init)
    }

    // MARK: Users

    static func makeNewUser(
        _ identity: String,
        _ deviceName: String
    ) -> MPinCall<(status: MpinStatus, user: IUser?)> {
        .request("MPIN_MAKE_USER", nil, ["userId": .string(identity), "deviceName": .string(deviceName)]) {
            ($0, $1["user"].flatMap(IUser.init))
        }
    }

    static let listUsers: MPinCall<[IUser]> = .request("MPIN_USERS", nil, [:], read: users)

    static func listUsers(_ backend: Backend) -> MPinCall<[IUser]> {
        let members: KeyValuePairs<String, JSON> = [
            "url": .string(backend.url), "rpsPrefix": .string(backend.rpsPrefix),
        ]
        return .request("MPIN_USERS", nil, members, read: users)
    }

    /// `customerId` is nil for `MPin`.
    static func isUserExisting(_ identity: String, _ customerId: String?) -> MPinCall<Bool> {
        .request("MPIN_USERS", nil, ["userId": .string(identity)]) { status, json throws(ClientError) in
            try users(status, json).contains { customerId == nil || $0.customerId == customerId }
        }
    }

    static func deleteUser(_ user: IUser, _ logouts: Logouts) -> MPinCall<MpinStatus> {
        let members: KeyValuePairs<String, JSON> = [
            "url": .string(user.backend.url), "rpsPrefix": .string(user.backend.rpsPrefix),
            "customerId": .string(user.customerId),
        ]
        return .request("MPIN_DELETE_USER", user, members) { status, _ in
            if status.isOK { logouts.set(false, user) }
            return status
        }
    }

    // MARK: Registration

    static func startRegistration(_ user: IUser, _ options: RegistrationOptions) -> MPinCall<MpinStatus> {
        .workflow("MPIN_START_REGISTRATION", user, options.members)
    }

    static func restartRegistration(_ user: IUser, _ options: RegistrationOptions) -> MPinCall<MpinStatus> {
        .workflow("MPIN_RESTART_REGISTRATION", user, options.members)
    }

    static func confirmRegistration(_ user: IUser, _ pushNotificationIdentifier: String) -> MPinCall<MpinStatus> {
        .workflow(
            "MPIN_CONFIRM_REGISTRATION",
            user,
            ["pushNotificationIdentifier": .string(pushNotificationIdentifier)]
        )
    }

    static func finishRegistration(
        _ user: IUser,
        _ factors: Factors,
        card: Bool,
        _ reader: String
    ) -> MPinCall<MpinStatus> {
        let members: KeyValuePairs<String, JSON> = [
            "pin1": factors.hasSecond, "card": .bool(card), "reader": .string(reader),
        ]
        return .workflow("MPIN_FINISH_REGISTRATION", user, members, factors)
    }

    // MARK: Login

    /// `accessCode` is that of MPinMFA; empty for `MPin`.
    static func startAuthentication(_ user: IUser, _ accessCode: String = "") -> MPinCall<MpinStatus> {
        .workflow("MPIN_START_AUTHENTICATION", user, ["accessCode": .string(accessCode)])
    }

    static func checkAccessNumber(_ accessNumber: String) -> MPinCall<MpinStatus> {
        .request("MPIN_CHECK_ACCESS_NUMBER", nil, ["accessNumber": .string(accessNumber)])
    }

    static func finishAuthentication(
        _ user: IUser,
        _ factors: Factors,
        _ logouts: Logouts
    ) -> MPinCall<(status: MpinStatus, authResultData: String)> {
        .workflow("MPIN_FINISH_AUTHENTICATION", user, [:], factors) { status, json in
            logouts.note(status, json, user)
            return (status, json["authResultData"]?.string ?? "")
        }
    }

    static func finishAuthenticationAN(
        _ user: IUser,
        _ factors: Factors,
        _ accessNumber: String,
        _ logouts: Logouts
    ) -> MPinCall<MpinStatus> {
        let members: KeyValuePairs<String, JSON> = ["mode": .string("AN"), "accessNumber": .string(accessNumber)]
        return .workflow("MPIN_FINISH_AUTHENTICATION", user, members, factors) { status, json in
            logouts.note(status, json, user)
            return status
        }
    }

    static func finishAuthentication(
        _ user: IUser,
        _ factors: Factors,
        accessCode: String
    ) -> MPinCall<(status: MpinStatus, authzCode: String)> {
        let members: KeyValuePairs<String, JSON> = ["accessCode": .string(accessCode), "pin1": factors.hasSecond]
        return .workflow("MPIN_FINISH_AUTHENTICATION", user, members, factors) { status, json in
            (status, json["authzCode"]?.string ?? "")
        }
    }

    static func finishAuthenticationOTP(
        _ user: IUser,
        _ factors: Factors,
        _ logouts: Logouts
    ) -> MPinCall<OTP> {
        let members: KeyValuePairs<String, JSON> = ["mode": .string("OTP"), "pin1": factors.hasSecond]
        return .workflow("MPIN_FINISH_AUTHENTICATION", user, members, factors) { status, json in
            logouts.note(status, json, user)
            return OTP(status, json["otp"])
        }
    }

    static func finishAuthenticationRegCode(_ user: IUser, _ factors: Factors) -> MPinCall<RegCode> {
        let members: KeyValuePairs<String, JSON> = ["mode": .string("REGCODE"), "pin1": factors.hasSecond]
        return .workflow("MPIN_FINISH_AUTHENTICATION", user, members, factors) { status, json in
            RegCode(OTP(status, json["otp"]))
        }
    }

    static func logout(_ user: IUser, _ logouts: Logouts) -> MPinCall<Bool> {
        .workflow("MPIN_LOGOUT", user) { status, _ throws(ClientError) in
            // As in the SDK: there is no session to end.
            if status.status == .flowError, !logouts.contains(user) { return false }
            try status.check()
            logouts.set(false, user)
            return true
        }
    }

    // MARK: Sessions

    static func getServiceDetails(_ url: String) -> MPinCall<(status: MpinStatus, details: ServiceDetails?)> {
        .workflow("MPIN_SERVICE_DETAILS", nil, ["url": .string(url)]) {
            ($0, $1["serviceDetails"].map(ServiceDetails.init))
        }
    }

    static func getSessionDetails(_ accessCode: String) -> MPinCall<(status: MpinStatus, details: SessionDetails?)> {
        .workflow("MPIN_SESSION_DETAILS", nil, ["accessCode": .string(accessCode)]) {
            ($0, $1["sessionDetails"].map(SessionDetails.init))
        }
    }

    static func abortSession(_ accessCode: String) -> MPinCall<MpinStatus> {
        .workflow("MPIN_ABORT_SESSION", nil, ["accessCode": .string(accessCode)])
    }

    static func getAccessCode(_ authzUrl: String) -> MPinCall<(status: MpinStatus, accessCode: String)> {
        .workflow("MPIN_ACCESS_CODE", nil, ["url": .string(authzUrl)]) { ($0, $1["accessCode"]?.string ?? "") }
    }

    // MARK: Documents

    static func startRegistrationDVS(_ user: IUser, _ token: String) -> MPinCall<MpinStatus> {
        .workflow("MPIN_START_DVS", user, ["token": .string(token)])
    }

    static func finishRegistrationDVS(_ user: IUser, _ factors: Factors) -> MPinCall<MpinStatus> {
        .workflow("MPIN_FINISH_DVS", user, ["nfc": factors.hasSecond], factors)
    }

    static func verifyDocument(_ strDoc: String, _ hash: [UInt8]) -> MPinCall<Bool> {
        let members: KeyValuePairs<String, JSON> = ["document": .string(strDoc), "hash": .string(Hex.encode(hash))]
        return .request("MPIN_VERIFY_DOCUMENT", nil, members) { status, json throws(ClientError) in
            try status.check()
            return json["verified"]?.bool ?? false
        }
    }

    static func sign(
        _ user: IUser,
        _ documentHash: [UInt8],
        _ factors: Factors,
        _ epochTime: UInt32,
        _ authZToken: String
    ) -> MPinCall<(status: MpinStatus, signature: BridgeSignature?)> {
        let members: KeyValuePairs<String, JSON> = [
            "documentHash": .string(Hex.encode(documentHash)), "epochTime": .number("\(epochTime)"),
            "authZToken": .string(authZToken), "pin1": factors.hasSecond,
        ]
        return .workflow("MPIN_SIGN", user, members, factors) { ($0, $1["signature"].flatMap(BridgeSignature.init)) }
    }

    // MARK: Members

    private static func object(_ texts: [String: String]) -> JSON {
        .object(texts.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })
    }

    private static func users(_ status: MpinStatus, _ json: JSON) throws(ClientError) -> [IUser] {
        try status.check()
        return (json["users"]?.array ?? []).compactMap(IUser.init)
    }
}

/// What a registration begins with. Empty texts have no effect.
struct RegistrationOptions: Sendable {
    var activateCode = ""
    var userData = ""
    /// Of MPinMFA.
    var accessCode = ""
    var pmi = ""

    var members: KeyValuePairs<String, JSON> {
        [
            "activateCode": .string(activateCode), "userData": .string(userData), "accessCode": .string(accessCode),
            "pushNotificationIdentifier": .string(pmi),
        ]
    }
}
