// SPDX-License-Identifier: GPL-3.0-or-later
package import Secrets
package import Server
package import Wire

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
    fileprivate var error: String {
        switch self {
        case .digits(let counts) where counts.count == 1: "You must provide \(counts.lowerBound) digits"
        case .digits(let counts): "You must provide \(counts.lowerBound) - \(counts.upperBound) digits"
        case .text(let counts): "You must provide \(counts.lowerBound) - \(counts.upperBound) ASCII characters"
        }
    }
}

extension OpenPrompt {
    /// Takes `value` of a command. A value of a wrong form is refused, so that it does not reach a card.
    /// - Returns: nil if the command was refused.
    package func secret(of command: Command, _ form: SecretForm) -> SecretBox? {
        switch command.secret("value") {
        case .missing: refuse(command, "Value cannot be undefined")
        case .invalid: refuse(command, "Invalid value")
        case .value(let secret):
            if form.accepts(secret) { return SecretBox(secret) }
            refuse(command, form.error)
        }
        return nil
    }
}
