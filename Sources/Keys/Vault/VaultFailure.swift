// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Why a command of the vault has failed. No text contains a secret.
extension Failure.Code {
    /// A record is damaged, or is not of this version.
    package static let recordDamaged = Self("RecordDamaged")
    /// The user has no endpoint.
    package static let notSetUp = Self("Endpoint")
    /// The user has no such key.
    package static let unknownKey = Self("KeyNotFound")
    /// The key cannot do this.
    package static let unfit = Self("KeyNotUsable")
    /// A limit is reached.
    package static let full = Self("StorageFull")
    /// A file of an issuer cannot be read.
    package static let invitationInvalid = Self("InvitationCodeInvalid")
}

extension Failure {
    package static func recordDamaged(_ name: String) -> Failure {
        Failure(
            .recordDamaged,
            "the record '\(name)' is damaged, or a later version of badged wrote it",
            advice: "install that version, restore the store from a backup, or delete the record"
        )
    }

    package static var notSetUp: Failure {
        Failure(.notSetUp, "there is no endpoint", advice: "send SETUP_ENDPOINT first")
    }

    package static var unknownKey: Failure { Failure(.unknownKey, "there is no such key") }

    package static func unfit(_ reason: String) -> Failure { Failure(.unfit, reason) }

    package static func full(_ reason: String) -> Failure { Failure(.full, reason) }

    static func enrolment(_ reason: String) -> Failure { Failure(.invitationInvalid, reason) }

    static func enrolment(member name: String) -> Failure { .enrolment("\(name) of the enrolment file is wrong") }

    static var malformedEnrolment: Failure { .enrolment("the enrolment file is malformed") }
}
