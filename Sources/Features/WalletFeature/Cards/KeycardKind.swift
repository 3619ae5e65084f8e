// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
import Host
package import ISO7816
package import Keycard
import Store
package import Text

/// Recognises a Keycard and reads what is available without a PIN.
package struct KeycardKind: CardKind {
    private let pairings: KeycardPairings
    private let trust: KeycardTrust

    package init(_ pairings: KeycardPairings, trust: KeycardTrust) {
        self.pairings = pairings
        self.trust = trust
    }

    package func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        let selected = try await Self.answered(await KeycardApplet.select(on: channel, trust: trust))
        guard let applet = selected else { return nil }
        let info = await applet.info
        var profile = KeycardProfile(info: info, isTrusted: info.certificate.map(trust.accepts))
        guard info.isInitialized, info.isSupported else { return profile }
        // A card without a usable channel is a Keycard whose counters are not known. One answer may be disturbed.
        for attempt in 1...2 where profile.status == nil && profile.isTrusted != false {
            let opened = try await Self.answered(await open(applet, info, isAgain: attempt > 1))
            guard opened != false else { break }
            guard opened == true else { continue }
            profile.isPaired = info.generation == .pairing
            profile.status = try await Self.answered(await applet.readStatus())
        }
        return profile
    }

    /// Runs a step; nil if it fails, unless the card does not answer.
    private static func answered<Value>(
        _ step: @autoclosure () async throws(KeycardError) -> Value
    ) async throws(CardError) -> Value? {
        do throws(KeycardError) {
            return try await step()
        } catch {
            guard case .card(let error) = error else { return nil }
            throw error
        }
    }

    /// Opens the channel; false if this computer has no pairing with the card.
    private func open(
        _ applet: KeycardApplet,
        _ info: KeycardInfo,
        isAgain: Bool
    ) async throws(KeycardError) -> Bool {
        if isAgain { try await applet.select() }
        switch info.generation {
        case .certificate: try await applet.openWithCertificate()
        case .pairing:
            guard let uid = info.instanceUID else { return false }
            let found: KeycardPairing?
            do throws(Failure) {
                found = try await pairings.pairing(with: uid)
            } catch {
                Log.warning("a card is shown without its counters: \(error.logText)")
                return false
            }
            guard let found else { return false }
            try await applet.open(found)
        }
        return true
    }
}

/// The members of a Keycard in READER.
package struct KeycardProfile: CardProfile {
    package let kind = "keycard"

    package var info: KeycardInfo
    /// nil before INIT, and for a 3.x card with which this computer is not paired.
    package var status: KeycardStatus?
    /// Whether this computer is paired with a 3.x card.
    package var isPaired = false
    /// Whether badged trusts the certificate of a 4.0 card; nil for a card without one in its answer to SELECT.
    package var isTrusted: Bool?

    package var members: [JSON.Member] {
        func number(_ value: Int?) -> JSON { value.map { .number(String($0)) } ?? .null }
        return [
            JSON.Member("version", info.version.map { .string(KeycardVersion.text($0)) } ?? .null),
            JSON.Member("initialised", .bool(info.isInitialized)),
            JSON.Member("keyUID", info.keyUID.map { .string(Hex.encode($0)) } ?? .null),
            JSON.Member("pinTries", number(status?.pinTries ?? info.pinTries)),
            JSON.Member("pukTries", number(status?.pukTries)),
            JSON.Member("paired", info.generation == .pairing ? .bool(isPaired) : .null),
            JSON.Member("trusted", isTrusted.map { .bool($0) } ?? .null),
        ] + slots + (info.isSupported ? [] : [JSON.Member("supported", .bool(false))])
    }

    /// The pairing slots of a 3.x card, which SELECT shows after INIT.
    private var slots: [JSON.Member] {
        guard let free = info.freeSlots else { return [] }
        return [
            JSON.Member("usedSlots", .number(String(max(0, KeycardParameters.slotCount - free)))),
            JSON.Member("freeSlots", .number(String(free))),
        ]
    }

    /// A card with used-up PIN and PUK can only be reset to its factory state.
    package var isUsable: Bool { status.map { $0.pinTries > 0 || $0.pukTries > 0 } ?? true }
}
