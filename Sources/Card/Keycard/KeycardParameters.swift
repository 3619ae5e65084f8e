// SPDX-License-Identifier: GPL-3.0-or-later

/// The instruction codes of the applet.
package enum KeycardInstruction {
    package static let select: UInt8 = 0xA4
    package static let openSecureChannel: UInt8 = 0x10
    package static let mutuallyAuthenticate: UInt8 = 0x11
    package static let pair: UInt8 = 0x12
    package static let unpair: UInt8 = 0x13
    package static let identifyCard: UInt8 = 0x14
    package static let securedCommand: UInt8 = 0x18
    package static let verifyPIN: UInt8 = 0x20
    package static let changePIN: UInt8 = 0x21
    package static let unblockPIN: UInt8 = 0x22
    package static let sign: UInt8 = 0xC0
    package static let exportKey: UInt8 = 0xC2
    package static let loadKey: UInt8 = 0xD0
    package static let generateMnemonic: UInt8 = 0xD2
    package static let removeKey: UInt8 = 0xD3
    package static let storeData: UInt8 = 0xE2
    package static let getStatus: UInt8 = 0xF2
    package static let factoryReset: UInt8 = 0xFD
    package static let initialize: UInt8 = 0xFE
}

/// Constants that the card and its terminal share.
package enum KeycardParameters {
    /// The application identifier of the first instance of the applet.
    package static let applicationID: [UInt8] = [0xA0, 0x00, 0x00, 0x08, 0x04, 0x00, 0x01, 0x01, 0x01]
    /// The class of all commands but SELECT.
    package static let commandClass: UInt8 = 0x80
    package static let pinCount = 6
    package static let pukCount = 12
    /// The pairing secret, pairing keys, challenges and salts have 32 bytes.
    package static let secretCount = 32
    /// The pairing slots of a 3.x card.
    package static let slotCount = 5
    package static let pinTries = 3
    package static let pukTries = 5
    /// The pairing password that clients use for a new card.
    package static let defaultPairingPassword = "KeycardDefaultPairing"
    package static let pairingSalt = "Keycard Pairing Password Salt"
    package static let pairingIterations = 50_000
    /// The label of the channel of 4.0, in its key derivation and in the signature of the card.
    package static let channelLabel = Array("sc_v2_ccm".utf8)
}
