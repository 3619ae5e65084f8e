// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The bytes that a broker has sent, and the packets in them. A packet that nobody expects, or that is too long, is
/// refused by its first bytes.
package struct PacketBuffer {
    private let isFive: Bool
    private var bytes: [UInt8] = []

    package init(isFive: Bool) { self.isFive = isFive }

    /// The bytes of a packet that is not complete.
    package var count: Int { bytes.count }

    package mutating func append(_ new: some Collection<UInt8>) { bytes += new }

    /// Takes out the next packet; nil: it is not complete.
    package mutating func next() throws(Malformed) -> BrokerPacket? {
        guard let kind = bytes.first else { return nil }
        try BrokerPacket.check(kind: kind, isFive: isFive)
        guard let (start, count) = try size, bytes.count - start >= count else { return nil }
        defer { bytes.removeFirst(start + count) }
        return try BrokerPacket(kind, bytes[start..<start + count], isFive: isFive)
    }

    /// Where the content of the first packet begins, and its length; nil: more bytes are needed. MQTT 5.0, 2.1.4.
    private var size: (start: Int, count: Int)? {
        get throws(Malformed) {
            var value = 0
            for (place, byte) in bytes.dropFirst().prefix(4).enumerated() {
                value |= Int(byte & 0x7F) << (7 * place)
                guard value <= BrokerPacket.maximumSize else {
                    throw Malformed("it sends a packet of more than \(BrokerPacket.maximumSize) bytes")
                }
                if byte < 0x80 { return (place + 2, value) }
            }
            guard bytes.count < 5 else { throw Malformed("the length of a packet has more than four bytes") }
            return nil
        }
    }
}
