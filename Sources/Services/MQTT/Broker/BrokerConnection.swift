// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
package import Host
import Text

/// One connection to the broker: MQTT 5.0 or 3.1.1 of a publisher. A new connection is a new object.
///
/// It connects, publishes, pings and disconnects, and never subscribes. What the broker sends is bounded: a packet that
/// a publisher does not expect, or one that does not answer to something, ends the connection. No call waits. Times are
/// milliseconds of a clock that is never set.
package final class BrokerConnection {
    package enum Event: Equatable {
        /// The transport is there, and `login` may be called.
        case open
        case accepted(BrokerLimits)
        case refused(BrokerPacket.Reason)
        /// PUBACK, with its reason.
        case acknowledged(Int32, BrokerPacket.Reason)
    }

    /// The message that the broker publishes when the connection ends without DISCONNECT.
    package struct Will: Sendable {
        package let topic: String
        package let payload: [UInt8]
        /// A broker that supports neither refuses the connection because of its will.
        package var qos: UInt8 = 1
        package var isRetained = true

        package init(topic: String, payload: [UInt8]) {
            self.topic = topic
            self.payload = payload
        }
    }

    /// What a PUBLISH came to.
    package enum Sent {
        case sent(Int32)
        case tooLarge
        case failed
    }

    package static let window = 20
    /// Bytes of a file with a password.
    private static let maximumPassword = 4096
    /// How long the broker may take for an answer to a ping: as long as the keep-alive, within these limits.
    private static let pingTime: ClosedRange<Int64> = 10_000...120_000

    private let configuration: MQTTConfiguration
    private let settings: TLSSettings?
    private var login: ClientPacket.Login
    private var isFive: Bool { login.isFive }

    private enum State {
        case idle
        case handshake(BrokerStream)
        /// The transport is there; CONNECT may be sent.
        case open(BrokerStream)
        /// CONNECT was sent.
        case loggingIn(BrokerStream)
        case ready(BrokerStream)
        case ended
    }

    private var state = State.idle
    private var limits = BrokerLimits()
    private var events: [Event] = []
    private var input: PacketBuffer
    private var output = WipedQueue()
    private var isWriteBlocked = false

    private var lastID: Int32 = 0
    /// Messages without PUBACK.
    private var unacknowledged: Set<Int32> = []
    /// Messages with QoS 0 since the last ping, and those before it. The answer to the ping shows that the broker has read
    /// them.
    private var unconfirmed: [Int32] = []
    private var confirming: [Int32] = []
    private var sentAt: Int64 = 0
    /// When a ping was sent that has no answer.
    private var pingedAt: Int64?

    /// Reads the files that the settings name.
    /// - Throws: `StartError` in words for the log if one cannot be used now.
    package init(_ configuration: MQTTConfiguration, will: Will?) throws(StartError) {
        self.configuration = configuration
        input = PacketBuffer(isFive: configuration.version == .five)
        settings = configuration.usesTLS ? try TLSSettings(configuration) : nil
        login = ClientPacket.Login(
            isFive: configuration.version == .five,
            clientID: configuration.clientID,
            keepAlive: configuration.keepAlive,
            will: will,
            user: configuration.user,
            password: configuration.user == nil ? nil : try Self.password(configuration)
        )
    }

    deinit { login.password?.wipe() }

    /// The first line of the file with the password; nil without a file.
    static func password(_ configuration: MQTTConfiguration) throws(StartError) -> [UInt8]? {
        guard let path = configuration.passwordFile else { return nil }
        let setting = "[broker] password_file"
        let content = try SecretFile.read(path, limit: maximumPassword, setting: setting)
        guard content.count <= maximumPassword else {
            throw StartError.inConfiguration("\(path) is too long for a password", hint: "correct \(setting)")
        }
        let password = content.withBytes { bytes in Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D }) }
        guard !password.isEmpty else {
            throw StartError.inConfiguration("\(path) has no password in its first line", hint: "correct \(setting)")
        }
        return password
    }

    // MARK: Steps

    /// Begins on a connected socket, which it takes over.
    package func begin(_ descriptor: Int32) {
        state = .handshake(BrokerStream(descriptor, settings, host: configuration.host ?? ""))
    }

    private var stream: BrokerStream? {
        switch state {
        case .handshake(let stream), .open(let stream), .loggingIn(let stream), .ready(let stream): stream
        case .idle, .ended: nil
        }
    }

    /// The descriptor to wait for; negative without a connection.
    package var descriptor: Int32 { stream?.descriptor ?? -1 }

    package var wantsWrite: Bool {
        if case .handshake = state { return isWriteBlocked }
        return isWriteBlocked || output.count > 0
    }

    /// When `step` must be called although nothing arrives.
    package var deadline: Int64 {
        guard case .ready = state else { return .max }
        return pingedAt.map { $0 + pingTime } ?? sentAt + pingPause
    }

    private var keepAlive: Int64 {
        let wanted = limits.keepAlive ?? configuration.keepAlive
        // 0: the broker does not look. A broken link is noticed by the pings all the same.
        return Int64(wanted == 0 ? configuration.keepAlive : wanted) * 1000
    }

    /// A ping arrives within the keep-alive also when it takes some time.
    private var pingPause: Int64 { keepAlive * 3 / 4 }
    private var pingTime: Int64 { min(max(keepAlive, Self.pingTime.lowerBound), Self.pingTime.upperBound) }

    /// Does what is possible without waiting.
    /// - Returns: the events, and why the connection has ended.
    package func step(at now: Int64) -> (events: [Event], ending: BrokerEnding?) {
        var ending: BrokerEnding?
        isWriteBlocked = false
        do throws(Malformed) {
            if case .handshake(let stream) = state { ending = handshake(stream) }
            if ending == nil { ending = try receive() }
            if ending == nil, case .ready = state { ending = ping(now) }
            if ending == nil { ending = write() }
        } catch {
            ending = .fault("the broker breaks the protocol: \(error.text)")
        }
        if ending == .closed, isLoggingIn {
            let text = BrokerEnding.closed.text
            ending = .fault("\(text) without an answer: check the port, and whether it is one for TLS")
        }
        if ending != nil { state = .ended }
        defer { events = [] }
        return (events, ending)
    }

    private func handshake(_ stream: BrokerStream) -> BrokerEnding? {
        switch stream.handshake() {
        case .moved:
            state = .open(stream)
            events.append(.open)
        case .waitsToRead: break
        case .waitsToWrite: isWriteBlocked = true
        case .ended(let reason): return reason
        }
        return nil
    }

    private func write() -> BrokerEnding? {
        if case .handshake = state { return nil }
        guard let stream else { return nil }
        var progress = BrokerStream.Progress.moved(0)
        output.drain { bytes in
            progress = stream.write(bytes)
            guard case .moved(let count) = progress else { return 0 }
            return count
        }
        switch progress {
        case .moved, .waitsToRead: break
        case .waitsToWrite: isWriteBlocked = true
        case .ended(let reason):
            // What the broker has said before tells more.
            return (try? receive()) ?? reason
        }
        return nil
    }

    private func receive() throws(Malformed) -> BrokerEnding? {
        guard let stream else { return nil }
        if case .handshake = state { return nil }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            switch buffer.withUnsafeMutableBytes(stream.read) {
            case .moved(let count):
                input.append(buffer.prefix(count))
                if let ending = try parse() { return ending }
            case .waitsToRead: return nil
            case .waitsToWrite:
                isWriteBlocked = true
                return nil
            case .ended(let reason): return reason
            }
        }
    }

    /// Handles the complete packets that have arrived.
    /// - Returns: why the broker ends the connection.
    private func parse() throws(Malformed) -> BrokerEnding? {
        while let packet = try input.next() {
            if let ending = try handle(packet) { return ending }
        }
        return nil
    }

    private func handle(_ packet: BrokerPacket) throws(Malformed) -> BrokerEnding? {
        switch (packet, state) {
        case (.accepted(let found), .loggingIn(let stream)):
            limits = found
            state = .ready(stream)
            events.append(.accepted(found))
        case (.refused(let reason), .loggingIn):
            events.append(.refused(reason))
            // What follows is not read, because a broker may say it without end.
            state = .ended
            return .closed
        case (.acknowledged(let id, let reason), .ready):
            guard unacknowledged.remove(Int32(id)) != nil else {
                throw Malformed("it acknowledges a message that was not sent")
            }
            events.append(.acknowledged(Int32(id), reason))
        case (.pong, .ready):
            guard pingedAt != nil else { throw Malformed("it answers to a ping that was not sent") }
            pingedAt = nil
            events += confirming.map { .acknowledged($0, BrokerPacket.Reason(0)) }
            confirming = []
        case (.ended(let reason), .loggingIn), (.ended(let reason), .ready):
            return .fault("the broker has ended the connection: \(reason.text(for: configuration))")
        case (.accepted, _), (.refused, _), (.acknowledged, _), (.pong, _), (.ended, _):
            throw Malformed("it sends a packet at the wrong time")
        }
        return nil
    }

    private func ping(_ now: Int64) -> BrokerEnding? {
        if let pingedAt { return now >= pingedAt + pingTime ? .fault("the broker does not answer to pings") : nil }
        // The clock of the connection begins with CONNECT.
        guard !unconfirmed.isEmpty || now >= sentAt + pingPause else { return nil }
        pingedAt = now
        confirming = unconfirmed
        unconfirmed = []
        send(ClientPacket.ping, now)
        return nil
    }

    private func send(_ packet: [UInt8], _ now: Int64) {
        output.append(packet)
        sentAt = now
    }

    // MARK: Packets

    /// Sends CONNECT, after `.open`.
    package func logIn(at now: Int64) {
        guard case .open(let stream) = state else { return }
        state = .loggingIn(stream)
        var packet = ClientPacket.connect(login)
        defer { packet.wipe() }
        send(packet, now)
    }

    /// Whether CONNECT was sent and has no answer.
    package var isLoggingIn: Bool { if case .loggingIn = state { true } else { false } }

    /// Publishes with QoS 1, or with QoS 0 if the broker allows no other. `expiry` in seconds, only with version 5.
    package func publish(
        _ topic: String,
        _ payload: [UInt8],
        retain: Bool,
        expiry: Int? = nil,
        at now: Int64
    ) -> Sent {
        guard case .ready = state else { return .failed }
        repeat { lastID = lastID % 65_535 + 1 } while unacknowledged.contains(lastID)
        let isConfirmed = limits.maximumQoS > 0
        let message = ClientPacket.Message(
            topic: topic,
            payload: payload,
            isRetained: retain && limits.isRetainAvailable,
            expiry: expiry
        )
        let packet = ClientPacket.publish(message, id: isConfirmed ? UInt16(lastID) : nil, isFive: isFive)
        guard packet.count <= min(limits.maximumPacketSize ?? .max, ClientPacket.maximumSize) else { return .tooLarge }
        if isConfirmed { unacknowledged.insert(lastID) } else { unconfirmed.append(lastID) }
        send(packet, now)
        return .sent(lastID)
    }

    /// Says the end, so that the broker does not send the will.
    package func disconnect() {
        guard case .ready(let stream) = state else { return }
        output.append(ClientPacket.disconnect)
        _ = write()
        stream.shutDown()
    }
}
