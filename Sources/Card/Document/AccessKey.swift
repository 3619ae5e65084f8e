// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
import Crypto
package import Text

/// What opens a document: the information of the machine readable zone, or the card access number. It is wiped when the
/// last owner releases it.
package final class AccessKey: Sendable {
    package enum Kind: String, Sendable {
        case mrz = "MRZ"
        case can = "CAN"
    }

    package let kind: Kind
    private let secret: Secret
    /// All characters of the zone; empty if they are not known.
    private let zone: Secret

    /// Takes the digits of a card access number.
    package init(can: consuming Secret) {
        kind = .can
        secret = can
        zone = Secret([])
    }

    /// Takes number, dates and check digits. ICAO 9303-11 4.3.2.
    package init(information: consuming Secret) {
        kind = .mrz
        secret = information
        zone = Secret([])
    }

    /// Takes a whole zone, as it was typed or scanned.
    package init(zone: MachineReadableZone) {
        kind = .mrz
        secret = Secret(zone.information)
        self.zone = Secret(zone.text.utf8)
    }

    /// Whether the key is of a zone: all lines, or the information if only that is known. nil for a card access number.
    func matches(_ other: MachineReadableZone) -> Bool? {
        guard kind == .mrz else { return nil }
        guard zone.count > 0 else { return ConstantTime.equal(secret, Secret(other.information)) }
        return ConstantTime.equal(zone, Secret(other.text.utf8))
    }

    func copy() -> Secret { secret.clone() }
}

/// How a document was opened.
package struct DocumentAccess: Sendable, Equatable {
    package enum Method: String, Sendable {
        case pace = "PACE"
        case bac = "BAC"
        /// The chip has no access control: it sends its files to everybody.
        case open = "none"
    }

    package let method: Method
    /// nil for a chip without access control.
    package let password: AccessKey.Kind?
    /// The variant of PACE; nil for BAC.
    package let parameters: PACEParameters?
}
