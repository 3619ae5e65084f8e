// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import Keycard
import TestSupport
import Testing
import Text

@testable import VirtualKeycard

/// The cards with which the dialogues run. `make peer-test` runs them with the applet of the vendor.
enum CardModel: CaseIterable, Sendable, CustomTestStringConvertible {
    case v3_1
    case v4_0
    /// The applet 3.1 of the vendor, in a card process.
    case applet

    static let allCases: [CardModel] = CardProcess.path == nil ? [.v3_1, .v4_0] : [.applet]
    /// The cards with pairings.
    static let paired = allCases.filter(\.isPaired)

    var isPaired: Bool { self != .v4_0 }

    var testDescription: String {
        switch self {
        case .v3_1: "3.1"
        case .v4_0: "4.0"
        case .applet: "the vendor's applet 3.1"
        }
    }
}

/// What runs the commands of a card, and what a test may look at.
protocol CardInside {
    /// Compressed keys of the authorities of the card.
    var authorities: Set<[UInt8]> { get }
    func process(_ command: [UInt8]) -> [UInt8]
    /// The card loses power.
    func reset()
    /// INIT in its short form, as other clients send it. The PUK begins with the PIN.
    func initializeWithoutDuressPIN()
    var state: CardState { get }
    func hasPIN(_ pin: String) -> Bool
    func hasDuressPIN(_ pin: String) -> Bool
}

struct CardState: Sendable {
    var isInitialized = false
    var keyUID: [UInt8]?
    var freeSlots = 0
    var pinTries = 0
    var duressTries = 0
    var pukTries = 0
    /// How often the card has compared a PIN or PUK; 0 if this is not known.
    var checks = 0
}

/// Our virtual card.
final class VirtualInside: CardInside {
    private let applet: VirtualApplet
    let authorities: Set<[UInt8]>

    init(_ version: KeycardVersion) throws {
        let authority = try PrivateKey.generate()
        authorities = [authority.publicKey.compressed]
        applet = try VirtualApplet(version, identity: try AppletIdentity(signedBy: authority), sources: CardSources())
    }

    func process(_ command: [UInt8]) -> [UInt8] { applet.process(command) }
    func reset() { applet.reset() }

    func initializeWithoutDuressPIN() {
        let plain = Secret((Known.pin + Known.pin + Known.pin).utf8)
        let extra = applet.version == .v3_1 ? Known.pairingSecret : []
        try? applet.setSecrets(plain.appending(extra), extra: extra.count)
        applet.pairingKeys.setSecret(Secret(Known.pairingSecret))
    }

    var state: CardState {
        var state = CardState(keyUID: applet.wallet.keyUID, freeSlots: applet.pairingKeys.free)
        guard applet.secrets != nil else { return state }
        state.isInitialized = true
        state.pinTries = applet.secrets?.main.tries ?? 0
        state.duressTries = applet.secrets?.duress.tries ?? 0
        state.pukTries = applet.secrets?.puk.tries ?? 0
        state.checks = (applet.secrets?.main.checks ?? 0) + (applet.secrets?.puk.checks ?? 0)
        return state
    }

    func hasPIN(_ pin: String) -> Bool { applet.secrets?.main.equals(Secret(pin.utf8)) == true }
    func hasDuressPIN(_ pin: String) -> Bool { applet.secrets?.duress.equals(Secret(pin.utf8)) == true }
}

/// The applet of the vendor. Each object is a card that is new from the factory, and ends the card before.
final class AppletInside: CardInside {
    private let card: CardProcess
    let authorities: Set<[UInt8]>

    init() throws {
        card = try CardProcess()
        try card.ask("fresh")
        authorities = [hex(try JSON(try card.ask("status").utf8)["ca"]?.string ?? "")]
    }

    func process(_ command: [UInt8]) -> [UInt8] { hex(ask("apdu \(Hex.encode(command))")) }
    func reset() { _ = ask("power") }

    func initializeWithoutDuressPIN() {
        let secret = Hex.encode(Known.pairingSecret)
        _ = ask("init pin=\(Known.pin) puk=\(Known.pin)\(Known.pin) secret=\(secret) duress=none")
    }

    var state: CardState {
        let inside = inside
        return CardState(
            isInitialized: inside["initialised"]?.bool ?? false,
            keyUID: inside["keyUid"]?.string.map { hex($0) },
            freeSlots: inside["freeSlots"]?.int ?? 0,
            pinTries: inside["pin"]?["tries"]?.int ?? 0,
            duressTries: inside["duressPin"]?["tries"]?.int ?? 0,
            pukTries: inside["puk"]?["tries"]?.int ?? 0
        )
    }

    func hasPIN(_ pin: String) -> Bool { inside["pin"]?["value"]?.string == pin }
    func hasDuressPIN(_ pin: String) -> Bool { inside["duressPin"]?["value"]?.string == pin }

    private var inside: JSON {
        do {
            return try card.peek()
        } catch {
            Issue.record(error)
            return .null
        }
    }

    private func ask(_ line: String) -> String {
        do {
            return try card.ask(line)
        } catch {
            Issue.record(error)
            return ""
        }
    }
}
