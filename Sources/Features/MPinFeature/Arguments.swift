// SPDX-License-Identifier: GPL-3.0-or-later
import MPin
import Text
import Wire

/// The members of a command.
struct Arguments {
    let command: Command

    private static func invalid(_ name: StaticString, _ form: String) -> MPinFailure {
        MPinFailure(.flowError, "\(name) must be \(form)")
    }

    /// A text with at least one character and at most `limit` bytes.
    func text(_ name: StaticString, limit: Int) throws(MPinFailure) -> String {
        guard let text = try optional(name, limit: limit), !text.isEmpty else {
            throw Self.invalid(name, "a text of 1 to \(limit) bytes")
        }
        return text
    }

    /// A text; empty if it is missing.
    func text(_ name: StaticString, orEmptyTo limit: Int) throws(MPinFailure) -> String {
        try optional(name, limit: limit) ?? ""
    }

    private func optional(_ name: StaticString, limit: Int) throws(MPinFailure) -> String? {
        switch command.string(name) {
        case .missing: return nil
        case .invalid: throw Self.invalid(name, "a text")
        case .value(let text):
            guard text.utf8.count <= limit, !text.utf8.contains(0) else {
                throw Self.invalid(name, "a text of at most \(limit) bytes")
            }
            return text
        }
    }

    func flag(_ name: StaticString) throws(MPinFailure) -> Bool {
        switch command.bool(name) {
        case .missing: return false
        case .invalid: throw Self.invalid(name, "true or false")
        case .value(let flag): return flag
        }
    }

    func identity() throws(MPinFailure) -> String { try text("userId", limit: MPinUser.maximumIdentity) }

    /// A SHA-256 hash in hexadecimal.
    func documentHash(_ name: StaticString) throws(MPinFailure) -> [UInt8] {
        guard let hash = Hex.decode(try text(name, limit: 64)), hash.count == 32 else {
            throw Self.invalid(name, "64 hexadecimal digits")
        }
        return hash
    }

    /// A time in seconds since 1970.
    func time(_ name: StaticString) throws(MPinFailure) -> UInt32 {
        guard case .value(let number) = command.int(name), let time = number.flatMap({ UInt32(exactly: $0) }) else {
            throw Self.invalid(name, "a number of seconds")
        }
        return time
    }

    func accessCode() throws(MPinFailure) -> String {
        try text("accessCode", orEmptyTo: MPinConnection.maximumCode)
    }

    /// `url` and `rpsPrefix`.
    func backend(_ flavour: Flavour = .mpin) throws(MPinFailure) -> Backend {
        let url = try text("url", limit: 1024)
        let usual = flavour == .mfa ? Backend.servicePrefix : Backend.defaultPrefix
        let prefix = try optional("rpsPrefix", limit: 128) ?? usual
        guard let backend = Backend(url, prefix: prefix) else {
            throw Self.invalid("url", "an http or https address without a query, and rpsPrefix a path")
        }
        return backend
    }

    /// An object with texts, as headers; nil if it is missing.
    func headers(_ name: StaticString) throws(MPinFailure) -> [CustomHeader]? {
        switch command.object(name) {
        case .missing: return nil
        case .invalid: throw Self.invalid(name, "an object with headers")
        case .value(let object):
            var headers: [CustomHeader] = []
            for member in object.members ?? [] {
                guard let value = member.value.string, let header = CustomHeader(member.key, value) else {
                    throw MPinFailure(.flowError, "a header in \(name) is malformed or reserved for badged")
                }
                headers.append(header)
            }
            return headers
        }
    }

    /// An array of texts; nil if it is missing.
    func texts(_ name: StaticString) throws(MPinFailure) -> [String]? {
        switch command.array(name) {
        case .missing: return nil
        case .invalid: throw Self.invalid(name, "an array of texts")
        case .value(let items):
            let texts = items.compactMap(\.string)
            guard texts.count == items.count else { throw Self.invalid(name, "an array of texts") }
            return texts
        }
    }
}
