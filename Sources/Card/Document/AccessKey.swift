// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
import Crypto
package import Secrets

/// What opens a document: the information of the machine readable zone, or the card access number. It is wiped when the
/// last owner releases it.
package final class AccessKey: Sendable {
    package enum Kind: String, Sendable {
        case mrz = "MRZ"
        case can = "CAN"
    }

    package let kind: Kind
    private let secret: Secret

    /// Takes the digits of a card access number.
    package init(can: consuming Secret) {
        kind = .can
        secret = can
    }

    /// Takes number, dates and check digits. ICAO 9303-11 4.3.2.
    package init(information: consuming Secret) {
        kind = .mrz
        secret = information
    }

    /// Whether the key is the information of a zone; nil for a card access number.
    func matches(_ zone: MachineReadableZone) -> Bool? {
        guard kind == .mrz else { return nil }
        return ConstantTime.equal(secret, Secret(zone.information))
    }

    /// Returns a copy of the secret.
    func copy() -> Secret { secret.clone() }
}

/// How a document was opened.
package struct DocumentAccess: Sendable, Equatable {
    package enum Method: String, Sendable {
        case pace = "PACE"
        case bac = "BAC"
    }

    package let method: Method
    package let password: AccessKey.Kind
    /// The variant of PACE; nil for BAC.
    package let parameters: PACEParameters?
}
