// SPDX-License-Identifier: GPL-3.0-or-later

/// What can go wrong between a command and its answer, below any meaning of the answer.
package enum CardError: Error, Sendable, Equatable {
    /// The card left the reader, or the reader left with it.
    case removed
    /// Another program reset the card; every secure channel is gone.
    case reset
    /// The card does not answer, or answers with less than a status word.
    case mute
    /// Another program holds the reader exclusively.
    case exclusive
    /// The service behind the reader is not there (pcscd stopped, device lost).
    case serviceUnavailable
    /// The service refuses us (polkit, device permissions).
    case accessDenied
    /// The reader cannot carry a command or answer of this size (no extended length).
    case tooLong
    /// Anything else, in words for the log; never holds card data.
    case other(String)
}

/// Something that answers command APDUs: a card in a reader, a secure channel round it, a virtual card.
package protocol CardChannel: Sendable {
    /// Sends one command and gives its answer; one at a time.
    /// - Throws: `CardError` when no answer came.
    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU

    /// Where `transmit` does its work, if that is one place: an actor that runs there, too, sends its commands without
    /// a change of threads.
    var executor: (any SerialExecutor)? { get }
}

extension CardChannel {
    package var executor: (any SerialExecutor)? { nil }
}
