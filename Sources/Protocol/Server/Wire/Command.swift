// SPDX-License-Identifier: Apache-2.0
package import Text

/// A member that holds a PIN, CAN or PUK.
package enum SecretField: ~Copyable {
    case missing
    /// The member is present, but has another type.
    case invalid
    case value(Secret)
}

/// One scanned line: a view into its buffer, which is valid only while the line is handled.
package struct Command {
    private let text: UnsafeRawBufferPointer
    private let members: [JSONMember]
    /// The maximum number of members, because each look-up compares all of them.
    package static let maximumMembers = 256
    /// The bytes of `\u0041`, the longest form of a character of the names that are looked up.
    private static let escapeCount = 6

    package init(scanning text: UnsafeRawBufferPointer) throws(Malformed) {
        self.text = text
        members = try JSONScanner.members(of: text, limit: Self.maximumMembers)
    }

    private func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[range])
    }

    private func find(_ key: StaticString) -> JSONMember? {
        members.last { member in
            if member.keyHasEscapes {
                // A name that is too long is not decoded, because it may fill the line.
                return member.key.count <= key.utf8CodeUnitCount * Self.escapeCount
                    && JSONString.decode(slice(member.key), hasEscapes: true) == key.description
            }
            return slice(member.key).elementsEqual(
                UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount)
            )
        }
    }

    /// The value of `cmd`; nil if `cmd` is missing, empty or not a string.
    package var name: String? {
        guard let name = value("cmd")?.string, !name.isEmpty else { return nil }
        return name
    }

    /// The value of `request` as the client wrote it. The direct answer repeats this value.
    package var request: UnsafeRawBufferPointer? {
        find("request").map { slice($0.value) }
    }

    /// Returns a member of any type, which holds no secret.
    package func value(_ key: StaticString) -> JSON? { find(key).map { JSON(accepted: slice($0.value)) } }

    /// Whether there is a member that is not null.
    package func has(_ key: StaticString) -> Bool { find(key).map { $0.kind != .null } ?? false }

    /// Returns a string, unescaped directly into memory that is wiped later.
    package func secret(_ key: StaticString) -> SecretField {
        guard let member = find(key) else { return .missing }
        guard member.kind == .string else { return .invalid }
        let content = slice(member.value.lowerBound + 1..<member.value.upperBound - 1)
        guard member.valueHasEscapes else { return .value(Secret(content)) }
        var count = 0
        let unescaped = Secret(count: content.count) { count = JSONString.unescape(content, into: $0) }
        return .value(unescaped.withBytes { Secret(UnsafeRawBufferPointer(rebasing: $0[..<count])) })
    }
}
