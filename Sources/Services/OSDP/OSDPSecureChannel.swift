// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The key SCBK of a peripheral, from which each connection derives its keys.
package final class OSDPKey: Sendable {
    package static let count = 16

    private let bytes: Secret
    /// Whether this is SCBK-D, which everybody knows.
    package let isDefault: Bool
    /// Whether all bytes are the same, such as 00: what a panel or a tool has where nobody has set a key.
    package let isWeak: Bool

    /// nil unless the key has 16 bytes.
    package init?(_ bytes: consuming Secret) {
        guard bytes.count == Self.count else { return nil }
        isDefault = bytes.withBytes { $0.elementsEqual(0x30...0x3F) }
        isWeak = bytes.withBytes { bytes in bytes.allSatisfy { $0 == bytes.first } }
        self.bytes = bytes
    }

    /// SCBK-D: 30, 31, ... 3F.
    package static let installation = OSDPKey(isDefault: true)

    private init(isDefault: Bool) {
        bytes = Secret(0x30...0x3F)
        self.isDefault = isDefault
        isWeak = false
    }

    /// Reads 16 bytes, or 32 hexadecimal digits with a line feed.
    package convenience init?(file content: consuming Secret) {
        guard content.count != Self.count else {
            self.init(content)
            return
        }
        let key: Secret? = content.withBytes { text in
            let digits = text.last == 0x0A ? text.dropLast() : text[...]
            guard digits.count == 2 * Self.count else { return nil }
            var isWrong = false
            let bytes = Secret(count: Self.count) { target in
                for index in 0..<Self.count {
                    let place = digits.startIndex + 2 * index
                    guard let high = Hex.value(digits[place]), let low = Hex.value(digits[place + 1]) else {
                        isWrong = true
                        return
                    }
                    target[index] = high << 4 | low
                }
            }
            return isWrong ? nil : consume bytes
        }
        guard let key else { return nil }
        self.init(key)
    }

    /// Whether both are the same key, or there is none.
    package static func areSame(_ one: OSDPKey?, _ other: OSDPKey?) -> Bool {
        guard let one, let other else { return one == nil && other == nil }
        return ConstantTime.equal(one.bytes, other.bytes)
    }

    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { bytes.withBytes(body) }

    /// One block of AES over `block`. FIPS 197.
    fileprivate func encrypt(_ block: [UInt8]) throws(CryptoError) -> [UInt8] { try AES.encrypt(block, key: bytes) }
}

/// The keys and cryptograms of one connection. IEC 60839-11-5, Annex D.
package final class OSDPSession {
    private let encryption: Secret
    private let mac1: AES.Encryptor
    private let mac2: AES.Encryptor
    /// The answer of the peripheral to the random bytes of the panel, and the reverse.
    let clientCryptogram: [UInt8]
    package let serverCryptogram: [UInt8]
    /// The last MAC of each side, with which the next one of the other side begins.
    private var commandMAC: [UInt8] = []
    private var replyMAC: [UInt8]

    /// `panel` and `peripheral` are the random bytes of both, 8 each.
    package init(_ key: OSDPKey, panel: [UInt8], peripheral: [UInt8]) throws(CryptoError) {
        guard panel.count == 8, peripheral.count == 8 else { throw .invalidLength }
        func derive(_ first: UInt8, _ second: UInt8) throws(CryptoError) -> Secret {
            var block = try key.encrypt([first, second] + panel.prefix(6) + [UInt8](repeating: 0, count: 8))
            defer { block.wipe() }
            return Secret(block)
        }
        encryption = try derive(0x01, 0x82)
        mac1 = try AES.Encryptor(key: try derive(0x01, 0x01))
        mac2 = try AES.Encryptor(key: try derive(0x01, 0x02))
        clientCryptogram = try AES.encrypt(panel + peripheral, key: encryption)
        serverCryptogram = try AES.encrypt(peripheral + panel, key: encryption)
        replyMAC = try mac2.encrypt(try mac1.encrypt(serverCryptogram))
    }

    /// A session with these keys, which begins with MACs of zeros: for frames whose handshake is not known.
    init(encryption: consuming Secret, mac1: borrowing Secret, mac2: borrowing Secret) throws(CryptoError) {
        self.encryption = encryption
        self.mac1 = try AES.Encryptor(key: mac1)
        self.mac2 = try AES.Encryptor(key: mac2)
        clientCryptogram = []
        serverCryptogram = []
        replyMAC = []
    }

    /// The MAC with which the connection begins: R-MAC-I.
    var initialMAC: [UInt8] { replyMAC }

    /// The full MAC over a frame: CBC, with another key for the last block.
    private func mac(_ message: [UInt8], after start: [UInt8]) throws(CryptoError) -> [UInt8] {
        var padded = message
        if padded.count % AES.blockSize != 0 { Self.pad(&padded) }
        let last = padded.count - AES.blockSize
        guard last > 0 else { return try mac2.encrypt(padded, initialVector: start) }
        let vector = try mac1.encrypt(Array(padded[..<last]), initialVector: start).suffix(AES.blockSize)
        return try mac2.encrypt(Array(padded[last...]), initialVector: Array(vector))
    }

    /// Fills the last block up: 80, 00, 00, ...
    private static func pad(_ bytes: inout [UInt8]) {
        bytes.append(0x80)
        while bytes.count % AES.blockSize != 0 { bytes.append(0) }
    }

    private func start(of isReply: Bool) -> [UInt8] {
        let other = isReply ? commandMAC : replyMAC
        return other.isEmpty ? AES.zeroVector : other
    }

    private func keep(_ mac: [UInt8], of isReply: Bool) {
        if isReply { replyMAC = mac } else { commandMAC = mac }
    }

    /// Encrypts the data of a frame, and adds the security block and the MAC.
    package func seal(_ frame: OSDPFrame) throws(CryptoError) -> OSDPFrame {
        var sealed = frame
        let start = start(of: frame.isReply)
        sealed.securityBlock = [(frame.data.isEmpty ? 0x15 : 0x17) + (frame.isReply ? 1 : 0)]
        if !frame.data.isEmpty {
            var padded = frame.data
            defer { padded.wipe() }
            Self.pad(&padded)
            sealed.data = try AES.encrypt(padded, key: encryption, initialVector: start.map { ~$0 })
        }
        let full = try mac(sealed.authenticated, after: start)
        keep(full, of: frame.isReply)
        sealed.mac = Array(full.prefix(4))
        return sealed
    }

    /// Checks the MAC of a frame, and returns its data in clear; nil if the frame is not of this connection. Data of
    /// the blocks 15 and 16 were not encrypted. The caller wipes what may be a key.
    package func open(_ frame: OSDPFrame) throws(CryptoError) -> [UInt8]? {
        let direction: UInt8 = frame.isReply ? 1 : 0
        guard let type = frame.blockType, type == 0x15 + direction || type == 0x17 + direction, frame.mac.count == 4
        else { return nil }
        let start = start(of: frame.isReply)
        let full = try mac(frame.authenticated, after: start)
        guard ConstantTime.equal(Array(full.prefix(4)), frame.mac) else { return nil }
        var data = frame.data
        if type == 0x17 + direction {
            guard !data.isEmpty, data.count % AES.blockSize == 0 else { return nil }
            let clear = try AES.decrypt(data, key: encryption, initialVector: start.map { ~$0 })
            data = clear.withBytes { Array($0) }
            guard let end = data.lastIndex(where: { $0 != 0 }), data[end] == 0x80 else {
                data.wipe()
                return nil
            }
            data.removeSubrange(end...)
        }
        keep(full, of: frame.isReply)
        return data
    }
}
