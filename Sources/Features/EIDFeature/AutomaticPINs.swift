// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import EID
import ISO7816
import Readers
import Text

/// Decides which PINs a program may give without a person: `automatic` of SET_PIN. docs/protocol/eid.md.
///
/// No such PIN can cost a try of a card that has already lost one. A card that is not of a virtual reader gets one only
/// if the administrator allows it, at most one for each insertion, and none after a wrong one.
@Loop final class AutomaticPINs {
    /// `[eid] automatic_pin` of badged.conf(5).
    private let allowsRealCards: Bool
    /// For each reader the insertion whose card got an automatic PIN.
    private var used: [String: Insertion] = [:]
    /// Whether a card that is not virtual has refused an automatic PIN. The program would give the same one again.
    private var wasRefused = false

    nonisolated init(allowsRealCards: Bool) { self.allowsRealCards = allowsRealCards }

    /// Notes that the card gets an automatic PIN. `triesLeft` is what the card has said since it was connected.
    /// - Throws: why the card does not get the PIN.
    func use(_ lease: CardLease, triesLeft: Int) throws(Failure) {
        // After a wrong PIN two tries must be left.
        guard triesLeft == PINStatus.initialRetryCounter else {
            throw refused(
                "the card has less than three tries left",
                "prove the PIN by hand, which gives three tries back"
            )
        }
        guard !lease.reader.description.takesCards else { return }
        guard allowsRealCards else {
            throw refused(
                "the card is not virtual",
                "set automatic_pin = yes in [eid] of badged.conf, and restart badged"
            )
        }
        guard !wasRefused else {
            throw refused("an automatic PIN was wrong", "correct the PIN, and restart badged")
        }
        guard used[lease.reader.name] != lease.insertion else {
            throw refused("this card got one already", "take the card off the reader and put it back")
        }
        used[lease.reader.name] = lease.insertion
    }

    /// Notes that a card has refused an automatic PIN.
    func wasWrong(_ lease: CardLease) {
        if !lease.reader.description.takesCards { wasRefused = true }
    }

    private func refused(_ reason: Phrase, _ advice: Phrase) -> Failure {
        Failure(.wrongArgument, "No automatic PIN, because \(reason)", advice: advice)
    }
}
