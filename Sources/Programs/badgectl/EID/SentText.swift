// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// What a service has of the card's data, in words for the end of an authentication.
enum SentText {
    /// Before the user has agreed.
    static let nothing = tr("the service got no data")
    /// After the user has agreed.
    static let notYet = tr("the service got none of the data that it asked for")

    static func text(_ sent: SentData, hasAgreed: Bool) -> String {
        switch sent.state {
        case .none: hasAgreed ? notYet : nothing
        case .possible: tr("the service may have received \(data(sent.rights))")
        case .read: tr("the service has received \(data(sent.rights))")
        }
    }

    private static func data(_ rights: [String]) -> String {
        let names = rights.map { ConsentText.describe($0) }.joined(separator: ", ")
        return names.isEmpty ? tr("answers of the card") : tr("data, at most: \(names)")
    }
}

extension CommandLineUser {
    /// Notes the consent to required and optional rights.
    func grant(_ rights: [String]) {
        granted = rights
        notDone = SentText.notYet
    }

    /// Notes the progress of an authentication. badged reports 60 before it sends the first answer of the card. That
    /// message may be lost with the connection; the one before cannot be, because the card and the eID-Server take
    /// turns in between.
    func noteService(at percent: Int) {
        guard percent >= 40, let granted else { return }
        let secret = ["CanAllowed", "PinManagement"]
        let rights = granted.filter { !secret.contains($0) && !$0.hasPrefix("Write") }
        notDone = SentText.text(SentData(.possible, rights: rights), hasAgreed: true)
    }

    /// What the service reads, such as `13 fields`. A question that the card answers with yes or no is no field.
    var fields: String {
        let others = ["CanAllowed", "PinManagement", "AgeVerification", "AddressVerification"]
        let count = granted?.count { !others.contains($0) && !$0.hasPrefix("Write") } ?? 0
        return count == 0 ? tr("the card") : count == 1 ? tr("1 field") : tr("\(count) fields")
    }

    /// Notes what badged reports at the end. Without a report the progress decides.
    func note(_ sent: SentData?) {
        if let sent { notDone = SentText.text(sent, hasAgreed: granted != nil) }
    }
}
