// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import Text

/// The passwords of one card, with the rules for their counters. TR-03110-2 3.3, TR-03127 3.5.
struct CardPasswords: ~Copyable {
    /// The retry counter after a right PIN or an unblocking.
    static let tries = 3

    private(set) var pin: Secret
    private(set) var can: Secret
    let puk: Secret
    /// Document number, date of birth and date of expiry of the machine readable zone, with their check digits.
    let mrz: Secret
    /// 0 to 3.
    private(set) var retryCounter: Int
    /// How often the PUK can still unblock the PIN, 0 to 10.
    private(set) var pukCounter: Int
    private(set) var isDeactivated: Bool
    /// The PIN is the five-digit transport PIN, which only allows setting a new PIN.
    private(set) var isTransport: Bool
    /// How many PINs, right or wrong, the card has verified.
    private(set) var judgedPINs = 0

    init(
        pin: consuming Secret,
        can: consuming Secret,
        puk: consuming Secret,
        mrz: consuming Secret,
        retryCounter: Int,
        pukCounter: Int,
        isDeactivated: Bool,
        isTransport: Bool
    ) {
        self.pin = pin
        self.can = can
        self.puk = puk
        self.mrz = mrz
        self.retryCounter = retryCounter
        self.pukCounter = pukCounter
        self.isDeactivated = isDeactivated
        self.isTransport = isTransport
    }

    /// Copies a password for one run of PACE.
    func secret(_ id: PasswordID) -> Secret {
        switch id {
        case .mrz: mrz.clone()
        case .can: can.clone()
        case .pin: pin.clone()
        case .puk: puk.clone()
        }
    }

    /// Counts a try. This comes before the answer, so that removing the card does not save the try.
    mutating func spendTry() {
        retryCounter = max(0, retryCounter - 1)
        judgedPINs += 1
    }

    /// Resets the retry counter after a right PIN.
    mutating func restoreTries() { retryCounter = Self.tries }

    /// Resets the retry counter for one use of the PUK; false when the PUK is used up.
    mutating func unblockWithPUK() -> Bool {
        guard pukCounter > 0 else { return false }
        pukCounter -= 1
        retryCounter = Self.tries
        return true
    }

    /// Sets a new PIN; false unless it has six digits.
    mutating func change(to new: borrowing Secret) -> Bool {
        guard Self.isDigits(new, Self.pinLength) else { return false }
        pin = new.clone()
        isTransport = false
        return true
    }

    /// Sets a new CAN; false unless it has six digits.
    mutating func changeCAN(to new: borrowing Secret) -> Bool {
        guard Self.isDigits(new, Self.canLength) else { return false }
        can = new.clone()
        return true
    }

    private static func isDigits(_ secret: borrowing Secret, _ count: Int) -> Bool {
        secret.count == count && secret.withBytes { $0.allSatisfy { (0x30...0x39).contains($0) } }
    }

    func hasPIN(_ candidate: borrowing Secret) -> Bool {
        pin.withBytes { own in candidate.withBytes { own.elementsEqual($0) } }
    }

    mutating func setActive(_ active: Bool) { isDeactivated = !active }
}
