// SPDX-License-Identifier: GPL-3.0-or-later
package import Server
package import Text

/// The form of a value that the user types.
package enum SecretForm: Sendable, Equatable {
    case digits(ClosedRange<Int>)
    /// Printable ASCII characters.
    case text(ClosedRange<Int>)

    fileprivate func accepts(_ secret: borrowing Secret) -> Bool {
        let (counts, characters): (ClosedRange<Int>, ClosedRange<UInt8>) =
            switch self {
            case .digits(let counts): (counts, 0x30...0x39)
            case .text(let counts): (counts, 0x20...0x7E)
            }
        return secret.withBytes { value in counts.contains(value.count) && value.allSatisfy(characters.contains) }
    }

    /// The error for a value of another form.
    fileprivate var error: Phrase {
        switch self {
        case .digits(let counts) where counts.count == 1: "You must provide \(counts.lowerBound) digits"
        case .digits(let counts): "You must provide \(counts.lowerBound) - \(counts.upperBound) digits"
        case .text(let counts): "You must provide \(counts.lowerBound) - \(counts.upperBound) ASCII characters"
        }
    }
}

extension Call {
    /// Whether a program gives the value without a person.
    package var isAutomatic: Bool { get throws(Failure) { try arguments.flag("automatic") ?? false } }

    /// Takes `value`. A value of a wrong form is refused, so that it does not reach a card. A value that no person
    /// gives is refused, too, unless the caller decides about it.
    package func secret(_ form: SecretForm, takesAutomatic: Bool = false) throws(Failure) -> SecretBox {
        let isAutomatic = try isAutomatic
        guard takesAutomatic || !isAutomatic else {
            throw Failure(.wrongArgument, "No automatic answer: only the PIN of an authentication needs no person")
        }
        return try arguments.sdkSecret { (secret: consuming Secret) throws(Failure) in
            guard form.accepts(secret) else { throw Failure(.wrongArgument, form.error) }
            return SecretBox(secret)
        }
    }
}
