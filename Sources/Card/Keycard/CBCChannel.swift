// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
package import Text

/// The channel of 3.x: AES-256-CBC with a CBC-MAC. The MAC of each message is the initial vector of the next one.
package final class CBCChannel: KeycardChannel {
    private let encryptionKey: Secret
    private let macKey: Secret
    private var vector: [UInt8]
    /// The vector before the last command. A card that refuses a command without decrypting it protects its answer with
    /// this vector.
    private var lastVector: [UInt8]

    /// The maximum number of bytes of plain data in a command or answer.
    package static let maximumCount = 223

    /// Makes the keys: SHA-512 of shared x coordinate, pairing key and salt.
    package init(
        shared: borrowing Secret,
        pairingKey: borrowing Secret,
        salt: [UInt8],
        vector: [UInt8]
    ) throws(CryptoError) {
        let hash = try DigestAlgorithm.sha512.hash(shared.appending(pairingKey), suffix: salt)
        guard let encryption = hash.part(0..<32), let mac = hash.part(32..<64), vector.count == AES.blockSize else {
            throw .invalidLength
        }
        encryptionKey = encryption
        macKey = mac
        self.vector = vector
        lastVector = vector
    }

    // MARK: Terminal

    package func wrap(_ header: CommandAPDU, data: borrowing Secret) throws(KeycardError) -> CommandAPDU {
        guard data.count <= Self.maximumCount else { throw .wrongForm }
        let body = try encrypt(data) { [header.cla, header.ins, header.p1, header.p2, $0] }
        return CommandAPDU(header.cla, header.ins, header.p1, header.p2, data: body)
    }

    package func unwrap(_ answer: ResponseAPDU) throws(KeycardError) -> KeycardAnswer {
        guard answer.status == .ok else { throw .channelLost(answer.status) }
        let (encrypted, mac) = try check(answer.data) { [$0] }
        var result = KeycardAnswer(Secret([]))
        // A card that has not decrypted the command answers with a status word alone. With this vector another answer
        // looks like one in one of 2¹¹² cases; with the usual vector this answer has a right padding in one of 200.
        if let plain = try decrypt(encrypted, lastVector), plain.count == 2 { result = KeycardAnswer(plain) }
        if result == nil, let plain = try decrypt(encrypted, vector) { result = KeycardAnswer(plain) }
        guard let result else { throw .malformed("an answer in the channel has no status word") }
        lastVector = mac
        vector = mac
        return result
    }

    // MARK: Card

    /// Checks and decrypts the data of a command.
    /// - Throws: `.tooShort`, `.wrongMAC` or `.wrongPadding`.
    package func unwrap(_ command: CommandAPDU) throws(KeycardError) -> Secret {
        guard command.data.count >= AES.blockSize else { throw .tooShort }
        let header = { [command.cla, command.ins, command.p1, command.p2, $0] }
        guard let (encrypted, mac) = try? check(command.data, header) else { throw .wrongMAC }
        let plain = (try? decrypt(encrypted, vector)) ?? nil
        lastVector = vector
        vector = mac
        guard let plain else { throw .wrongPadding }
        return plain
    }

    /// Protects an answer.
    package func wrap(_ answer: borrowing KeycardAnswer) throws(KeycardError) -> [UInt8] {
        try encrypt(answer.plain) { [$0] }
    }

    // MARK: Parts

    /// Encrypts, and makes the MAC over header and ciphertext. The result is the MAC followed by the ciphertext.
    private func encrypt(_ data: borrowing Secret, _ header: (UInt8) -> [UInt8]) throws(KeycardError) -> [UInt8] {
        let encrypted = try crypto(AES.encrypt(Padding.add(to: data), key: encryptionKey, initialVector: vector))
        let mac = try authenticate(header, encrypted)
        lastVector = vector
        vector = mac
        return mac + encrypted
    }

    private func check(
        _ body: [UInt8],
        _ header: (UInt8) -> [UInt8]
    ) throws(KeycardError) -> (encrypted: [UInt8], mac: [UInt8]) {
        guard body.count >= 2 * AES.blockSize, body.count <= 255, body.count.isMultiple(of: AES.blockSize) else {
            throw .malformed("a message in the channel has a wrong length")
        }
        let mac = Array(body.prefix(AES.blockSize))
        let encrypted = Array(body.dropFirst(AES.blockSize))
        guard ConstantTime.equal(try authenticate(header, encrypted), mac) else {
            throw .wrongMAC
        }
        return (encrypted, mac)
    }

    private func authenticate(_ header: (UInt8) -> [UInt8], _ encrypted: [UInt8]) throws(KeycardError) -> [UInt8] {
        let start = header(UInt8(truncatingIfNeeded: AES.blockSize + encrypted.count))
        let message = start + [UInt8](repeating: 0, count: AES.blockSize - start.count) + encrypted
        return try crypto(Array(try AES.encrypt(message, key: macKey).suffix(AES.blockSize)))
    }

    private func decrypt(_ encrypted: [UInt8], _ vector: [UInt8]) throws(KeycardError) -> Secret? {
        let padded = try crypto(AES.decrypt(encrypted, key: encryptionKey, initialVector: vector))
        return Padding.remove(from: padded)
    }
}

/// Why the card rejects a command in the channel.
extension KeycardError {
    /// The data are shorter than a MAC. The channel stays open.
    package static let tooShort = malformed("a command in the channel is shorter than a MAC")
    package static let wrongMAC = malformed("the MAC of a message in the channel is wrong")
    /// The MAC is right, but the padding is wrong: the command was encrypted with another initial vector. The channel
    /// stays open.
    package static let wrongPadding = malformed("the padding of a command in the channel is wrong")
}
