// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import HDWallet
import ISO7816
import Keycard
import Readers
import Text

/// One Keycard that a workflow uses.
@Loop final class HeldKeycard {
    let lease: CardLease
    let applet: KeycardApplet
    /// What clients see of the card. A change is reported to them.
    var profile: KeycardProfile {
        didSet { lease.update(profile) }
    }

    /// What the card has reported at SELECT, INIT or LOAD KEY.
    var info: KeycardInfo { profile.info }
    /// The counters of the card; nil until the channel is open.
    var status: KeycardStatus? { profile.status }

    init(_ lease: CardLease, _ applet: KeycardApplet, _ profile: KeycardProfile) {
        self.lease = lease
        self.applet = applet
        self.profile = profile
    }

    /// Identifies this card until it is reset: 3.x by the instance UID, 4.0 by the identity key.
    var identity: [UInt8]? { info.instanceUID ?? info.certificate?.identity.compressed }

    /// Reads the counters, which uses no try.
    func refresh() async throws(KeycardError) { profile.status = try await applet.readStatus() }
}

/// The requirements of a workflow for a Keycard.
struct KeycardRequirements: CardRequirements {
    private let trust: KeycardTrust
    /// The keys that the card must have; nil: any card.
    private let keyUID: KeyUIDRule?

    /// The keys that the card must have.
    enum KeyUIDRule: Sendable {
        /// RESET_CARD names the keys that the user wants to destroy; nil: a card without keys.
        case reset([UInt8]?)
        /// A token is sealed under these keys.
        case sealed([UInt8])
    }

    init(_ trust: KeycardTrust, keyUID: KeyUIDRule? = nil) { (self.trust, self.keyUID) = (trust, keyUID) }

    var wrongKind: CardObstacle { .noKeycard }

    func obstacle(of profile: KeycardProfile, in reader: ReaderDescription) -> CardObstacle? {
        // The dialogue refuses other versions by name.
        guard profile.info.isSupported else { return nil }
        switch keyUID {
        case nil: return nil
        case .reset(let keyUID):
            guard profile.info.isInitialized else { return .notInitialisedKeycard }
            return profile.info.keyUID == keyUID ? nil : .otherKeys
        case .sealed(let keyUID): return profile.info.keyUID == keyUID ? nil : .otherSeal
        }
    }

    func open(_ lease: CardLease, _ profile: KeycardProfile) async throws(CardError) -> HeldKeycard {
        do throws(KeycardError) {
            let applet = try await KeycardApplet.select(on: lease.connection, trust: trust)
            var profile = profile
            profile.info = await applet.info
            if !profile.info.isInitialized { profile.status = nil }
            return HeldKeycard(lease, applet, profile)
        } catch {
            if case .card(let error) = error { throw error }
            throw .other("\(error)")
        }
    }
}

extension CardObstacle {
    static let noKeycard = CardObstacle("noKeycard") {
        "The card in reader '\($0)' is not a Keycard: put in a Keycard. If it is one, take it out and put it in again"
    }
    static let otherKeys = CardObstacle("otherKeys") {
        "The card in reader '\($0)' does not have the keys that were named: put in the card with this key UID"
    }
    static let otherSeal = CardObstacle("otherSeal") {
        "The card in reader '\($0)' is not the one that seals the token of the user: put in that card"
    }
    static let notInitialisedKeycard = CardObstacle("notInitialisedKeycard") {
        "The card in reader '\($0)' is in its factory state already: put in the card with the key UID that was named"
    }
}
