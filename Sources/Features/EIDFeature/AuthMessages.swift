// SPDX-License-Identifier: GPL-3.0-or-later
import EService
import Server
import Text
import Wire

/// AUTH at the end.
struct AuthEndedMessage: Message {
    static let name: StaticString = "AUTH"
    let end: AuthenticationResult

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.object("result") { result in
            let minor = end.result.minor
            result.member("major", end.result.major.rawValue)
            if let minor { result.member("minor", minor.uri) }
            if let message = end.result.message { result.member("message", message) }
            if let description = minor?.description { result.member("description", description) }
            // The language of `message` and `description`.
            if minor != nil || end.result.message != nil { result.member("language", "en") }
            if let reason = end.reason { result.member("reason", reason.rawValue) }
        }
        if let url = end.url { object.member("url", url) }
        object.member("sent", end.sent.state.rawValue)
        if end.sent.state != .none { object.member("rights", end.sent.rights) }
    }
}
