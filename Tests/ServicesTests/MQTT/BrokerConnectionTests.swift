// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Testing
import Text

@testable import MQTT

/// A connection over a socket pair, with the broker's end in the hands of the test.
private final class ScriptedBroker {
    let connection: BrokerConnection
    private let end: Int32

    init(will: BrokerConnection.Will? = nil, change: (inout MQTTConfiguration) -> Void = { _ in }) throws {
        var configuration = MQTTConfiguration()
        configuration.name = "door"
        configuration.usesTLS = false
        change(&configuration)
        connection = try BrokerConnection(configuration, will: will)
        var ends: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        end = ends[1]
        connection.begin(ends[0])
    }

    deinit { close(end) }

    /// Connects up to CONNECT, and answers to it.
    convenience init(answer: String, change: (inout MQTTConfiguration) -> Void = { _ in }) throws {
        try self.init(change: change)
        _ = connect()
        say(answer)
    }

    func connect() -> [UInt8] {
        _ = connection.step(at: 0)
        connection.logIn(at: 0)
        _ = connection.step(at: 0)
        return heard()
    }

    func say(_ hex: String) { say(Hex.decode(hex, limit: 1 << 20) ?? []) }

    func say(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        _ = send(end, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    func heard() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(end, &buffer, buffer.count, 0)
        return Array(buffer.prefix(max(count, 0)))
    }

    /// The bytes that the connection has not read.
    var unread: Int32 {
        var count: Int32 = 0
        _ = ioctl(connection.descriptor, UInt(FIONREAD), &count)
        return count
    }

    func leave() { shutdown(end, Int32(SHUT_RDWR)) }
}

@Suite("The connection to the broker", .timeLimit(.minutes(5)))
struct BrokerConnectionTests {
    @Test("messages without content during the handshake of TLS do not hold the caller")
    func endlessHandshake() throws {
        let broker = try ScriptedBroker { $0.usesTLS = true }
        _ = broker.connection.step(at: 0)
        #expect(broker.heard().first == 0x16)
        // HelloRequest. RFC 5246, 7.4.1.1.
        broker.say(repeatElement([0x16, 3, 3, 0, 4, 0, 0, 0, 0], count: 1000).joined())
        #expect(broker.connection.step(at: 0).ending == nil)
        #expect(broker.unread > 8000)
    }

    private static let accepted = "2003000000"

    @Test("CONNECT has the name, the keep-alive, the will, user and password, and the largest packet")
    func connect() throws {
        let will = BrokerConnection.Will(topic: "t", payload: [1, 2])
        let five = try ScriptedBroker(will: will) { ($0.keepAlive, $0.user) = (60, "u") }
        #expect(
            Hex.encode(five.connect())
                == "1028" + "00044d515454" + "05" + "ae" + "003c" + "052700004000" + "000b6261646765642d646f6f72" + "00"
                + "000174" + "00020102" + "000175"
        )
        let three = try ScriptedBroker { ($0.version, $0.keepAlive) = (.three, 5) }
        #expect(
            Hex.encode(three.connect()) == "1017" + "00044d515454" + "04" + "02" + "0005" + "000b6261646765642d646f6f72"
        )
    }

    struct Hostile: CustomTestStringConvertible {
        let name: String
        let bytes: String
        /// Whether the packet comes instead of CONNACK.
        var isAnswer = false
        var testDescription: String { name }

        init(_ name: String, _ bytes: String, isAnswer: Bool = false) {
            self.name = name
            self.bytes = bytes
            self.isAnswer = isAnswer
        }
    }

    private static let unknownProperty = "027f00"

    private static let hostilePackets: [Hostile] = [
        Hostile("an unknown property in CONNACK", "20050000" + unknownProperty, isAnswer: true),
        Hostile("an unknown property in PUBACK", "4006000100" + unknownProperty),
        Hostile("an unknown property in PUBREC", "5006000100" + unknownProperty),
        Hostile("an unknown property in PUBREL", "6206000100" + unknownProperty),
        Hostile("an unknown property in PUBCOMP", "7006000100" + unknownProperty),
        Hostile("an unknown property in SUBACK", "90060001" + unknownProperty + "00"),
        Hostile("an unknown property in UNSUBACK", "b0060001" + unknownProperty + "00"),
        Hostile("an unknown property in DISCONNECT", "e00400" + unknownProperty),
        Hostile("an unknown property in AUTH", "f00418" + unknownProperty),
        Hostile("AUTH instead of CONNACK", "f00418" + unknownProperty, isAnswer: true),
        Hostile("a property of another packet in PUBACK", "4007000100" + "0313000a"),
        Hostile("a property of another packet in CONNACK", "20080000" + "0502000000ff", isAnswer: true),
        Hostile("a property twice", "20090000" + "0613000a13000a", isAnswer: true),
        Hostile("a property that is cut", "20040000" + "0113", isAnswer: true),
        Hostile("properties longer than their packet", "20030000" + "7f", isAnswer: true),
        Hostile("a text that is not UTF-8", "20070000" + "041f0001ff", isAnswer: true),
        Hostile("a text longer than its packet", "20060000" + "031fffff", isAnswer: true),
        Hostile("a length of properties with five bytes", "20070000" + "8080808001", isAnswer: true),
        Hostile("Receive Maximum 0", "20060000" + "03210000", isAnswer: true),
        Hostile("Maximum Packet Size 0", "20080000" + "052700000000", isAnswer: true),
        Hostile("Maximum QoS 3", "20050000" + "022403", isAnswer: true),
        Hostile("Retain Available 2", "20050000" + "022502", isAnswer: true),
        Hostile("a session that was not asked for", "2003010000", isAnswer: true),
        Hostile("flags of CONNACK", "2003020000", isAnswer: true),
        Hostile("bytes after the content", "200400000000", isAnswer: true),
        Hostile("an empty CONNACK", "2000", isAnswer: true),
        Hostile("PUBLISH before CONNACK", "3080808060", isAnswer: true),
        Hostile("PUBLISH of 200 MB", "30808080" + "60"),
        Hostile("PUBLISH with QoS 2", "34050001610001"),
        Hostile("CONNACK of 200 MB", "20808080" + "60", isAnswer: true),
        Hostile("PUBACK of 20 kB", "40a09c01"),
        Hostile("a length of a packet with five bytes", "4080808080"),
        Hostile("a second CONNACK", accepted),
        Hostile("PUBACK of a message that was not sent", "40020001"),
        Hostile("PUBACK before CONNACK", "40020001", isAnswer: true),
        Hostile("PINGRESP without a ping", "d000"),
        Hostile("PINGRESP with content", "d00100"),
        Hostile("TLS at a port for plain connections", "15030300020228", isAnswer: true),
        Hostile("HTTP", "485454502f312e31203430300d0a", isAnswer: true),
        Hostile("a packet of the client", "c000"),
        Hostile("the reserved packet", "0000"),
    ]

    @Test(
        "what a publisher does not expect ends the connection with a reason, in one piece or in many",
        arguments: hostilePackets
    )
    func ends(_ hostile: Hostile) throws {
        for isCut in [false, true] {
            let broker = try ScriptedBroker()
            _ = broker.connect()
            if !hostile.isAnswer {
                broker.say(Self.accepted)
                #expect(broker.connection.step(at: 0).events == [.accepted(BrokerLimits())])
            }
            let bytes = Hex.decode(hostile.bytes, limit: 1 << 16) ?? []
            var ending: BrokerEnding?
            if isCut {
                for byte in bytes where ending == nil {
                    broker.say([byte])
                    ending = broker.connection.step(at: 0).ending
                }
            } else {
                broker.say(bytes)
                ending = broker.connection.step(at: 0).ending
            }
            #expect(ending?.text.hasPrefix("the broker breaks the protocol: ") == true, "\(ending?.text ?? "nothing")")
            // Nothing more is sent or received.
            #expect(broker.connection.descriptor < 0)
            if case .failed = broker.connection.publish("t", [1], retain: false, at: 0) {} else { Issue.record("sent") }
        }
    }

    @Test("a broker that refuses the connection is heard once, and the connection ends", arguments: [1, 1000])
    func refused(times: Int) throws {
        let broker = try ScriptedBroker()
        _ = broker.connect()
        broker.say(repeatElement([0x20, 3, 0, 0x87, 0], count: times).joined())
        let (events, ending) = broker.connection.step(at: 0)
        #expect(events == [.refused(BrokerPacket.Reason(0x87))])
        #expect(ending == .closed && broker.connection.descriptor < 0)
    }

    @Test("MQTT 3.1.1 has no DISCONNECT of the broker and no properties")
    func three() throws {
        let broker = try ScriptedBroker(answer: "20020000") { $0.version = .three }
        #expect(broker.connection.step(at: 0).events == [.accepted(BrokerLimits())])
        _ = broker.connection.publish("t", [7], retain: true, expiry: 5, at: 0)
        _ = broker.connection.step(at: 0)
        #expect(Hex.encode(broker.heard()) == "3306" + "000174" + "0001" + "07")
        broker.say("40020001")
        #expect(broker.connection.step(at: 0).events == [.acknowledged(1, BrokerPacket.Reason(0))])
        broker.say("e0028e00")
        #expect(broker.connection.step(at: 0).ending?.text.contains("breaks the protocol") == true)
        let refused = try ScriptedBroker(answer: "20020005") { $0.version = .three }
        #expect(refused.connection.step(at: 0).events == [.refused(BrokerPacket.Reason(5))])
    }

    @Test("the keep-alive of the broker counts: a ping goes out within it")
    func keepAlive() throws {
        let broker = try ScriptedBroker(answer: "200600000313000a") { $0.keepAlive = 60 }
        let found = try #require(broker.connection.step(at: 0).events.first)
        guard case .accepted(let limits) = found else { throw Malformed("\(found)") }
        #expect(limits.keepAlive == 10 && broker.connection.deadline <= 10_000)
        #expect(limits.notes(keepAlive: 60) == ["keep-alive 10 s, as the broker wants it, instead of 60 s"])
        #expect(limits.notes(keepAlive: 10).isEmpty)
        _ = broker.connection.step(at: broker.connection.deadline)
        #expect(broker.heard() == [0xC0, 0])
        // The answer begins a new pause; without one the connection ends.
        broker.say("d000")
        _ = broker.connection.step(at: 8000)
        #expect((15_000...18_000).contains(broker.connection.deadline))
        _ = broker.connection.step(at: broker.connection.deadline)
        #expect(broker.heard() == [0xC0, 0])
        let ending = broker.connection.step(at: broker.connection.deadline).ending
        #expect(ending == .fault("the broker does not answer to pings"))
    }

    @Test("a broker without a keep-alive is pinged as this host wants it")
    func noKeepAlive() throws {
        let broker = try ScriptedBroker(answer: "2006000003130000") { $0.keepAlive = 60 }
        _ = broker.connection.step(at: 0)
        #expect((30_000...60_000).contains(broker.connection.deadline))
    }

    @Test("Maximum QoS 0: messages go out with QoS 0, and the answer to a ping confirms them")
    func maximumQoS() throws {
        let broker = try ScriptedBroker(answer: "20050000022400")
        _ = broker.connection.step(at: 0)
        guard case .sent(let first) = broker.connection.publish("t", [1], retain: true, at: 0) else {
            throw Malformed("not sent")
        }
        #expect(broker.connection.step(at: 0).events.isEmpty)
        #expect(Hex.encode(broker.heard()) == "3105" + "00017400" + "01" + "c000")
        guard case .sent(let second) = broker.connection.publish("t", [2], retain: false, at: 0) else {
            throw Malformed("not sent")
        }
        _ = broker.connection.step(at: 0)
        #expect(Hex.encode(broker.heard()) == "3005" + "00017400" + "02")
        broker.say("d000")
        #expect(broker.connection.step(at: 0).events == [.acknowledged(first, BrokerPacket.Reason(0))])
        _ = broker.connection.step(at: 0)
        broker.say("d000")
        #expect(broker.connection.step(at: 0).events == [.acknowledged(second, BrokerPacket.Reason(0))])
    }

    @Test("Retain Available 0 and Maximum Packet Size are followed")
    func limits() throws {
        let broker = try ScriptedBroker(answer: "200a0000" + "072500" + "2700000014")
        _ = broker.connection.step(at: 0)
        guard case .tooLarge = broker.connection.publish("t", [UInt8](repeating: 0, count: 40), retain: true, at: 0)
        else { throw Malformed("a large message was sent") }
        guard case .sent = broker.connection.publish("t", [1], retain: true, at: 0) else { throw Malformed("not sent") }
        _ = broker.connection.step(at: 0)
        #expect(broker.heard().first == 0x32)
    }

    @Test("every value that the broker replaces is told, and is in the document state")
    func notes() throws {
        let answer = "110000003c" + "210005" + "2400" + "2500" + "2700000400" + "12000161" + "22000a" + "13001e"
        let length = answer.count / 2
        let broker = try ScriptedBroker(answer: Hex.encode([0x20, UInt8(length + 3), 0, 0, UInt8(length)]) + answer)
        guard case .accepted(let limits) = broker.connection.step(at: 0).events.first else {
            throw Malformed("not accepted")
        }
        let notes = limits.notes(keepAlive: 60).joined(separator: "\n")
        for words in [
            "keep-alive 30 s", "QoS 0 only", "retains nothing", "1024 bytes", "5 messages", "calls this host \"a\"",
            "60 s, which nobody",
        ] {
            #expect(notes.contains(words), "\(words)")
        }
        let json = #"""
            {"keepAlive":30,"maximumQoS":0,"retainAvailable":false,"maximumPacketSize":1024,"receiveMaximum":5,\#
            "topicAliasMaximum":10,"assignedClientID":"a","sessionExpiry":60}
            """#
        #expect(limits.json(keepAlive: 60) == (try JSON(Array(json.utf8))))
        #expect(BrokerLimits().notes(keepAlive: 60).isEmpty)
        var single = BrokerLimits()
        single.receiveMaximum = 1
        #expect(single.notes(keepAlive: 60) == ["the broker allows 1 message without an answer"])
    }

    @Test(
        "the reason of DISCONNECT is told in words",
        arguments: [
            ("e0028e00", "another client has connected as badged-door: two hosts have one name"),
            ("e0018b", "shuts down"), ("e000", "no reason is given"),
            ("e00898061f0003782079", "has ended the connection (the broker says: \"x y\")"),
            ("e0089d061c0003612e62", "use a.b"), ("e00b00091f00061b5b334a0a41", #"says: "[3J A")"#),
        ]
    )
    func disconnect(bytes: String, words: String) throws {
        let broker = try ScriptedBroker(answer: Self.accepted + bytes)
        var ending = broker.connection.step(at: 0).ending
        if ending == nil { ending = broker.connection.step(at: 0).ending }
        #expect(ending?.text.contains(words) == true, "\(ending?.text ?? "nothing")")
    }

    @Test("every reason code of the standard has words", arguments: Array(0x80...0x91) + Array(0x93...0xA2))
    func reasons(code: Int) {
        // 8F, 92, 9E, A1 and A2 are about subscriptions and QoS 2.
        guard ![0x8F, 0x9E, 0xA1, 0xA2].contains(code) else { return }
        let text = BrokerPacket.Reason(UInt8(code)).text(for: MQTTConfiguration())
        #expect(!text.hasPrefix("reason") && text.utf8.count > 10)
    }

    @Test("a connection that is closed soon again and again is perhaps that of two hosts with one name")
    func twoHosts() throws {
        var configuration = MQTTConfiguration()
        configuration.usesTLS = false
        var route = Route(configuration, firstTry: 0)
        func close(after time: Int64) throws -> String? {
            route.state = .ready(try BrokerConnection(configuration, will: nil), since: 0)
            route.failed(.closed, at: time, "no connection")
            return route.fault
        }
        #expect(try close(after: 5000) == BrokerEnding.closed.text)
        #expect(try close(after: 5000)?.hasSuffix("two hosts have one name ([publish] host)") == true)
        #expect(try close(after: 15_000) == BrokerEnding.closed.text)
    }

    @Test("a will that the broker does not support is left out, once for each reason")
    func will() throws {
        var route = Route(MQTTConfiguration(), firstTry: 0)
        for code in [UInt8(0x9A), 0x9B] {
            let changes = [7, 8].map { route.changesWill(after: BrokerPacket.Reason(code), at: $0) }
            #expect(changes == [true, false] && route.deadline == 7)
        }
        let isChanged = route.changesWill(after: BrokerPacket.Reason(0x87), at: 7)
        #expect(!isChanged)
    }

    @Test("numbers of messages that wait are not given out again")
    func numbers() throws {
        let broker = try ScriptedBroker(answer: Self.accepted)
        _ = broker.connection.step(at: 0)
        guard case .sent(let held) = broker.connection.publish("t", [], retain: false, at: 0) else {
            throw Malformed("not sent")
        }
        for _ in 0..<65_600 {
            guard case .sent(let id) = broker.connection.publish("t", [], retain: false, at: 0), id != held,
                (1...65_535).contains(id)
            else { throw Malformed("a wrong number") }
            _ = broker.connection.step(at: 0)
            _ = broker.heard()
            broker.say([0x40, 2, UInt8(id >> 8), UInt8(id & 0xFF)])
            #expect(broker.connection.step(at: 0).events == [.acknowledged(id, BrokerPacket.Reason(0))])
        }
    }
}
