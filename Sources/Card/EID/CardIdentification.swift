// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import ISO7816
package import Text

extension EIDCard {
    /// Identifies a card without a password: selects the eID application, reads EF.DIR and EF.CardAccess, and asks for the
    /// remaining tries of the PIN. A card that answers differently is `.unknown`.
    /// - Throws: `CardError` when the card gave no answer.
    package static func identify(on channel: any CardChannel) async throws(CardError) -> CardIdentity {
        let channel = CompletingChannel(channel)
        guard let applicationID = try await selectApplication(on: channel),
            applicationID != ApplicationID.travelDocument
        else { return .unknown }

        let directory = try await read(ApplicationDirectory.shortFileID, on: channel)
        guard let directory, let applications = try? ApplicationDirectory(directory).applicationIDs,
            applications.contains(ApplicationID.eid)
        else { return .unknown }

        let file = try await read(CardAccess.shortFileID, on: channel)
        guard let file, let cardAccess = try? CardAccess(file) else { return .unknown }

        let answer = try await channel.transmit(.setPACE(cardAccess.pace, .pin))
        guard let status = PINStatus(answer.status) else { return .unknown }
        return .eid(EIDProfile(applicationID: applicationID, cardAccess: cardAccess, status: status))
    }

    /// Returns the first application that the card has. Some cards have an application and refuse to select it (6982), or
    /// have no SELECT by name (6D00).
    private static func selectApplication(on channel: any CardChannel) async throws(CardError) -> [UInt8]? {
        for id in [ApplicationID.eid, ApplicationID.persoSim, ApplicationID.travelDocument] {
            let status = try await channel.transmit(.select(application: id)).status
            guard [0x9000, 0x6982, 0x6D00].contains(status.value) else { continue }
            return try await channel.transmit(.selectMasterFile).status == .ok ? id : nil
        }
        return nil
    }

    /// Reads a file; nil when it cannot be read.
    /// - Throws: `CardError` when the card gave no answer, or the task was cancelled.
    private static func read(_ shortFileID: UInt8, on channel: any CardChannel) async throws(CardError) -> [UInt8]? {
        do throws(ChipError) {
            return try await TransparentFile.read("a file", shortFileID, le: 256) { command throws(ChipError) in
                try await channel.exchange(command)
            }
        } catch {
            if case .card(let error) = error { throw error }
            return nil
        }
    }
}

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
        self.applicationID = applicationID
        self.cardAccess = cardAccess
        self.status = status
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

/// EF.DIR: the applications of a card. ISO 7816-4, 12.2.3.
package struct ApplicationDirectory: Sendable, Equatable {
    /// The application identifiers in the order of the file.
    package let applicationIDs: [[UInt8]]

    package static let shortFileID: UInt8 = 0x1E

    /// Reads application templates (61 with 4F inside) and single application identifiers (4F). Other objects are
    /// ignored. What is neither ends the content, since a file may be longer than its content.
    /// - Throws: `Malformed` for a malformed template or identifier.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        var reader = BERReader(bytes)
        var found: [[UInt8]] = []
        while let first = reader.remainder.first {
            let isEntry = first == 0x61 || first == 0x4F
            guard isEntry || first != 0x00 && first != 0xFF else { break }
            let object: BERTLV
            do throws(Malformed) {
                object = try reader.next()
            } catch {
                guard isEntry else { break }
                throw error
            }
            switch object.tag {
            case 0x61: found += try object.children.filter { $0.tag == 0x4F }.map(\.value)
            case 0x4F: found.append(object.value)
            default: break
            }
        }
        applicationIDs = found
    }
}
