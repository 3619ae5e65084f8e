// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Text
import Vault

/// The members of a command of this feature.
extension Arguments {
    /// The id of a key.
    func key(_ name: StaticString = "key") throws(Failure) -> String { try text(name, 1...64) }

    func optionalKey() throws(Failure) -> String? { try optionalText("key", 1...64) }

    func tag() throws(Failure) -> DataTag {
        try required("tag", "a BER tag of one or two bytes in hexadecimal digits") { value in
            value.string.flatMap { Hex.decode($0, limit: 2) }.flatMap { DataTag($0) }
        }
    }

    /// Bytes as hexadecimal digits, in wiped memory.
    func bytes(_ name: StaticString, limit: Int) throws(Failure) -> SecretBox {
        try secret(name, "hexadecimal digits of at most \(limit) bytes") { text in
            guard text.count <= 2 * limit, let bytes = SecretText.hex(text) else { return nil }
            return SecretBox(bytes)
        }
    }

    /// The secret of one-time codes: base 32, or hexadecimal digits after `hex:`.
    func codeSecret() throws(Failure) -> SecretBox {
        try secret("value", "10 to 128 bytes in base 32, or in hexadecimal digits after hex:") { text in
            guard let bytes = Self.decode(text), OneTimeCodes.secretCounts.contains(bytes.count) else { return nil }
            return SecretBox(bytes)
        }
    }

    private static func decode(_ text: borrowing Secret) -> Secret? {
        guard text.count <= 512 else { return nil }
        let prefix = Array("hex:".utf8)
        guard text.withBytes({ $0.starts(with: prefix) }) else { return SecretText.base32(text) }
        guard let digits = text.part(prefix.count..<text.count) else { return nil }
        return SecretText.hex(digits)
    }
}
