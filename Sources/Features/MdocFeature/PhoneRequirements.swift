// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ISO7816
import Readers
import Text

/// The requirements of RUN_READ_MDOC: anything that may be a phone, and that nobody has asked for its NDEF message in
/// this insertion. Nothing is sent before the reading begins.
final class PhoneRequirements: CardRequirements {
    /// What INSERT_CARD says when a phone has left too early.
    var reminder: Phrase?
    /// The phones that have refused to go on.
    var used: Set<Insertion> = []
    /// Whether the phone has engaged by a QR code, so that no handover is needed.
    var hasEngagement = false

    let wrongKind = CardObstacle("noPhone") {
        "The card in reader '\($0)' is no phone: hold the phone to the reader"
    }

    func profile(_ known: any CardProfile) -> PhoneProfile? { known.mayBePhone ? PhoneProfile() : nil }

    /// Some readers report no number of a phone, so that it is of no kind.
    func profileOfUnknown(in reader: Reader) -> PhoneProfile? { PhoneProfile() }

    func obstacle(of profile: PhoneProfile, in reader: ReaderDescription) -> CardObstacle? { nil }

    func obstacle(of insertion: Insertion, in reader: Reader) -> CardObstacle? {
        if used.contains(insertion) { return .usedPhone }
        if hasEngagement { return nil }
        return switch reader.ndef {
        case nil: nil
        case .handover: .usedPhone
        case .message: .tagOnly
        case .unreadable, .some(.none): .lockedPhone
        }
    }

    func open(_ lease: CardLease, _ profile: PhoneProfile) async throws(CardError) -> CardLease { lease }
}

extension CardObstacle {
    /// The phone refuses the application for NDEF messages.
    fileprivate static let lockedPhone = CardObstacle("lockedPhone") {
        "The phone in reader '\($0)' shows no document: unlock it, open the wallet, and hold it to the reader again. "
            + "If it is no phone, take it away"
    }
    fileprivate static let tagOnly = CardObstacle("tagOnly") {
        "What lies on reader '\($0)' is a tag: hold the phone to the reader"
    }
    /// A second SELECT would begin another handover.
    fileprivate static let usedPhone = CardObstacle("usedPhone") {
        "The phone in reader '\($0)' was read before: take it away, and hold it to the reader again"
    }
}
