// SPDX-License-Identifier: GPL-3.0-or-later
import MPin
import Server
import Text

/// The answer to a command, and the final message of a workflow.
struct MPinResultMessage: Message {
    static let name: StaticString = "MPIN_RESULT"
    /// What a call returns beside its status.
    enum Content: Sendable {
        case none
        case user(StoredUser)
        case users([StoredUser])
        case backends([Backend])
        case value(String)
        case login(LoginResult)
        case service(ServiceDetails)
        case session(SessionDetails)
        case accessCode(String)
        case verified(Bool)
        case signature(DocumentSignature)
    }

    let operation: String
    let status: MPinStatus
    let text: Phrase
    let content: Content

    init(_ operation: String, _ content: Content = .none) {
        self.operation = operation
        status = .ok
        text = ""
        self.content = content
    }

    init(_ operation: String, _ failure: Failure, _ content: Content = .none) {
        self.operation = operation
        status = failure.status
        self.content = content
        text =
            switch failure.code {
            case .cancelled: "the operation was cancelled"
            case .timedOut: "Prompt_Timeout: the user did not answer in time"
            case .accessDenied: "Access_Denied: \(failure.message)"
            default: failure.message
            }
    }

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("operation", operation)
        object.member("status", status.rawValue)
        object.member("statusCodeAsString", status.name)
        object.member("errorMessage", text)
        switch content {
        case .none: break
        case .user(let user): object.object("user") { Self.write(user, to: &$0) }
        case .users(let users):
            object.array("users", users) { writer, user in writer.object { Self.write(user, to: &$0) } }
        case .backends(let backends):
            object.array("backends", backends) { writer, backend in
                writer.object { object in
                    object.member("url", backend.text)
                    object.member("rpsPrefix", backend.prefix)
                }
            }
        case .value(let value): object.member("value", value)
        case .service(let details):
            object.object("serviceDetails") { object in
                object.member("name", details.name)
                object.member("backendUrl", details.backendURL)
                object.member("rpsPrefix", details.prefix)
                object.member("logoUrl", details.logoURL)
            }
        case .session(let details): object.object("sessionDetails") { Self.write(details, to: &$0) }
        case .accessCode(let code): object.member("accessCode", code)
        case .verified(let isRight): object.member("verified", isRight)
        case .signature(let signature): object.object("signature") { Self.write(signature, to: &$0) }
        case .login(let result):
            object.member("authResultData", result.data)
            object.member("canLogout", result.logout != nil)
            if !result.authorizationCode.isEmpty { object.member("authzCode", result.authorizationCode) }
            if let code = result.code {
                object.object("otp") { object in
                    object.member("otp", code.otp)
                    object.member("expireTime", code.expireTime)
                    object.member("ttlSeconds", code.ttlSeconds)
                    object.member("nowTime", code.nowTime)
                }
            }
        }
    }

    private static func write(_ details: SessionDetails, to object: inout JSONWriter) {
        object.member("prerollId", details.prerollID)
        object.member("appName", details.appName)
        object.member("appIconUrl", details.appIconURL)
        object.member("customerId", details.customerID)
        object.member("customerName", details.customerName)
        object.member("customerIconUrl", details.customerIconURL)
    }

    private static func write(_ signature: DocumentSignature, to object: inout JSONWriter) {
        object.member("hash", Hex.encode(signature.hash))
        object.member("u", Hex.encode(signature.u))
        object.member("v", Hex.encode(signature.v))
        object.member("epochTime", signature.epochTime)
        signature.identity.write(to: &object)
    }

    private static func write(_ user: StoredUser, to object: inout JSONWriter) {
        object.member("userId", user.identity)
        object.member("state", user.state.rawValue)
        object.member("backend", user.backend.text)
        object.member("rpsPrefix", user.backend.prefix)
        object.member("deviceName", user.deviceName)
        object.member("mpinId", user.id?.text)
        object.member("registrationExpiration", user.expiration)
        object.member("pinLength", PIN.length)
        object.member("keyUID", user.cardUID.map { Hex.encode($0) })
        guard let account = user.account else { return }
        object.member("customerId", account.customer)
        object.member("canSign", account.signer != nil)
        if let hasSecond = account.loginHasSecond { object.member("secondFactor", hasSecond) }
        if let hasSecond = account.signerHasSecond { object.member("signerSecondFactor", hasSecond) }
    }
}
