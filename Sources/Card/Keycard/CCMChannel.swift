// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
package import Text

/// The channel of 4.0: AES-128-CCM over the whole command. A counter is the nonce of a command and of its answer.
package final class CCMChannel: KeycardChannel {
    private let commandKey: Secret
    private let answerKey: Secret
    private var counter: UInt64 = 0

    private static let cipher = AuthenticatedAES.ccm(tagCount: 8)
    private static let nonceCount = 13
    /// The maximum number of bytes of data in a command: header and tag take 13 of 255 bytes.
    package static let maximumCount = 242

    /// Makes the keys from the shared x coordinate.
    package init(shared: borrowing Secret, salt: [UInt8]) throws(CryptoError) {
        let keys = try DigestAlgorithm.sha256.hkdf(
            shared,
            salt: salt,
            info: KeycardParameters.channelLabel,
            count: 32
        )
        guard let first = keys.part(0..<16), let second = keys.part(16..<32) else { throw .invalidLength }
        commandKey = first
        answerKey = second
    }

    /// The bytes over which the card signs when the channel is opened.
    package static func transcript(salt: [UInt8], terminal: [UInt8], card: [UInt8]) -> [UInt8] {
        KeycardParameters.channelLabel + salt + terminal + card
    }

    // MARK: Terminal

    package func wrap(_ header: CommandAPDU, data: borrowing Secret) throws(KeycardError) -> CommandAPDU {
        guard data.count <= Self.maximumCount else { throw .wrongForm }
        let start = [header.cla, header.ins, header.p1, header.p2, UInt8(truncatingIfNeeded: data.count)]
        let plain = Secret(start).appending(data)
        let body = try crypto(Self.cipher.seal(plain, key: commandKey, nonce: nonce))
        return CommandAPDU(KeycardParameters.commandClass, KeycardInstruction.securedCommand, 0, 0, data: body)
    }

    package func unwrap(_ answer: ResponseAPDU) throws(KeycardError) -> KeycardAnswer {
        guard answer.status == .ok else { throw .channelLost(answer.status) }
        let plain = try crypto(Self.cipher.open(answer.data, key: answerKey, nonce: nonce))
        counter += 1
        guard let plain else { throw .malformed("the tag of an answer in the channel is wrong") }
        guard let result = KeycardAnswer(plain) else { throw .malformed("an answer in the channel has no status word") }
        return result
    }

    // MARK: Card

    /// Checks and decrypts a command; nil if its tag or its length is wrong.
    package func unwrap(_ command: CommandAPDU) -> Secret? {
        guard let plain = try? Self.cipher.open(command.data, key: commandKey, nonce: nonce), plain.count >= 5,
            plain.withBytes({ Int($0[4]) }) == plain.count - 5
        else { return nil }
        return plain
    }

    /// Protects an answer.
    package func wrap(_ answer: borrowing KeycardAnswer) throws(KeycardError) -> [UInt8] {
        let body = try crypto(Self.cipher.seal(answer.plain, key: answerKey, nonce: nonce))
        counter += 1
        return body
    }

    private var nonce: [UInt8] {
        [UInt8](repeating: 0, count: Self.nonceCount - 8) + withUnsafeBytes(of: counter.bigEndian) { Array($0) }
    }
}
