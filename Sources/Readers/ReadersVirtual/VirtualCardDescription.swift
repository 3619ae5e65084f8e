// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
import Readers
package import Secrets

/// What a virtual card is made of: the SDK's `simulator` object and our `card` object.
/// docs/protocol/readers.md, Virtual reader.
package struct VirtualCardDescription: CardDescription {
    package struct File: Sendable, Equatable {
        package var fileID: UInt16
        package var shortFileID: UInt8
        package var content: [UInt8]

        package init(fileID: UInt16, shortFileID: UInt8, content: [UInt8]) {
            (self.fileID, self.shortFileID, self.content) = (fileID, shortFileID, content)
        }
    }

    /// A private key, PKCS#8 DER.
    package struct Key: Sendable {
        package var id: Int
        package var content: SecretBox

        package init(id: Int, content: SecretBox) {
            (self.id, self.content) = (id, content)
        }
    }

    /// What happens instead of an answer.
    package struct Fault: Sendable, Equatable {
        package enum Action: Sendable, Equatable {
            /// The card leaves the reader; the command is not executed.
            case remove
            /// No answer; the command is not executed.
            case mute
            /// This status word alone; the command is not executed.
            case status(StatusWord)
            /// The command is executed; the card leaves before its answer arrives.
            case removeAfter
            /// The command is executed; the answer loses its second half.
            case truncate
            /// The command is executed; the answer is replaced by as many random bytes.
            case garbage
        }
        /// So many command APDUs are answered as usual since insertion; the fault hits the next one, once.
        package var afterAPDU: Int
        package var action: Action

        package init(afterAPDU: Int, action: Action) {
            (self.afterAPDU, self.action) = (afterAPDU, action)
        }
    }

    /// nil: the whole default card. Else the mandatory files and these, and nothing more.
    package var files: [File]?
    /// nil together with `files`: the default keys. Else these alone.
    package var keys: [Key]?
    /// nil: the default (PIN 123456, CAN 500540, PUK 9876543210).
    package var pin: SecretBox?
    package var can: SecretBox?
    package var puk: SecretBox?
    /// 0 to 3.
    package var retryCounter: Int = 3
    /// Unblockings left, 0 to 10.
    package var pukCounter: Int = 10
    package var deactivated = false
    /// PIN is a five-digit transport PIN.
    package var transportPIN: SecretBox?
    /// The reader has a keypad; the virtual user types the right values.
    package var hasKeypad = false
    /// Milliseconds that each answer takes at least.
    package var latency: Int = 0
    package var faults: [Fault] = []

    package init() {}
}
