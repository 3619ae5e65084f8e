// SPDX-License-Identifier: GPL-3.0-or-later

/// Why a command got no answer.
///
/// Only `mute`, `tooLong` and `other` say that the card or its reader has failed.
package enum CardError: Error, Sendable, Equatable {
    /// The card or the reader was removed.
    case removed
    /// Another program reset the card, which ends every secure channel.
    case reset
    /// The card does not answer, or its answer has no status word.
    case mute
    /// Another program uses the reader exclusively.
    case exclusive
    /// The attempt was ended from this side: its task was cancelled, or its connection was closed.
    case cancelled
    /// This computer has no thread, descriptor or memory left for the card.
    case noResources
    /// The service of the reader is not available: pcscd was stopped, or the device is lost.
    case serviceUnavailable
    /// Access to the service was refused by polkit or by the permissions of a device.
    case accessDenied
    /// The reader cannot transfer a command or answer of this size: it has no extended lengths.
    case tooLong
    /// Another error; words for the log without card data.
    case other(String)
}

/// Sends command APDUs to a card in a reader or to a virtual card.
package protocol CardChannel: Sendable {
    /// Sends one command and returns its answer. Calls must not overlap.
    /// - Throws: `CardError` when no answer came.
    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU
}
