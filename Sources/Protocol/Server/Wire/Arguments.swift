// SPDX-License-Identifier: Apache-2.0
package import Text

/// The members of a command, or of an object in it. docs/protocol.md, Arguments.
///
/// This is the only reader of arguments, and it has one wording for a wrong one: `NAME must be FORM`, or
/// `NAME is missing: it must be FORM`. Where the AusweisApp SDK has words of its own, `SDKWords` has them. null counts
/// as missing, except in the SDK's commands.
package struct Arguments {
    private enum Source {
        case command(Command)
        case object(JSON)
    }

    private let source: Source

    package init(_ command: Command) { source = .command(command) }

    /// Reads the members of an object in a command. Such an object has no secrets.
    package init(_ object: JSON) { source = .object(object) }

    /// A member of any type; nil if it is missing or null.
    package subscript(_ name: StaticString) -> JSON? {
        let value =
            switch source {
            case .command(let command): command.value(name)
            case .object(let object): object[name.description]
            }
        return value == .null ? nil : value
    }

    /// Whether there is a member that is not null. Copies nothing, so it suits secrets.
    package func has(_ name: StaticString) -> Bool {
        switch source {
        case .command(let command): command.has(name)
        case .object: self[name] != nil
        }
    }

    // MARK: Errors

    /// The failure for a member whose value is wrong, or wrong at a place inside of it, such as `[0].docType`.
    package func wrong(_ name: StaticString, at place: String = "", _ form: String) -> Failure {
        Failure(.wrongArgument, Phrase(verbatim: "\(name)\(place) must be \(form)"), details: Self.details(name))
    }

    /// The failure for a member that is missing.
    package func missing(_ name: StaticString, _ form: String) -> Failure {
        Failure(
            .missingArgument,
            Phrase(verbatim: "\(name) is missing: it must be \(form)"),
            details: Self.details(name)
        )
    }

    private static func details(_ name: StaticString) -> [JSON.Member] {
        [JSON.Member("member", .string(name.description))]
    }

    // MARK: Values

    /// A value that `read` accepts; nil if the member is missing.
    package func optional<Value>(
        _ name: StaticString,
        _ form: @autoclosure () -> String,
        _ read: (JSON) -> Value?
    ) throws(Failure) -> Value? {
        guard let member = self[name] else { return nil }
        guard let value = read(member) else { throw wrong(name, form()) }
        return value
    }

    /// A value that `read` accepts.
    package func required<Value>(
        _ name: StaticString,
        _ form: @autoclosure () -> String,
        _ read: (JSON) -> Value?
    ) throws(Failure) -> Value {
        guard let value = try optional(name, form(), read) else { throw missing(name, form()) }
        return value
    }

    /// A text with a number of bytes in `counts` and without U+0000.
    package func text(_ name: StaticString, _ counts: ClosedRange<Int>) throws(Failure) -> String {
        try required(name, Self.textForm(counts)) { Self.text($0, counts) }
    }

    package func optionalText(_ name: StaticString, _ counts: ClosedRange<Int>) throws(Failure) -> String? {
        try optional(name, Self.textForm(counts)) { Self.text($0, counts) }
    }

    private static func text(_ value: JSON, _ counts: ClosedRange<Int>) -> String? {
        guard let text = value.string, counts.contains(text.utf8.count), !text.utf8.contains(0) else { return nil }
        return text
    }

    private static func textForm(_ counts: ClosedRange<Int>) -> String {
        counts.lowerBound == 0
            ? "a text of at most \(counts.upperBound) bytes"
            : "a text of \(counts.lowerBound) to \(counts.upperBound) bytes"
    }

    /// A text that is one of the words.
    package func word<Value>(_ name: StaticString, _ words: [(String, Value)]) throws(Failure) -> Value {
        try required(name, Self.form(words), Self.reader(words))
    }

    package func optionalWord<Value>(_ name: StaticString, _ words: [(String, Value)]) throws(Failure) -> Value? {
        try optional(name, Self.form(words), Self.reader(words))
    }

    /// A list of words; `counts` is how many there may be.
    package func words<Value>(
        _ name: StaticString,
        _ counts: ClosedRange<Int>,
        _ words: [(String, Value)]
    ) throws(Failure) -> [Value]? {
        try list(name, counts, of: Self.form(words), Self.reader(words))
    }

    private static func reader<Value>(_ words: [(String, Value)]) -> (JSON) -> Value? {
        { value in words.first { $0.0 == value.string }?.1 }
    }

    /// `A, B or C`.
    private static func form<Value>(_ words: [(String, Value)]) -> String {
        let names = words.map(\.0)
        return names.dropLast().joined(separator: ", ") + (names.count > 1 ? " or " : "") + (names.last ?? "")
    }

    package func flag(_ name: StaticString) throws(Failure) -> Bool? { try optional(name, Self.flagForm, \.bool) }

    /// A flag that is false if the member is missing.
    package func isSet(_ name: StaticString) throws(Failure) -> Bool { try flag(name) ?? false }

    package func requiredFlag(_ name: StaticString) throws(Failure) -> Bool {
        try required(name, Self.flagForm, \.bool)
    }

    private static var flagForm: String { "true or false" }

    package func number(_ name: StaticString, _ range: ClosedRange<Int>) throws(Failure) -> Int {
        try required(name, Self.numberForm(range)) { Self.number($0, range) }
    }

    package func optionalNumber(_ name: StaticString, _ range: ClosedRange<Int>) throws(Failure) -> Int? {
        try optional(name, Self.numberForm(range)) { Self.number($0, range) }
    }

    private static func number(_ value: JSON, _ range: ClosedRange<Int>) -> Int? {
        guard let number = value.int, range.contains(number) else { return nil }
        return number
    }

    private static func numberForm(_ range: ClosedRange<Int>) -> String {
        range.upperBound == .max
            ? "a whole number, at least \(range.lowerBound)"
            : "a whole number from \(range.lowerBound) to \(range.upperBound)"
    }

    /// A list of `counts` values; `form` is that of one value.
    package func list<Value>(
        _ name: StaticString,
        _ counts: ClosedRange<Int>,
        of form: String,
        _ read: (JSON) -> Value?
    ) throws(Failure) -> [Value]? {
        try optional(name, "a list of \(counts.lowerBound) to \(counts.upperBound) values, each \(form)") { value in
            guard let items = value.array, counts.contains(items.count) else { return nil }
            let values = items.compactMap(read)
            return values.count == items.count ? values : nil
        }
    }

    /// 32 bytes, such as a SHA-256 hash.
    package func hash(_ name: StaticString) throws(Failure) -> [UInt8] { try required(name, Self.hashForm, Self.hash) }

    package func optionalHash(_ name: StaticString) throws(Failure) -> [UInt8]? {
        try optional(name, Self.hashForm, Self.hash)
    }

    private static var hashForm: String { "64 hexadecimal digits" }

    /// Reads 64 hexadecimal digits; nil for another value.
    package static func hash(_ value: JSON) -> [UInt8]? {
        guard let bytes = value.string.flatMap({ Hex.decode($0, limit: 32) }), bytes.count == 32 else { return nil }
        return bytes
    }

    // MARK: Secrets

    /// A secret that `read` accepts. It goes from the line into wiped memory.
    package func secret<Value>(
        _ name: StaticString,
        _ form: @autoclosure () -> String,
        _ read: (borrowing Secret) -> Value?
    ) throws(Failure) -> Value {
        guard case .command(let command) = source, has(name) else { throw missing(name, form()) }
        switch command.secret(name) {
        case .missing: throw missing(name, form())
        case .invalid: throw wrong(name, form())
        case .value(let secret):
            guard let value = read(secret) else { throw wrong(name, form()) }
            return value
        }
    }

    // MARK: The AusweisApp SDK

    /// A member of a command that the SDK has, too, with the words of the SDK; nil if it is missing and may be.
    package func sdk<Value>(
        _ name: StaticString,
        _ words: SDKWords,
        _ read: (JSON) -> Value?
    ) throws(Failure) -> Value? {
        guard case .command(let command) = source, let member = command.value(name) else {
            if let text = words.missing { throw Failure(.missingArgument, text, details: Self.details(name)) }
            return nil
        }
        guard let value = read(member) else { throw wrong(name, words) }
        return value
    }

    /// The secret in `value`, with the words of the SDK.
    package func sdkSecret<Value: ~Copyable>(
        _ read: (consuming Secret) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        guard case .command(let command) = source else { throw .badState }
        switch command.secret("value") {
        case .missing: throw Failure(.missingArgument, "Value cannot be undefined")
        case .invalid: throw Failure(.wrongArgument, "Invalid value")
        case .value(let secret): return try read(secret)
        }
    }

    private func wrong(_ name: StaticString, _ words: SDKWords) -> Failure {
        Failure(.wrongArgument, words.invalid, details: Self.details(name))
    }
}

/// What the AusweisApp SDK says of a missing or a wrong member. docs/protocol.md, Arguments.
package struct SDKWords {
    /// nil: the member may be missing.
    let missing: Phrase?
    let invalid: Phrase

    package static let level = SDKWords(missing: "Level cannot be undefined", invalid: "Invalid level")
    /// `name` of GET_READER and SET_CARD.
    package static let name = SDKWords(missing: "Name cannot be undefined", invalid: "Invalid name")
    /// `reader` of a RUN command.
    package static let reader = SDKWords(missing: nil, invalid: "Invalid name")
    package static let tcTokenURL = SDKWords(
        missing: "tcTokenURL cannot be undefined",
        invalid: "Invalid tcTokenURL"
    )
    package static let chat = SDKWords(missing: "'chat' cannot be undefined", invalid: "Invalid 'chat' data")
    package static let simulator = SDKWords(missing: nil, invalid: "Parameter 'simulator' is invalid")
    package static let card = SDKWords(missing: nil, invalid: "Parameter 'card' is invalid")
}

extension CaseIterable where Self: RawRepresentable<String> {
    /// The words of an argument that is one of these cases.
    package static var words: [(String, Self)] { allCases.map { ($0.rawValue, $0) } }
}
