// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

extension CommandAPDU {
    /// SELECT by application identifier without answer data. Le is absent, since German cards refuse it.
    /// ISO 7816-4, 11.2.2.
    package static func select(application id: [UInt8]) -> CommandAPDU {
        CommandAPDU(0x00, 0xA4, 0x04, 0x0C, data: id)
    }

    /// SELECT of the master file 3F00.
    package static let selectMasterFile = CommandAPDU(0x00, 0xA4, 0x00, 0x0C, data: [0x3F, 0x00])

    /// READ BINARY of the current file, from an offset of 0 to 32 767. ISO 7816-4, 11.3.3.
    package static func readBinary(offset: Int, le: Int = 256) -> CommandAPDU {
        CommandAPDU(
            0x00,
            0xB0,
            UInt8(truncatingIfNeeded: offset >> 8 & 0x7F),
            UInt8(truncatingIfNeeded: offset),
            le: le
        )
    }

    /// READ BINARY from the start of a file by its short identifier, 1 to 30. The file becomes the current one.
    package static func readBinary(shortFileID: UInt8, le: Int = 256) -> CommandAPDU {
        CommandAPDU(0x00, 0xB0, 0x80 | shortFileID & 0x1F, 0x00, le: le)
    }

    /// MSE:Set AT for PACE. Object 84 is always sent, since a card may offer several sets of domain parameters. Le is
    /// absent, since German cards refuse it. TR-03110-3 B.11.1.
    ///
    /// `chat` is the object 7F4C; it is sent only when terminal authentication follows.
    package static func setPACE(_ parameters: PACEParameters, _ id: PasswordID, chat: [UInt8]? = nil) -> CommandAPDU {
        let objects = [
            BERTLV(0x80, parameters.protocolID), BERTLV(0x83, [id.rawValue]), BERTLV(0x84, [parameters.parameterID]),
        ]
        return CommandAPDU(0x00, 0x22, 0xC1, 0xA4, data: objects.flatMap(\.encoded) + (chat ?? []))
    }
}
