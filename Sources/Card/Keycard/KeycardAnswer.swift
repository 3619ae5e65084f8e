// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Text

/// The answer to a command inside a channel. Its data may be secret.
package struct KeycardAnswer: ~Copyable, Sendable {
    package let data: Secret
    package let status: StatusWord

    package init(data: consuming Secret, _ status: StatusWord) {
        self.data = data
        self.status = status
    }

    /// Splits decrypted bytes into data and status word; nil for less than two bytes.
    package init?(_ plain: borrowing Secret) {
        let count = plain.count - 2
        guard count >= 0, let data = plain.part(0..<count) else { return nil }
        let value = plain.withBytes { UInt16($0[count]) << 8 | UInt16($0[count + 1]) }
        self.init(data: data, StatusWord(value))
    }

    /// Data and status word.
    package var plain: Secret { data.appending([status.sw1, status.sw2]) }

    /// The data as ordinary bytes, for data that are not secret.
    package var bytes: [UInt8] { data.withBytes { Array($0) } }
}

/// One side of a channel between a terminal and a Keycard.
///
/// The terminal alternates `wrap(command)` and `unwrap(answer)`, the card `unwrap(command)` and `wrap(answer)`. After an
/// error the channel is over, because the counters of both sides differ.
package protocol KeycardChannel: AnyObject {
    /// Protects a command; `header.data` is ignored.
    func wrap(_ header: CommandAPDU, data: borrowing Secret) throws(KeycardError) -> CommandAPDU
    /// Checks and decrypts an answer.
    func unwrap(_ answer: ResponseAPDU) throws(KeycardError) -> KeycardAnswer
}
