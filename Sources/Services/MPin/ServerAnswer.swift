// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A JSON object that a server has sent. Its text is wiped on release, because answers have shares of secrets.
package struct ServerAnswer: ~Copyable {
    private let body: Secret
    private let members: [JSONMember]

    /// - Throws: `.responseParseError` for anything but an object.
    package init(_ body: consuming Secret) throws(Failure) {
        let found: [JSONMember]? = body.withBytes { text in
            guard text.first(where: { $0 > 0x20 }) == UInt8(ascii: "{") else { return nil }
            return try? JSONScanner.members(of: text)
        }
        guard let found else {
            throw Failure(.responseParseError, "the answer of the server is not a JSON object")
        }
        members = found
        self.body = body
    }

    /// For answers without secrets: the source is not wiped.
    package init(_ body: [UInt8]) throws(Failure) { try self.init(Secret(body)) }

    private borrowing func find(_ name: StaticString) -> JSONMember? {
        body.withBytes { text in
            members.last { member in
                let key = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
                return UnsafeRawBufferPointer(rebasing: text[member.key]).elementsEqual(key)
            }
        }
    }

    private borrowing func member(_ name: StaticString, _ kind: JSONKind) throws(Failure) -> JSONMember {
        guard let found = find(name), found.kind == kind else { throw Self.missing(name) }
        return found
    }

    private static func missing(_ name: StaticString) -> Failure {
        Failure(.responseParseError, "the answer of the server has no usable member '\(name)'")
    }

    /// The whole object; for answers without secrets.
    package borrowing func json() -> JSON { body.withBytes { JSON(accepted: $0) } }

    package borrowing func bytes() -> [UInt8] { body.withBytes { Array($0) } }

    /// A string of 1 to `limit` bytes.
    package borrowing func string(_ name: StaticString, limit: Int) throws(Failure) -> String {
        let text = decoded(try member(name, .string))
        guard !text.isEmpty else { throw Self.missing(name) }
        guard text.utf8.count <= limit else {
            throw Failure(.responseParseError, "'\(name)' of the server is longer than \(limit) bytes")
        }
        return text
    }

    /// The first of these members that is a string of at most `limit` bytes; empty if there is none.
    package borrowing func text(_ names: StaticString..., limit: Int) -> String {
        for name in names {
            guard let member = find(name), member.kind == .string else { continue }
            let text = decoded(member)
            if text.utf8.count <= limit { return text }
        }
        return ""
    }

    private borrowing func decoded(_ member: JSONMember) -> String {
        body.withBytes { text in
            let content = UnsafeRawBufferPointer(
                rebasing: text[member.value.lowerBound + 1..<member.value.upperBound - 1]
            )
            return JSONString.decode(content, hasEscapes: member.valueHasEscapes)
        }
    }

    /// Whether there is such a member, and it is not null.
    package borrowing func has(_ name: StaticString) -> Bool { find(name).map { $0.kind != .null } ?? false }

    /// An object; nil if there is none.
    package borrowing func object(_ name: StaticString) -> JSON? {
        guard let member = find(name), member.kind == .object else { return nil }
        return body.withBytes { JSON(accepted: UnsafeRawBufferPointer(rebasing: $0[member.value])) }
    }

    package borrowing func bool(_ name: StaticString) throws(Failure) -> Bool {
        let member = try member(name, .bool)
        return body.withBytes { $0[member.value.lowerBound] == UInt8(ascii: "t") }
    }

    package borrowing func int(_ name: StaticString) throws(Failure) -> Int {
        let member = try member(name, .number)
        let text = body.withBytes { String(decoding: $0[member.value], as: UTF8.self) }
        guard let number = JSON.int(text) else { throw Self.missing(name) }
        return number
    }

    /// Reads hexadecimal digits of exactly `count` bytes into memory that is wiped.
    /// - Throws: `.responseParseError` if there is no string, `.cryptoError` if the string is something else.
    package borrowing func secret(_ name: StaticString, count: Int) throws(Failure) -> Secret {
        let member = try member(name, .string)
        let digits = member.value.lowerBound + 1..<member.value.upperBound - 1
        return try body.withBytes { text throws(Failure) in
            guard let secret = Self.decode(UnsafeRawBufferPointer(rebasing: text[digits]), count: count) else {
                throw Failure(.cryptoError, "'\(name)' of the server is not \(count) bytes in hexadecimal")
            }
            return secret
        }
    }

    /// Decodes hexadecimal digits of exactly `count` bytes; nil for anything else.
    static func decode(_ digits: UnsafeRawBufferPointer, count: Int) -> Secret? {
        guard digits.count == 2 * count, digits.allSatisfy({ Hex.value($0) != nil }) else { return nil }
        return Secret(count: count) { out in
            for index in 0..<count {
                out[index] = (Hex.value(digits[2 * index]) ?? 0) << 4 | (Hex.value(digits[2 * index + 1]) ?? 0)
            }
        }
    }
}
