// SPDX-License-Identifier: GPL-3.0-or-later
import Secrets
import Text
import Vault
import Wire

/// The members of a command.
struct KeyArguments {
    let command: Command

    static func invalid(_ name: StaticString, _ form: String) -> KeyFailure {
        KeyFailure(.parameter, "\(name) must be \(form)")
    }

    /// A text of at most `limit` bytes; nil if it is missing.
    func text(_ name: StaticString, limit: Int) throws(KeyFailure) -> String? {
        switch command.string(name) {
        case .missing: return nil
        case .value(let text) where text.utf8.count <= limit && !text.utf8.contains(0): return text
        case .value, .invalid: throw Self.invalid(name, "a text of at most \(limit) bytes")
        }
    }

    func flag(_ name: StaticString) throws(KeyFailure) -> Bool? {
        switch command.bool(name) {
        case .missing: return nil
        case .value(let flag): return flag
        case .invalid: throw Self.invalid(name, "true or false")
        }
    }

    func number(_ name: StaticString, in range: ClosedRange<Int>) throws(KeyFailure) -> Int? {
        switch command.int(name) {
        case .missing: return nil
        case .value(let number?) where range.contains(number): return number
        case .value, .invalid:
            throw Self.invalid(name, "a number from \(range.lowerBound) to \(range.upperBound)")
        }
    }

    /// The id of a key.
    func key(_ name: StaticString = "key") throws(KeyFailure) -> String {
        guard let key = try text(name, limit: 64), !key.isEmpty else { throw Self.invalid(name, "the id of a key") }
        return key
    }

    func tag() throws(KeyFailure) -> DataTag {
        guard let tag = try text("tag", limit: 4).flatMap({ Hex.decode($0) }).flatMap({ DataTag($0) }) else {
            throw Self.invalid("tag", "a BER tag of one or two bytes in hexadecimal digits")
        }
        return tag
    }

    /// Bytes as hexadecimal digits, in wiped memory.
    func bytes(_ name: StaticString, limit: Int) throws(KeyFailure) -> SecretBox {
        if case .value(let text) = command.secret(name), text.count <= 2 * limit, let bytes = SecretText.hex(text) {
            return SecretBox(bytes)
        }
        throw Self.invalid(name, "hexadecimal digits of at most \(limit) bytes")
    }

    /// The secret of one-time codes: base 32, or hexadecimal digits after `hex:`.
    func codeSecret() throws(KeyFailure) -> SecretBox {
        if case .value(let text) = command.secret("value"), let bytes = Self.decode(text),
            OneTimeCodes.secretCounts.contains(bytes.count)
        {
            return SecretBox(bytes)
        }
        throw Self.invalid("value", "10 to 128 bytes in base 32, or in hexadecimal digits after hex:")
    }

    private static func decode(_ text: borrowing Secret) -> Secret? {
        guard text.count <= 512 else { return nil }
        let prefix = Array("hex:".utf8)
        guard text.withBytes({ $0.starts(with: prefix) }) else { return SecretText.base32(text) }
        guard let digits = text.part(prefix.count..<text.count) else { return nil }
        return SecretText.hex(digits)
    }
}
