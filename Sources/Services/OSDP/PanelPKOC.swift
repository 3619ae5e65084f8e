// SPDX-License-Identifier: GPL-3.0-or-later

/// The messages of PKOC over OSDP 1.63 (MFG and MFGREP), with which a panel checks the signature of a card itself.
package enum PanelPKOC {
    /// The vendor with which the data begin.
    package static let vendor: [UInt8] = [0x1A, 0x90, 0x21]
    package static let transactionLength = 16
    static let authenticate: UInt8 = 0xE1
    /// Vendor, code, and three numbers of two bytes: of the whole message, where this part begins, and of the part.
    static let headCount = 10
    /// The frame that every panel takes.
    static let leastFrame = 128

    /// The byte of READER_ERROR.
    package enum Fault: UInt8, Error {
        /// The card does not answer.
        case timeout = 2
        /// An object is missing.
        case missing = 4
        /// An object is longer than the message.
        case outOfBounds = 5
        /// An object is empty that must not be.
        case noData = 6
        case invalid = 7
        /// A part of a message is not the next one.
        case outOfSequence = 8
        /// A part is no part of the message, or the message is too long.
        case partOutOfBounds = 9
    }

    /// CARD_PRESENT: a card with version 1.0. The empty 4D says that the reader has an identifier of its own.
    static let cardPresent = vendor + [0xE0, 0xFC, 0x06, 0x5C, 0x02, 0x01, 0x00, 0x4D, 0x00]

    static func readerError(_ fault: Fault) -> [UInt8] { vendor + [0xFE, fault.rawValue] }

    /// What AUTH_REQUEST asks.
    package struct Question: Equatable {
        /// What the card is to sign.
        package var transaction: [UInt8] = []
        /// A number that comes back in the answer.
        package var sequence: UInt8?

        /// Reads P1, P2 and the objects, in any order. The reader identifier of the panel (4D) is not used: the card is
        /// told that of its readers, which no signature covers.
        package init(_ bytes: [UInt8]) throws(Fault) {
            guard bytes.count >= 2 else { throw .missing }
            guard bytes[0] == 0, bytes[1] == 1 else { throw .invalid }
            var rest = bytes[2...]
            var objects: [UInt8: [UInt8]] = [:]
            while let tag = rest.popFirst() {
                // The length of FD is missing on the line.
                guard let count = tag == 0xFD ? 1 : rest.popFirst().map(Int.init), count <= rest.count else {
                    throw .outOfBounds
                }
                guard [0x5C, 0x4C, 0x4D, 0xFD].contains(tag),
                    objects.updateValue(Array(rest.prefix(count)), forKey: tag) == nil
                else { throw .invalid }
                rest = rest.dropFirst(count)
            }
            guard let version = objects[0x5C], let transaction = objects[0x4C] else { throw .missing }
            guard !transaction.isEmpty else { throw .noData }
            guard version.count == 2, version[0] == 1, transaction.count == transactionLength,
                [0, 32].contains(objects[0x4D]?.count ?? 0)
            else { throw .invalid }
            self.transaction = transaction
            sequence = objects[0xFD]?.first
        }
    }

    /// Puts the parts of a message together.
    package struct Parts {
        /// The longest message that is taken: all objects need 62 bytes.
        package static let longest = 128
        private var bytes: [UInt8] = []
        private var total = 0

        package init() {}

        /// Adds a part: the data of MFG, with at least `headCount` bytes.
        /// - Returns: the message when it is complete. After an error all parts are given up.
        package mutating func add(_ data: [UInt8]) throws(Fault) -> [UInt8]? {
            let numbers = [4, 6, 8].map { Int(data[$0]) | Int(data[$0 + 1]) << 8 }
            let part = data[headCount...]
            let (old, oldTotal) = (bytes, total)
            self = Parts()
            guard (1...Self.longest).contains(numbers[0]), numbers[2] == part.count, !part.isEmpty,
                numbers[1] + part.count <= numbers[0]
            else { throw .partOutOfBounds }
            guard numbers[1] == old.count, old.isEmpty || oldTotal == numbers[0] else { throw .outOfSequence }
            guard numbers[1] + part.count < numbers[0] else { return old + part }
            bytes = old + part
            total = numbers[0]
            return nil
        }
    }

    /// The objects of AUTH_RESPONSE.
    static func answer(_ publicKey: [UInt8], _ signature: [UInt8], _ sequence: UInt8?) -> [UInt8] {
        let key = [0x5A, UInt8(truncatingIfNeeded: publicKey.count)] + publicKey
        let proof = [0x9E, UInt8(truncatingIfNeeded: signature.count)] + signature
        return key + proof + (sequence.map { [0xFD, $0] } ?? [])
    }

    /// The next part of AUTH_RESPONSE for a panel that takes frames of this size, and where the one after it begins.
    static func part(of message: [UInt8], at offset: Int, frame: Int) -> (data: [UInt8], next: Int) {
        // Header, block of the secure channel, code, MAC and CRC; the data are filled up to blocks of 16 bytes.
        let most = (frame - 15) / 16 * 16 - 1 - headCount
        let part = message[offset..<min(message.count, offset + most)]
        let head = [message.count, offset, part.count].flatMap { number in
            [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
        }
        return (vendor + [0xE2] + head + part, part.endIndex)
    }
}

/// A card about which a panel may ask once.
struct PanelInquiry {
    enum State {
        /// The panel was told that there is a card.
        case told
        /// The card is asked. The number comes back in the answer.
        case asked(UInt8?)
        /// The panel gets the answer, the rest of which begins here.
        case answering([UInt8], Int)
    }

    let card: Int
    let until: Int64
    var parts = PanelPKOC.Parts()
    var state = State.told
}
