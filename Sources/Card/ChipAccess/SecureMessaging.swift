// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
package import Text

/// Secure messaging: encryption in CBC, then a MAC of 8 bytes, with AES and CMAC or Triple DES and the retail MAC. Each
/// command and each answer increments a send sequence counter. TR-03110-3 F; ICAO 9303-11 9.8.
///
/// One value is one side of one channel. The terminal alternates `wrap(command)` and `unwrap(answer)`, the chip
/// `unwrap(command)` and `wrap(answer)`. A call out of turn, and a malformed or forged message, throws. Then the channel
/// is dead, since the counters of both sides differ and nothing may be sent twice.
package struct SecureMessaging: ~Copyable, Sendable {
    private enum Turn { case command, answer, dead }

    private let keys: SessionKeys
    private var turn = Turn.command
    private let cipher: BlockCipher
    /// The send sequence counter: one block, big-endian. TR-03110-3 F.3.
    private var counter: [UInt8]
    /// Whether the current command has an odd instruction code. Its data, and those of its answer, are in object 85.
    private var isOddInstruction = false

    package init(_ keys: consuming SessionKeys) {
        cipher = keys.cipher
        counter = [UInt8](repeating: 0, count: cipher.blockSize)
        self.keys = keys
    }

    /// Makes the channel of basic access control, whose counter begins with random bytes. ICAO 9303-11 9.8.6.3.
    /// - Throws: `.invalidLength` for a counter that is not one block long.
    package init(_ keys: consuming SessionKeys, counter: [UInt8]) throws(CryptoError) {
        guard counter.count == keys.cipher.blockSize else { throw .invalidLength }
        cipher = keys.cipher
        self.counter = counter
        self.keys = keys
    }

    /// Makes the channel in its state after `exchanges` commands and their answers. An eID-Server secures several
    /// commands before the first answer, each with a value of its own.
    package init(_ keys: consuming SessionKeys, exchanges: UInt32) {
        self.init(keys)
        var count = UInt64(exchanges) * 2
        for index in counter.indices.reversed() {
            counter[index] = UInt8(truncatingIfNeeded: count)
            count >>= 8
        }
    }

    /// Whether the channel refuses all commands and answers.
    package var isDead: Bool { turn == .dead }

    /// Refuses all commands and answers from now on, because an answer was lost or the channel has ended.
    package mutating func close() { turn = .dead }

    // MARK: Terminal

    /// Encrypts the data of a command and authenticates it. The result always has Le.
    package mutating func wrap(_ command: CommandAPDU) throws(ChipError) -> CommandAPDU {
        try wrap(command, data: Secret(command.data))
    }

    /// Encrypts and authenticates data that must not be in ordinary memory; `header.data` is ignored.
    package mutating func wrap(
        _ header: CommandAPDU,
        data: borrowing Secret
    ) throws(ChipError) -> CommandAPDU {
        try advance(.command)
        guard header.cla & 0x0C == 0 else { throw .malformedMessage }
        let secured = header.cla | 0x0C
        isOddInstruction = header.ins & 1 != 0
        increment()
        var objects: [BERTLV] = []
        if data.count > 0 { objects.append(try encrypt(data)) }
        if let le = header.le { objects.append(BERTLV(0x97, try encode(le: le))) }
        let mac = try authenticate([secured, header.ins, header.p1, header.p2], objects)
        objects.append(BERTLV(0x8E, mac))
        let body = objects.flatMap(\.encoded)
        guard body.count <= CommandAPDU.maximumData else { throw .tooLong }
        let isExtended = header.isExtended || data.count > 255 || body.count > 255
        turn = .answer
        return CommandAPDU(
            secured,
            header.ins,
            header.p1,
            header.p2,
            data: body,
            le: isExtended ? CommandAPDU.maximumLe : 256
        )
    }

    /// Checks and decrypts a protected answer.
    package mutating func unwrap(_ answer: ResponseAPDU) throws(ChipError) -> ResponseAPDU {
        try advance(.answer)
        increment()
        var objects = try objects(of: answer.data)
        let data = pop(dataTag, from: &objects)
        guard let status = pop(0x99, from: &objects), let mac = pop(0x8E, from: &objects) else { throw .missingObject }
        guard objects.isEmpty else { throw .malformedMessage }
        let authenticated = [data, status].compactMap { $0 }
        guard ConstantTime.equal(try authenticate(nil, authenticated), mac.value) else { throw .wrongMAC }
        guard status.value == [answer.status.sw1, answer.status.sw2] else { throw .malformedMessage }
        let plain = try data.map { object throws(ChipError) in try decrypt(object) } ?? []
        turn = .command
        return ResponseAPDU(data: plain, answer.status)
    }

    // MARK: Chip

    /// Checks and decrypts a protected command. The bits of secure messaging in its class are removed.
    package mutating func unwrap(_ command: CommandAPDU) throws(ChipError) -> CommandAPDU {
        try advance(.command)
        guard command.isProtected else { throw .missingObject }
        isOddInstruction = command.ins & 1 != 0
        increment()
        var objects = try objects(of: command.data)
        let data = pop(dataTag, from: &objects)
        let le = pop(0x97, from: &objects)
        guard let mac = pop(0x8E, from: &objects) else { throw .missingObject }
        guard objects.isEmpty else { throw .malformedMessage }
        let header = [command.cla, command.ins, command.p1, command.p2]
        let authenticated = [data, le].compactMap { $0 }
        guard ConstantTime.equal(try authenticate(header, authenticated), mac.value) else { throw .wrongMAC }
        var plain = CommandAPDU(command.cla & ~0x0C, command.ins, command.p1, command.p2)
        if let data { plain.data = try decrypt(data) }
        if let le { plain.le = try decode(le: le.value) }
        turn = .answer
        return plain
    }

    /// Encrypts the data of an answer and authenticates it.
    package mutating func wrap(_ answer: ResponseAPDU) throws(ChipError) -> ResponseAPDU {
        try advance(.answer)
        increment()
        var objects: [BERTLV] = []
        if !answer.data.isEmpty { objects.append(try encrypt(Secret(answer.data))) }
        objects.append(BERTLV(0x99, [answer.status.sw1, answer.status.sw2]))
        objects.append(BERTLV(0x8E, try authenticate(nil, objects)))
        turn = .command
        return ResponseAPDU(data: objects.flatMap(\.encoded), answer.status)
    }

    // MARK: Parts

    /// Checks the turn. The channel is dead until the step sets the next turn.
    private mutating func advance(_ due: Turn) throws(ChipError) {
        let isDue = turn == due
        turn = .dead
        guard isDue else { throw .dead }
    }

    private mutating func increment() {
        for index in counter.indices.reversed() {
            counter[index] &+= 1
            if counter[index] != 0 { return }
        }
    }

    /// Object 87 has a padding indicator; object 85, for odd instruction codes, has none. ISO 7816-4, 10.4.
    private var dataTag: UInt32 { isOddInstruction ? 0x85 : 0x87 }

    private func objects(of data: [UInt8]) throws(ChipError) -> [BERTLV] {
        guard let objects = try? BERTLV.sequence(data) else { throw .malformedMessage }
        return objects
    }

    /// Removes the first object if it has this tag. The order of objects is fixed.
    private func pop(_ tag: UInt32, from objects: inout [BERTLV]) -> BERTLV? {
        objects.first?.tag == tag ? objects.removeFirst() : nil
    }

    private func encrypt(_ data: borrowing Secret) throws(ChipError) -> BERTLV {
        let encrypted = try cryptoStep { () throws(CryptoError) in
            let padded = Padding.add(to: data, blockSize: cipher.blockSize)
            return try cipher.encrypt(padded, key: keys.encryption, initialVector: try vector())
        }
        return BERTLV(dataTag, isOddInstruction ? encrypted : [0x01] + encrypted)
    }

    private func decrypt(_ object: BERTLV) throws(ChipError) -> [UInt8] {
        var encrypted = object.value[...]
        if object.tag == 0x87 {
            guard encrypted.popFirst() == 0x01 else { throw .malformedMessage }
        }
        guard !encrypted.isEmpty, encrypted.count % cipher.blockSize == 0 else { throw .malformedMessage }
        let padded = try cryptoStep(cipher.decrypt(Array(encrypted), key: keys.encryption, initialVector: try vector()))
        guard let plain = Padding.remove(from: padded, blockSize: cipher.blockSize) else { throw .malformedMessage }
        return plain.withBytes { Array($0) }
    }

    /// The initial vector of the current message.
    private func vector() throws(CryptoError) -> [UInt8] {
        try cipher.vector(counter: counter, key: keys.encryption)
    }

    /// Computes the MAC over counter, padded command header and padded objects. TR-03110-3 F.2.
    private func authenticate(_ header: [UInt8]?, _ objects: [BERTLV]) throws(ChipError) -> [UInt8] {
        var message = counter
        let size = cipher.blockSize
        if let header { message += Padding.added(to: header, blockSize: size) }
        if !objects.isEmpty { message += Padding.added(to: objects.flatMap(\.encoded), blockSize: size) }
        return try cryptoStep(cipher.messageTag(message, key: keys.authentication))
    }

    /// Encodes Le in one byte up to 256, else in two; 0 is the largest value. ISO 7816-4, 10.4.
    private func encode(le: Int) throws(ChipError) -> [UInt8] {
        switch le {
        case 1...256: [UInt8(truncatingIfNeeded: le)]
        case 257...CommandAPDU.maximumLe: [UInt8(truncatingIfNeeded: le >> 8), UInt8(truncatingIfNeeded: le)]
        default: throw .malformedMessage
        }
    }

    private func decode(le: [UInt8]) throws(ChipError) -> Int {
        switch le.count {
        case 1: le[0] == 0 ? 256 : Int(le[0])
        case 2: le == [0, 0] ? CommandAPDU.maximumLe : Int(le[0]) << 8 | Int(le[1])
        default: throw .malformedMessage
        }
    }
}

extension PACE.Outcome {
    /// Makes the secure messaging with the keys of this run.
    package consuming func secureMessaging() -> SecureMessaging { SecureMessaging(keys) }
}
