// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// One line of GET_HEALTH: something that can be right or wrong on this host. docs/protocol.md, HEALTH.
package struct HealthCheck: Sendable, Equatable {
    package let name: String
    package let ok: Bool
    /// Whether the check was not made, because a check that it needs has failed. Then `ok` is false.
    package let isUnknown: Bool
    /// Whether the failed check is about a part that this host lacks and can do without.
    package let isOptional: Bool
    /// What is wrong, where the advice does not say it.
    package let cause: Phrase?
    /// What a person can do about the fault; nil when the check is good.
    package let advice: Phrase?
    /// Milliseconds since the fault began, where that is known.
    package let errorAgo: Int64?
    /// The name of the reader that is missing because of the fault, if it was there before.
    package let reader: String?
    /// What the check has found, in further members.
    package let facts: [Fact]

    /// A further member of the check.
    package struct Fact: Sendable, Equatable {
        package enum Value: Sendable, Equatable {
            case text(String)
            case number(Int)
        }

        package let name: String
        package let value: Value

        package init(_ name: String, _ text: String) { (self.name, value) = (name, .text(text)) }

        package init(_ name: String, _ number: Int) { (self.name, value) = (name, .number(number)) }
    }

    package init(
        _ name: String,
        ok: Bool,
        isOptional: Bool = false,
        cause: Phrase? = nil,
        advice: Phrase? = nil,
        errorAgo: Int64? = nil,
        reader: String? = nil,
        facts: [Fact] = []
    ) {
        self.name = name
        self.ok = ok
        isUnknown = false
        self.isOptional = isOptional && !ok
        self.cause = cause
        self.advice = advice
        self.errorAgo = errorAgo
        self.reader = reader
        self.facts = facts
    }

    /// A check that cannot be made while the check `needed` fails.
    package init(_ name: String, unknownWithout needed: String) {
        self.name = name
        ok = false
        isUnknown = true
        isOptional = false
        cause = "unknown until \(Phrase(stringLiteral: needed)) is good"
        advice = nil
        errorAgo = nil
        reader = nil
        facts = []
    }
}
