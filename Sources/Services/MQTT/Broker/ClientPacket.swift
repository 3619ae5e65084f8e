// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The packets that a publisher sends. MQTT 5.0 and 3.1.1, chapter 3.
enum ClientPacket {
    /// The largest packet that is sent. Documents have at most 16 KiB, events 4 KiB.
    static let maximumSize = 1 << 20

    struct Login {
        let isFive: Bool
        let clientID: String
        /// Seconds.
        let keepAlive: Int
        let will: BrokerConnection.Will?
        let user: String?
        var password: [UInt8]?
    }

    /// CONNECT with a new session that ends with the connection. It may hold a password: the caller wipes it.
    static func connect(_ login: Login) -> [UInt8] {
        var body: [UInt8] = []
        // One allocation, so that no copy of the password is left behind.
        body.reserveCapacity(1024 + (login.will?.payload.count ?? 0) + (login.password?.count ?? 0))
        body.append(text: "MQTT")
        body.append(login.isFive ? 5 : 4)
        var flags: UInt8 = 0x02
        if let will = login.will { flags |= 0x04 | will.qos << 3 | (will.isRetained ? 0x20 : 0) }
        if login.user != nil { flags |= 0x80 }
        if login.password != nil { flags |= 0x40 }
        body.append(flags)
        body.append(number: UInt16(login.keepAlive))
        if login.isFive {
            let property: [UInt8] = [PropertyName.maximumPacketSize.rawValue]
            body.append(block: property + UInt32(BrokerPacket.maximumSize).bigEndianBytes)
        }
        body.append(text: login.clientID)
        if let will = login.will {
            if login.isFive { body.append(0) }
            body.append(text: will.topic)
            body.append(number: UInt16(will.payload.count))
            body += will.payload
        }
        if let user = login.user { body.append(text: user) }
        if let password = login.password {
            body.append(number: UInt16(password.count))
            body += password
        }
        defer { body.wipe() }
        return packet(0x10, body)
    }

    struct Message {
        let topic: String
        let payload: [UInt8]
        let isRetained: Bool
        /// Seconds; only with version 5.
        let expiry: Int?
    }

    /// PUBLISH. `id`: nil sends it with QoS 0.
    static func publish(_ message: Message, id: UInt16?, isFive: Bool) -> [UInt8] {
        var body: [UInt8] = []
        body.append(text: message.topic)
        if let id { body.append(number: id) }
        if isFive {
            let expiry = message.expiry.map {
                [PropertyName.messageExpiryInterval.rawValue] + UInt32(clamping: $0).bigEndianBytes
            }
            body.append(block: expiry ?? [])
        }
        body += message.payload
        return packet(0x30 | (id == nil ? 0 : 0x02) | (message.isRetained ? 0x01 : 0), body)
    }

    static let ping: [UInt8] = [0xC0, 0]
    /// DISCONNECT with success, after which no will is sent.
    static let disconnect: [UInt8] = [0xE0, 0]

    private static func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(body.count + 5)
        bytes.append(first)
        bytes.append(length: body.count)
        bytes += body
        return bytes
    }
}

extension FixedWidthInteger {
    fileprivate var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

extension [UInt8] {
    fileprivate mutating func append(number: UInt16) { append(contentsOf: number.bigEndianBytes) }

    /// A text with its length. Topics, names and users have at most a few hundred bytes.
    fileprivate mutating func append(text: String) {
        let bytes = text.utf8.prefix(Int(UInt16.max))
        append(number: UInt16(bytes.count))
        append(contentsOf: bytes)
    }

    /// Properties with their length.
    fileprivate mutating func append(block: [UInt8]) {
        append(length: block.count)
        append(contentsOf: block)
    }

    /// A variable byte integer. MQTT 5.0, 1.5.5.
    fileprivate mutating func append(length: Int) {
        var rest = length
        repeat {
            append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
    }
}
