// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// The counters of a card, which GET STATUS returns without using a try.
package struct KeycardStatus: Sendable, Equatable {
    package var pinTries: Int
    package var pukTries: Int
    package var hasKey: Bool

    package init(pinTries: Int, pukTries: Int, hasKey: Bool) {
        self.pinTries = pinTries
        self.pukTries = pukTries
        self.hasKey = hasKey
    }

    /// Reads the template A3.
    /// - Throws: `.malformed`, also for an empty answer: version 4.0 sends an empty answer before INIT.
    package init(_ bytes: [UInt8]) throws(KeycardError) {
        guard let template = try? BERTLV(bytes), template.tag == 0xA3, let fields = try? template.children,
            fields.map(\.tag) == [0x02, 0x02, 0x01], fields.allSatisfy({ $0.value.count == 1 })
        else { throw .malformed("GET STATUS: a wrong answer") }
        pinTries = Int(fields[0].value[0])
        pukTries = Int(fields[1].value[0])
        hasKey = fields[2].value[0] != 0
    }
}

/// The card's answer to a PIN or PUK.
package enum KeycardVerdict: Sendable, Equatable {
    case accepted
    /// The secret is wrong, which used a try. With 0 tries the PIN or PUK is blocked.
    case wrong(triesLeft: Int)
}

extension KeycardApplet {
    /// Reads the counters. Uses no try.
    package func readStatus() async throws(KeycardError) -> KeycardStatus {
        try KeycardStatus(try await run(KeycardInstruction.getStatus).withBytes { Array($0) })
    }

    /// Sends the PIN. A wrong PIN uses a try; a PIN of another form than 6 digits is not sent.
    package func verifyPIN(_ pin: consuming Secret) async throws(KeycardError) -> KeycardVerdict {
        guard Self.areDigits(pin, KeycardParameters.pinCount) else { throw .wrongForm }
        return try verdict(try await exchangeForStatus(KeycardInstruction.verifyPIN, pin))
    }

    /// Replaces the PIN that was verified.
    package func changePIN(to pin: consuming Secret) async throws(KeycardError) {
        guard Self.areDigits(pin, KeycardParameters.pinCount) else { throw .wrongForm }
        try await perform(KeycardInstruction.changePIN, p1: 0, pin)
    }

    /// Sets a new PIN for a blocked one. A wrong PUK uses a try.
    ///
    /// The card may now be in the duress wallet: version 4.0 unblocks the PIN that was used last. So the caller must
    /// compare a public key afterwards.
    /// - Throws: `.status(6985)` while the PIN is not blocked, which uses no try.
    package func unblockPIN(puk: consuming Secret, newPIN: consuming Secret) async throws(KeycardError)
        -> KeycardVerdict
    {
        guard Self.areDigits(puk, KeycardParameters.pukCount), Self.areDigits(newPIN, KeycardParameters.pinCount) else {
            throw .wrongForm
        }
        return try verdict(try await exchangeForStatus(KeycardInstruction.unblockPIN, puk.appending(newPIN)))
    }

    private func verdict(_ status: StatusWord) throws(KeycardError) -> KeycardVerdict {
        switch status.value {
        case 0x9000: return .accepted
        case 0x63C0...0x63CF: return .wrong(triesLeft: Int(status.sw2 & 0x0F))
        default: throw .status(status)
        }
    }
}
