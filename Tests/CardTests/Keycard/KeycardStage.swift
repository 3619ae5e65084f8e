// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import TestSupport
import Testing
import Text

@testable import VirtualKeycard

/// Secrets of the cards of these tests.
enum Known {
    static let pin = "123456"
    static let newPIN = "654321"
    static let puk = "987654321098"
    static let words = "legal winner thank year wave sausage worth useful legal winner thank yellow"
    static let pairingSecret = [UInt8](repeating: 0x5A, count: 32)
    static let path = DerivationPath.firstEthereumAddress

    static func mnemonic() throws -> Mnemonic { try Mnemonic(words: Secret(words.utf8)) }

    /// The public key of `path` by our own BIP-32.
    static func publicKey() throws -> PublicKey {
        try ExtendedPrivateKey(seed: try mnemonic().seed()).derive(path).key.publicKey
    }
}

/// A Keycard as a channel, with a fault at one command.
actor KeycardStage: CardChannel {
    let model: CardModel
    let trust: KeycardTrust
    private let inside: any CardInside
    private var fault: (index: Int, fault: CardFault)?
    private var last: [UInt8] = [0x90, 0x00]
    private(set) var count = 0
    private(set) var commands: [[UInt8]] = []
    private var isGone = false

    init(_ model: CardModel) throws {
        self.model = model
        let inside: any CardInside =
            switch model {
            case .v3_1: try VirtualInside(.v3_1)
            case .v4_0: try VirtualInside(.v4_0)
            case .applet: try AppletInside()
            }
        trust = KeycardTrust(authorities: inside.authorities)
        self.inside = inside
    }

    /// Puts the card into a reader. The fault happens at the command with this index.
    func insert(_ fault: (index: Int, fault: CardFault)? = nil) {
        inside.reset()
        self.fault = fault
        (count, last, commands, isGone) = (0, [0x90, 0x00], [], false)
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard !isGone else { throw .removed }
        let index = count
        count += 1
        commands.append(command.bytes)
        let previous = last
        let answer: [UInt8]
        switch fault?.index == index ? fault?.fault : nil {
        case nil: answer = inside.process(command.bytes)
        case .removedBefore:
            isGone = true
            throw .removed
        case .removedAfter:
            _ = inside.process(command.bytes)
            isGone = true
            throw .removed
        case .garbled:
            let real = inside.process(command.bytes)
            answer = real.dropLast(2).map { $0 &* 31 &+ 7 } + real.suffix(2)
        case .failure: answer = [0x6F, 0x00]
        case .refused: answer = [0x69, 0x82]
        case .wrongMAC:
            var real = inside.process(command.bytes)
            real[real.count > 2 ? real.count - 3 : 1] ^= 1
            answer = real
        case .replayed:
            _ = inside.process(command.bytes)
            answer = previous
        }
        last = answer
        guard let response = ResponseAPDU(bytes: answer) else { throw .mute }
        return response
    }

    // MARK: What a test may look at

    var state: CardState { inside.state }
    var isInitialized: Bool { state.isInitialized }
    var keyUID: [UInt8]? { state.keyUID }
    var freeSlots: Int { state.freeSlots }
    var pinTries: Int { state.pinTries }
    var duressTries: Int { state.duressTries }
    var pukTries: Int { state.pukTries }
    var isDuressDistinct: Bool {
        !inside.hasDuressPIN(Known.pin) && !inside.hasDuressPIN(String(Known.puk.prefix(6)))
    }
    /// Whether the card has the secrets of these tests and a duress PIN of its own.
    var wasInitialized: Bool { hasPIN(Known.pin) && isDuressDistinct }
    func hasPIN(_ pin: String) -> Bool { inside.hasPIN(pin) }
    func run(_ command: [UInt8]) -> [UInt8] { inside.process(command) }
    func initializeWithoutDuressPIN() { inside.initializeWithoutDuressPIN() }

    // MARK: Preparing

    func select(random: KeycardRandom = .system) async throws -> KeycardApplet {
        try await KeycardApplet.select(on: self, trust: trust, random: random)
    }

    /// An initialised card, with keys if wanted. The pairing is nil for 4.0.
    static func ready(
        _ model: CardModel,
        loaded: Bool = true,
        random: KeycardRandom = .system
    ) async throws -> (card: KeycardStage, pairing: PairingBox?) {
        let card = try KeycardStage(model)
        let applet = try await card.select(random: random)
        try await applet.initializeWithKnownSecrets()
        var pairing: PairingBox?
        if model.isPaired {
            pairing = PairingBox(try await applet.pair(secret: Secret(Known.pairingSecret)))
        }
        if loaded {
            let applet = try await card.open(pairing)
            _ = try await applet.verifyPIN(Secret(Known.pin.utf8))
            _ = try await applet.loadWallet(try Known.mnemonic())
        }
        return (card, pairing)
    }

    /// Selects the applet and opens its channel.
    nonisolated func open(_ pairing: PairingBox?) async throws -> KeycardApplet {
        let applet = try await select()
        if let pairing {
            try await applet.open(pairing.pairing)
        } else {
            try await applet.openWithCertificate()
        }
        return applet
    }
}

/// A pairing that may be used many times.
final class PairingBox: Sendable {
    let pairing: KeycardPairing
    init(_ pairing: consuming KeycardPairing) { self.pairing = pairing }
}

extension KeycardApplet {
    /// Initialises the card with the secrets of these tests.
    func initializeWithKnownSecrets() async throws(KeycardError) {
        try await initialize(
            pin: Secret(Known.pin.utf8),
            puk: Secret(Known.puk.utf8),
            pairingSecret: Secret(Known.pairingSecret)
        )
    }
}
