// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
package import ReadersVirtual
package import Text

/// The state of a virtual eID card that tests can read; never a password.
package struct VirtualEIDState: Sendable, Equatable {
    /// Command APDUs since the insertion.
    package var apdus: Int
    package var retryCounter: Int
    package var pukCounter: Int
    package var isDeactivated: Bool
    /// Whether the PIN is still the five-digit one.
    package var isTransport: Bool
    /// PINs, right or wrong, that the card has checked since it was made.
    package var judgedPINs: Int
    /// Faults of the description that have not happened yet.
    package var faultsLeft: Int
}

extension VirtualEIDDescription {
    /// Category indicator, service data, capabilities (command chaining, extended length) and status. ISO 7816-4 8.1.1.
    package static let historicalBytes: [UInt8] = [0x80, 0x31, 0xF8, 0x73, 0xF7, 0x41, 0xE0, 0x82, 0x90, 0x00]
}

extension VirtualCard {
    /// Makes a virtual eID card. Takes the secrets out of `description`.
    /// - Throws: `Malformed`, which names the entry.
    package init(_ description: VirtualEIDDescription = .init()) throws(Malformed) {
        let software = try CardOperatingSystem(description)
        let keypad: Keypad = { VirtualKeypadConnection($0, to: $1) }
        try self.init(
            software,
            description.options,
            random: description.random,
            keypad: description.hasKeypad ? keypad : nil
        )
    }

    private var eid: CardOperatingSystem? { software as? CardOperatingSystem }

    /// The state of an eID card; nil for a card of another kind.
    package var eidState: VirtualEIDState? {
        guard let eid else { return nil }
        return VirtualEIDState(
            apdus: apdus,
            retryCounter: eid.passwords.retryCounter,
            pukCounter: eid.passwords.pukCounter,
            isDeactivated: eid.passwords.isDeactivated,
            isTransport: eid.passwords.isTransport,
            judgedPINs: eid.passwords.judgedPINs,
            faultsLeft: faultsLeft
        )
    }

    /// Whether this is the PIN of the eID card. Does not use a try. Only for tests.
    package func hasPIN(_ pin: consuming Secret) -> Bool {
        guard let eid else { return false }
        return eid.passwords.hasPIN(pin)
    }

    /// The bytes that the simulated user types on the keypad for this password.
    func typed(_ password: PasswordID) -> SecretBox? {
        guard let eid else { return nil }
        return SecretBox(eid.passwords.secret(password))
    }

    /// The bytes that the simulated user types for the new PIN.
    func typedForChange() -> SecretBox? {
        guard let eid, eid.passwords.isTransport else { return typed(.pin) }
        return SecretBox(Secret("123456".utf8))
    }
}

extension VirtualReaders {
    /// The state of the eID card of the reader, inserted or not; nil if there is none yet.
    package func cardState(in reader: String) async -> VirtualEIDState? {
        await card(in: reader)?.eidState
    }

    /// Whether the card of the reader, inserted or not, has this PIN; for tests. False for an unknown reader.
    package func cardHasPIN(_ pin: consuming Secret, in reader: String) async -> Bool {
        await card(in: reader)?.hasPIN(pin) ?? false
    }
}
