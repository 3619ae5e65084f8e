// SPDX-License-Identifier: GPL-3.0-or-later

/// What happens to one command to a card, for tables of faults.
package enum CardFault: String, CaseIterable, Sendable {
    /// The card leaves before the command arrives.
    case removedBefore
    /// The card leaves after it has run the command.
    case removedAfter
    /// The answer has other bytes.
    case garbled
    /// The card answers 6F00 and does not run the command.
    case failure
    /// The card answers 6982 and does not run the command.
    case refused
    /// One bit of the answer is wrong.
    case wrongMAC
    /// The card runs the command, and its answer is replaced by the one before.
    case replayed
}
