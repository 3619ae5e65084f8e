// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// A PIN or PUK with its counter, as the class OwnerPIN of Java Card.
struct CardPIN: ~Copyable {
    private var value: Secret
    let limit: Int
    private(set) var tries: Int
    private(set) var isValidated = false
    /// How often a value was compared with a try left.
    private(set) var checks = 0

    init(_ value: consuming Secret, limit: Int, tries: Int? = nil) {
        self.value = value
        self.limit = limit
        self.tries = tries ?? limit
    }

    /// Compares a value with this one. A wrong value uses a try; a blocked PIN accepts no value.
    mutating func check(_ candidate: borrowing Secret) -> Bool {
        guard tries > 0 else { return false }
        checks += 1
        isValidated = ConstantTime.equal(value, candidate)
        tries = isValidated ? limit : tries - 1
        return isValidated
    }

    /// Whether this is the value, without the use of a try; for tests.
    func equals(_ candidate: borrowing Secret) -> Bool { ConstantTime.equal(value, candidate) }

    /// Replaces the value. The new one is validated.
    mutating func replace(with value: consuming Secret) {
        update(value)
        isValidated = true
    }

    /// Replaces the value. The new one is not validated.
    mutating func update(_ value: consuming Secret) {
        self.value = value
        resetAndUnblock()
    }

    /// Ends the validation, and restores the tries if the last value was right.
    mutating func reset() {
        if isValidated { resetAndUnblock() }
    }

    mutating func resetAndUnblock() {
        isValidated = false
        tries = limit
    }
}
