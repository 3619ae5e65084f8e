// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import Secp256k1
import Secrets
import TestSupport
import Testing

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

/// What happens to one command.
enum Fault: String, CaseIterable, Sendable {
    /// The card leaves before the command arrives.
    case removedBefore
    /// The card leaves after it has run the command.
    case removedAfter
    /// The answer has other bytes.
    case garbled
    /// The card answers 6F00 and does not run the command.
    case failure
    /// The card answers 6982 and does not run the command.
    case refused
    /// One bit of the answer is wrong.
    case wrongMAC
    /// The card runs the command, and its answer is replaced by the one before.
    case replayed
}

/// A virtual Keycard as a channel, with a fault at one command.
actor TestCard: CardChannel {
    let applet: VirtualApplet
    let version: VirtualApplet.Version
    let trust: KeycardTrust
    private var fault: (index: Int, fault: Fault)?
    private var last: [UInt8] = [0x90, 0x00]
    private(set) var count = 0
    private(set) var commands: [[UInt8]] = []
    private var isGone = false

    init(_ version: VirtualApplet.Version) throws {
        let authority = try PrivateKey.generate()
        self.version = version
        trust = KeycardTrust(authorities: [authority.publicKey.compressed])
        let identity = version == .v4_0 ? try CardIdentity(signedBy: authority) : nil
        applet = try VirtualApplet(version, identity: identity, sources: CardSources())
    }

    /// Puts the card into a reader. The fault happens at the command with this index.
    func insert(_ fault: (index: Int, fault: Fault)? = nil) {
        applet.reset()
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
        case nil: answer = applet.process(command.bytes)
        case .removedBefore:
            isGone = true
            throw .removed
        case .removedAfter:
            _ = applet.process(command.bytes)
            isGone = true
            throw .removed
        case .garbled:
            let real = applet.process(command.bytes)
            answer = real.dropLast(2).map { $0 &* 31 &+ 7 } + real.suffix(2)
        case .failure: answer = [0x6F, 0x00]
        case .refused: answer = [0x69, 0x82]
        case .wrongMAC:
            var real = applet.process(command.bytes)
            real[real.count > 2 ? real.count - 3 : 1] ^= 1
            answer = real
        case .replayed:
            _ = applet.process(command.bytes)
            answer = previous
        }
        last = answer
        guard let response = ResponseAPDU(bytes: answer) else { throw .mute }
        return response
    }

    // MARK: What a test may look at

    var isInitialized: Bool { applet.secrets != nil }
    var keyUID: [UInt8]? { applet.wallet.keyUID }
    var freeSlots: Int { applet.pairingKeys.free }
    var pinTries: Int { applet.secrets?.main.tries ?? 0 }
    var duressTries: Int { applet.secrets?.duress.tries ?? 0 }
    var pukTries: Int { applet.secrets?.puk.tries ?? 0 }
    /// How often the card has compared a PIN or PUK.
    var checks: Int {
        guard applet.secrets != nil else { return 0 }
        return (applet.secrets?.main.checks ?? 0) + (applet.secrets?.puk.checks ?? 0)
    }
    var isDuressDistinct: Bool {
        let duress = applet.secrets?.duress.equals(Secret(Known.pin.utf8)) == true
        return !duress && applet.secrets?.duress.equals(Secret(Known.puk.utf8.prefix(6))) != true
    }
    /// Whether the card has the secrets of these tests and a duress PIN of its own.
    var wasInitialized: Bool { hasPIN(Known.pin) && isDuressDistinct }
    func hasPIN(_ pin: String) -> Bool { applet.secrets?.main.equals(Secret(pin.utf8)) == true }
    func run(_ command: [UInt8]) -> [UInt8] { applet.process(command) }

    // MARK: Preparing

    func select() async throws -> KeycardApplet { try await KeycardApplet.select(on: self, trust: trust) }

    /// An initialised card, with keys if wanted. The pairing is nil for 4.0.
    static func ready(
        _ version: VirtualApplet.Version,
        loaded: Bool = true
    ) async throws -> (card: TestCard, pairing: PairingBox?) {
        let card = try TestCard(version)
        let applet = try await card.select()
        try await applet.initialize(
            pin: Secret(Known.pin.utf8),
            puk: Secret(Known.puk.utf8),
            pairingSecret: Secret(Known.pairingSecret)
        )
        var pairing: PairingBox?
        if version == .v3_1 {
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

extension VirtualApplet.Version: CustomTestStringConvertible {
    package var testDescription: String { self == .v3_1 ? "3.1" : "4.0" }
}

extension TestCard {
    /// The duress PIN, found by trying all PINs past the counters.
    var duressPIN: [UInt8] {
        for number in 0..<1_000_000 {
            let digits = Array(String(number + 1_000_000).utf8.dropFirst())
            if applet.secrets?.duress.equals(Secret(digits)) == true { return digits }
        }
        return []
    }

    /// INIT in its short form, as other clients send it. The PUK begins with the PIN.
    func initializeWithoutDuressPIN() throws {
        let plain = Secret((Known.pin + Known.pin + Known.pin).utf8)
        let extra = version == .v3_1 ? Known.pairingSecret : []
        try applet.takeSecrets(plain.appending(extra), extra: extra.count)
        applet.pairingKeys.setSecret(Secret(Known.pairingSecret))
    }
}
