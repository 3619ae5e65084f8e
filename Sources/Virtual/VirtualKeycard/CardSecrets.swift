// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import Keycard
import Text

/// The PINs and the PUK of a card.
struct CardSecrets: ~Copyable {
    var main: CardPIN
    var duress: CardPIN
    var puk: CardPIN
    /// Whether the counters and changes are those of the duress PIN: the one that VERIFY accepted last.
    var choosesDuress = false
    /// Whether keys are derived with the chain code of the duress wallet.
    var isDuressWallet = false

    init(main: consuming CardPIN, duress: consuming CardPIN, puk: consuming CardPIN) {
        self.main = main
        self.duress = duress
        self.puk = puk
    }

    var pinTries: Int { choosesDuress ? duress.tries : main.tries }
    var isValidated: Bool { choosesDuress ? duress.isValidated : main.isValidated }

    /// SELECT: 3.1 goes back to the main PIN, 4.0 does not.
    mutating func forgetValidation(keepsChoice: Bool) {
        main.reset()
        duress.reset()
        puk.reset()
        if !keepsChoice { choosesDuress = false }
    }

    /// VERIFY PIN of 3.1: both PINs are compared, and the duress PIN wins if they are equal.
    mutating func verifyBoth(_ pin: borrowing Secret) -> Bool {
        let isMain = main.check(pin)
        let isDuress = duress.check(pin)
        if isDuress {
            main.resetAndUnblock()
        } else if isMain {
            duress.resetAndUnblock()
        } else {
            return false
        }
        choosesDuress = isDuress
        isDuressWallet = isDuress
        return true
    }

    /// VERIFY PIN of 4.0: the main PIN is compared only if the value is not the duress PIN.
    mutating func verifyDuressFirst(_ pin: borrowing Secret) -> Bool {
        if duress.check(pin) {
            choosesDuress = true
            isDuressWallet = true
        } else if main.check(pin) {
            duress.resetAndUnblock()
            choosesDuress = false
            isDuressWallet = false
        } else {
            return false
        }
        return true
    }

    /// Replaces the chosen PIN, which is validated then.
    mutating func change(to pin: consuming Secret) {
        if choosesDuress {
            duress.replace(with: pin)
        } else {
            main.replace(with: pin)
        }
    }

    mutating func unblock(to pin: consuming Secret, freesBoth: Bool) {
        if freesBoth || choosesDuress { duress.resetAndUnblock() }
        if freesBoth || !choosesDuress { main.resetAndUnblock() }
        change(to: pin)
        puk.reset()
    }
}

/// The place for the master key.
struct WalletSlot: ~Copyable {
    private(set) var content: CardWallet?
    /// Whether 4.0 says that it has LEE keys. The recorded applet does so until a key is loaded or removed.
    private(set) var claimsLEE = true

    var isEmpty: Bool { keyUID == nil }

    var keyUID: [UInt8]? {
        switch content {
        case nil: nil
        case .some(let wallet): wallet.keyUID
        }
    }

    mutating func load(_ wallet: consuming CardWallet) {
        content = consume wallet
        claimsLEE = false
    }

    mutating func clear() {
        content = nil
        claimsLEE = false
    }
}

/// The pairing secret and the five slots; only 3.1.
struct PairingSlots: ~Copyable {
    static let count = 5

    private(set) var secret = Secret([])
    private var keys: [Int: SecretKeeper] = [:]

    /// Keeps a key that may be copied out many times.
    private final class SecretKeeper {
        let key: Secret
        init(_ key: consuming Secret) { self.key = key }
    }

    var free: Int { Self.count - keys.count }

    var firstFree: Int? { (0..<Self.count).first { keys[$0] == nil } }

    mutating func setSecret(_ secret: consuming Secret) { self.secret = secret }

    mutating func set(_ slot: Int, _ key: consuming Secret) { keys[slot] = SecretKeeper(key) }

    mutating func remove(_ slot: Int) { keys[slot] = nil }

    func key(_ slot: Int) -> Secret? { keys[slot]?.key.clone() }
}

/// The master key of a card, with its two chain codes.
struct CardWallet: ~Copyable {
    private let master: ExtendedPrivateKey
    let keyUID: [UInt8]

    init(seed: borrowing Secret) throws(CryptoError) {
        let master = try ExtendedPrivateKey(seed: seed)
        keyUID = try master.keyUID
        self.master = master
    }

    /// Derives a key and its chain code.
    ///
    /// In the duress wallet the master chain code is replaced by its SHA-256.
    func derive(_ path: DerivationPath, duress: Bool) throws(CryptoError) -> ExtendedPrivateKey {
        let code = duress ? try DigestAlgorithm.sha256.hash(master.chainCode) : master.chainCode.clone()
        return try ExtendedPrivateKey(try master.key.clone(), chainCode: code).derive(path)
    }
}
