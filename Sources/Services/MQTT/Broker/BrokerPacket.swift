// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The packets that a publisher expects from its broker. Every other one is a fault, which ends the connection.
package enum BrokerPacket: Sendable, Equatable {
    /// CONNACK.
    case accepted(BrokerLimits)
    case refused(Reason)
    /// PUBACK.
    case acknowledged(UInt16, Reason)
    /// PINGRESP.
    case pong
    /// DISCONNECT of version 5.
    case ended(Reason)

    /// A reason code with the words of the broker.
    package struct Reason: Sendable, Equatable {
        package let code: UInt8
        /// Reason String, and of an answer that names another server its address.
        package var words: String?

        package init(_ code: UInt8, words: String? = nil) {
            self.code = code
            self.words = words
        }
    }

    /// The largest packet that is accepted; CONNECT says so. A longer one ends the connection before its content is read.
    package static let maximumSize = 16 * 1024

    /// Reads a packet whose length is known. `kind` is its first byte.
    init(_ kind: UInt8, _ content: ArraySlice<UInt8>, isFive: Bool) throws(Malformed) {
        var reader = PacketReader(content)
        switch kind {
        case 0x20: self = try Self.connack(&reader, isFive)
        case 0x40:
            let id = try reader.number16()
            self = .acknowledged(id, isFive ? try Self.reason(&reader, Self.publishProperties) : Reason(0))
        case 0xD0: self = .pong
        case 0xE0 where isFive: self = .ended(try Self.reason(&reader, Self.disconnectProperties))
        default: throw Self.unexpected(kind)
        }
        guard reader.isAtEnd else { throw Malformed("bytes follow the content of a packet") }
    }

    /// Refuses the kind of a packet that a publisher does not expect, before its content is read.
    static func check(kind: UInt8, isFive: Bool) throws(Malformed) {
        guard [0x20, 0x40, 0xD0].contains(kind) || isFive && kind == 0xE0 else { throw unexpected(kind) }
    }

    private static func unexpected(_ kind: UInt8) -> Malformed {
        switch kind {
        case 0x30...0x3F: Malformed("it sends messages that nobody has asked for")
        case 0x15, 0x16: Malformed("it speaks TLS at this port: write mqtts:// in [broker] url")
        case 0x48: Malformed("it speaks HTTP at this port: correct the port in [broker] url")
        case 0xF0: Malformed("it asks for a way to log in that badged-mqtt does not have")
        default: Malformed("it sends a packet of kind \(Hex.encode([kind])) that nobody has asked for")
        }
    }

    // MARK: Content

    private static let disconnectProperties: Set<PropertyName> = [.sessionExpiryInterval, .serverReference]
    private static let publishProperties: Set<PropertyName> = []
    private static let connackProperties: Set<PropertyName> = [
        .sessionExpiryInterval, .receiveMaximum, .maximumQoS, .retainAvailable, .maximumPacketSize,
        .assignedClientIdentifier, .topicAliasMaximum, .wildcardSubscriptionAvailable,
        .subscriptionIdentifierAvailable, .sharedSubscriptionAvailable, .serverKeepAlive, .responseInformation,
        .serverReference, .authenticationMethod, .authenticationData,
    ]

    private static func connack(_ reader: inout PacketReader, _ isFive: Bool) throws(Malformed) -> Self {
        let flags = try reader.byte()
        let code = try reader.byte()
        guard flags <= 1, flags == 0 || code == 0 else { throw Malformed("the flags of CONNACK are wrong") }
        guard isFive else {
            // The session is new, so the broker cannot have an old one.
            guard code != 0 || flags == 0 else { throw Malformed("it continues a session that nobody has asked for") }
            return code == 0 ? .accepted(BrokerLimits()) : .refused(Reason(code))
        }
        let properties = try reader.properties(connackProperties)
        guard code == 0 else { return .refused(properties.reason(code)) }
        guard flags == 0 else { throw Malformed("it continues a session that nobody has asked for") }
        return .accepted(try BrokerLimits(properties))
    }

    /// Reads a reason and properties. Both may be missing at the end of a packet, and then mean success.
    private static func reason(
        _ reader: inout PacketReader,
        _ allowed: Set<PropertyName>
    ) throws(Malformed) -> Reason {
        guard !reader.isAtEnd else { return Reason(0) }
        let code = try reader.byte()
        guard !reader.isAtEnd else { return Reason(code) }
        return try reader.properties(allowed).reason(code)
    }
}

/// The properties that a broker may send to a publisher, and that a publisher sends. MQTT 5.0, 2.2.2.2.
enum PropertyName: UInt8 {
    case messageExpiryInterval = 0x02
    case sessionExpiryInterval = 0x11
    case assignedClientIdentifier = 0x12
    case serverKeepAlive = 0x13
    case authenticationMethod = 0x15
    case authenticationData = 0x16
    case responseInformation = 0x1A
    case serverReference = 0x1C
    case reasonString = 0x1F
    case receiveMaximum = 0x21
    case topicAliasMaximum = 0x22
    case maximumQoS = 0x24
    case retainAvailable = 0x25
    case userProperty = 0x26
    case maximumPacketSize = 0x27
    case wildcardSubscriptionAvailable = 0x28
    case subscriptionIdentifierAvailable = 0x29
    case sharedSubscriptionAvailable = 0x2A
}

/// The properties of one packet.
struct BrokerProperties {
    fileprivate(set) var numbers: [PropertyName: Int] = [:]
    fileprivate(set) var texts: [PropertyName: String] = [:]

    func reason(_ code: UInt8) -> BrokerPacket.Reason {
        let words = [texts[.reasonString], texts[.serverReference].map { "use \($0)" }].compactMap(\.self)
        return BrokerPacket.Reason(code, words: words.isEmpty ? nil : words.joined(separator: "; "))
    }
}

/// Reads the content of one packet. Nothing is read beyond its end.
struct PacketReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    private static let truncated = Malformed("a packet is truncated")

    mutating func byte() throws(Malformed) -> UInt8 {
        guard let byte = rest.popFirst() else { throw Self.truncated }
        return byte
    }

    private mutating func part(_ count: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard count <= rest.count else { throw Self.truncated }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    private mutating func number(_ count: Int) throws(Malformed) -> Int {
        try part(count).reduce(0) { $0 << 8 | Int($1) }
    }

    mutating func number16() throws(Malformed) -> UInt16 { UInt16(try number(2)) }

    private mutating func text() throws(Malformed) -> String {
        let bytes = try part(try number(2))
        guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            throw Malformed("a text is not UTF-8")
        }
        return text
    }

    private mutating func length() throws(Malformed) -> Int {
        var value = 0
        for place in 0..<4 {
            let byte = try byte()
            value |= Int(byte & 0x7F) << (7 * place)
            if byte < 0x80 { return value }
        }
        throw Malformed("a length has more than four bytes")
    }

    /// Reads the properties of a packet. Reason String and User Property may come in each.
    mutating func properties(_ allowed: Set<PropertyName>) throws(Malformed) -> BrokerProperties {
        var reader = PacketReader(try part(try length()))
        var found = BrokerProperties()
        while !reader.isAtEnd {
            let code = try reader.byte()
            guard let name = PropertyName(rawValue: code),
                allowed.contains(name) || name == .reasonString || name == .userProperty
            else { throw Malformed("it sends the property \(Hex.encode([code])), which does not belong here") }
            let isNew: Bool
            switch name {
            case .userProperty:
                _ = try reader.text()
                _ = try reader.text()
                isNew = true
            case .assignedClientIdentifier, .authenticationMethod, .responseInformation, .serverReference,
                .reasonString:
                isNew = found.texts.updateValue(try reader.text(), forKey: name) == nil
            case .authenticationData:
                _ = try reader.part(try reader.number(2))
                isNew = true
            case .serverKeepAlive, .receiveMaximum, .topicAliasMaximum:
                isNew = found.numbers.updateValue(try reader.number(2), forKey: name) == nil
            case .messageExpiryInterval, .sessionExpiryInterval, .maximumPacketSize:
                isNew = found.numbers.updateValue(try reader.number(4), forKey: name) == nil
            case .maximumQoS, .retainAvailable, .wildcardSubscriptionAvailable, .subscriptionIdentifierAvailable,
                .sharedSubscriptionAvailable:
                isNew = found.numbers.updateValue(Int(try reader.byte()), forKey: name) == nil
            }
            guard isNew else { throw Malformed("it sends the property \(Hex.encode([code])) twice") }
        }
        return found
    }
}
