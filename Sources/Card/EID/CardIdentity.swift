// SPDX-License-Identifier: GPL-3.0-or-later

/// What kind of card a card is.
package enum CardIdentity: Sendable, Equatable {
    /// Not an eID card, or one without a supported protocol: a passport, a bank card, a broken card.
    case unknown
    case eid(EIDProfile)
}

/// What is known about an eID card without a password.
package struct EIDProfile: Sendable, Equatable {
    /// The identifier of the application that was selected.
    package let applicationID: [UInt8]
    package let cardAccess: CardAccess
    package var status: PINStatus

    package init(applicationID: [UInt8], cardAccess: CardAccess, status: PINStatus) {
        (self.applicationID, self.cardAccess, self.status) = (applicationID, cardAccess, status)
    }
}

/// The applications that are selected on an unknown card.
package enum ApplicationID {
    /// The eID application. TR-03110-4.
    package static let eid: [UInt8] = [0xE8, 0x07, 0x04, 0x00, 0x7F, 0x00, 0x07, 0x03, 0x02]
    /// The simulator PersoSim.
    package static let persoSim: [UInt8] = [0xF0, 0x4E, 0x66, 0xE7, 0x5C, 0x02, 0xD8]
    /// Travel documents. ICAO 9303-10.
    package static let travelDocument: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01]
}
