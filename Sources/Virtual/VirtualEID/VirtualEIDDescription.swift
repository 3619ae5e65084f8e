// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
package import ReadersVirtual
package import Text

/// What a virtual eID card is made of: the `simulator` object of the SDK and the `card` object of badged.
/// docs/protocol/readers.md, Virtual reader.
package struct VirtualEIDDescription: VirtualCardDescription {
    /// A file of the card; `content` has at most 65535 bytes, `shortFileID` is 01 to 1E.
    package struct File: Sendable, Equatable {
        package var fileID: UInt16
        package var shortFileID: UInt8
        package var content: [UInt8]

        package init(fileID: UInt16, shortFileID: UInt8, content: [UInt8]) {
            self.fileID = fileID
            self.shortFileID = shortFileID
            self.content = content
        }
    }

    /// A private key, PKCS#8 DER.
    package struct Key: Sendable {
        package var id: Int
        package var content: SecretBox

        package init(id: Int, content: SecretBox) {
            self.id = id
            self.content = content
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
    package var options = VirtualCardOptions()
    /// The trust point: a self-signed CV certificate of an authority, DER. nil: the test authority of badged.
    package var trustPoint: [UInt8]?
    /// The current date of the card; nil: the day from which the trust point is valid. A card has no clock and takes
    /// the date from certificates. TR-03110-2 2.3.2.
    package var currentDate: CVDate?
    package var random = CardRandom.system

    package init() {}

    package func makeCard() throws(Malformed) -> VirtualCard { try VirtualCard(self) }
}
