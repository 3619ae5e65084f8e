// SPDX-License-Identifier: GPL-3.0-or-later
import MPin
import Server
import Text

/// The members of a command of this feature.
extension Arguments {
    /// A text; empty if it is missing.
    func text(_ name: StaticString, orEmptyTo limit: Int) throws(Failure) -> String {
        try optionalText(name, 0...limit) ?? ""
    }

    func identity() throws(Failure) -> String { try text("userId", 1...StoredUser.maximumIdentity) }

    /// The access code of a login, which may have none.
    func accessCode() throws(Failure) -> String {
        try text("accessCode", orEmptyTo: MPinConnection.maximumCode)
    }

    /// The access code that names a browser session.
    func sessionCode() throws(Failure) -> String { try text("accessCode", 0...MPinConnection.maximumCode) }

    /// `url` and `rpsPrefix`; nil if there is no address.
    func optionalBackend(_ flavour: Flavour) throws(Failure) -> Backend? {
        has("url") ? try backend(flavour) : nil
    }

    /// `url` and `rpsPrefix`.
    func backend(_ flavour: Flavour) throws(Failure) -> Backend {
        let url = try text("url", 1...1024)
        let usual = flavour == .mfa ? Backend.servicePrefix : Backend.defaultPrefix
        let prefix = try optionalText("rpsPrefix", 0...128) ?? usual
        guard let backend = Backend(url, prefix: prefix) else {
            throw wrong("url", "an http or https address without a query, and rpsPrefix a path")
        }
        return backend
    }

    /// An object with texts, as headers; nil if it is missing.
    func headers(_ name: StaticString) throws(Failure) -> [CustomHeader]? {
        try optional(name, "an object with headers, none of them malformed or reserved for badged") { value in
            guard let members = value.members else { return nil }
            let headers = members.compactMap { member in member.value.string.flatMap { CustomHeader(member.key, $0) } }
            return headers.count == members.count ? headers : nil
        }
    }
}
