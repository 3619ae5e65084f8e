// SPDX-License-Identifier: GPL-3.0-or-later
import MPin
import Text
import Wire

/// The first message of a workflow.
struct MPinStartedMessage: Message {
    static let name: StaticString = "MPIN_STARTED"
    let operation: String

    func write(to object: inout JSONWriter, _ level: APILevel) { object.member("operation", operation) }
}

/// The answer to a command, and the final message of a workflow.
struct MPinResultMessage: Message {
    static let name: StaticString = "MPIN_RESULT"
    /// What a call returns beside its status.
    enum Content: Sendable {
        case none
        case user(MPinUser)
        case users([MPinUser])
        case backends([Backend])
        case value(String)
        case login(LoginResult)
    }

    let operation: String
    let status: MPinStatus
    let text: String
    let content: Content

    init(_ operation: String, _ content: Content = .none) {
        (self.operation, status, text, self.content) = (operation, .ok, "", content)
    }

    init(_ operation: String, _ failure: MPinFailure, _ content: Content = .none) {
        (self.operation, status, text) = (operation, failure.status, failure.text)
        self.content = content
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
        case .login(let result):
            object.member("authResultData", result.data)
            object.member("canLogout", result.logout != nil)
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

    private static func write(_ user: MPinUser, to object: inout JSONWriter) {
        object.member("userId", user.identity)
        object.member("state", user.state.rawValue)
        object.member("backend", user.backend.text)
        object.member("rpsPrefix", user.backend.prefix)
        object.member("deviceName", user.deviceName)
        object.member("mpinId", user.id?.text)
        object.member("registrationExpiration", user.expiration)
        object.member("pinLength", PIN.length)
    }
}
