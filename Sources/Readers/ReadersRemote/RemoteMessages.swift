// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

// The messages that badged and badged-remote have besides those of `Drivers`: the own key, what is to be done, and
// pairings. badged-remote asks, badged decides and keeps. Readers of this host that others borrow are told and used by
// the messages of `Drivers` in the other direction.

/// A message from badged to badged-remote.
package enum RemoteRequest: Sendable {
    /// The key and the certificate of this host.
    case identity(key: SecretBox, certificate: [UInt8])
    /// Listen for announcements, and connect to these devices.
    case borrow(RemoteLenders.Settings, [RemoteDevice])
    /// Close the port of announcements and all connections to devices that lend readers.
    case rest
    /// Pair with a device that announces itself. `RemoteReport.paired` has the same `id`.
    case pair(id: UInt32, fingerprint: String, code: SecretBox)
    case stopPairing(id: UInt32)
    /// Announce this host, and serve these devices.
    case lend(LendingSettings, [RemoteDevice])
    /// Let a device pair that knows the code.
    case openPairing(code: SecretBox)
    case closePairing
    /// The answer to `RemoteReport.knowsCode`: whether the pairing is stored.
    case kept(Bool)
}

/// A message from badged-remote to badged.
package enum RemoteReport: Sendable, Equatable {
    /// The devices that lend readers have changed.
    case lenders(LendersState)
    case paired(id: UInt32, RemotePairing)
    /// The state of the ports for devices that borrow readers has changed.
    case lending(LendingState)
    /// A device is connected that borrows readers; nil: it has left. There is at most one.
    case guest(RemoteDevice?)
    /// A device has proved that it knows the code. It waits for `RemoteRequest.kept`.
    case knowsCode(RemoteDevice)
    /// A wrong code was tried so often that the pairing mode is over.
    case wrongCodes
}

/// Time limits of a link in milliseconds; tests pass other ones.
package struct LinkTimes: Sendable {
    /// For the TCP connection, then for TLS and the WebSocket handshake together, and for each write.
    package var setUp: Int64 = 5000
    /// Between a pong and the next ping.
    package var ping: Int64 = 5000
    /// Between a ping and its pong.
    package var pong: Int64 = 5000
    /// The delay of an answer, because AusweisApp loses one that arrives sooner. Only a server waits.
    package var answer: Int64 = 1

    package init() {}
}

/// How readers of this host are lent.
package struct LendingSettings: Sendable {
    /// The names of the readers that are lent.
    package var readers: [String]
    /// The names of the network interfaces; empty: all with a broadcast address.
    package var interfaces: [String]
    /// The port to which announcements are sent.
    package var offerPort = RemoteLenders.Settings.announcementPort
    /// The name of this host for other devices.
    package var name: String
    package var times = LinkTimes()
    /// Milliseconds between two announcements.
    package var offerTime: Int64 = 1000
    /// Milliseconds after which the pairing mode ends.
    package var pairingTime: Int64 = 120_000
    /// Milliseconds after which a device that does not use its card loses it. `[server] prompt_timeout`.
    package var cardTime: Int64 = 600_000
    /// Milliseconds after which a handshake makes room for others.
    package var handshakeTime: Int64 = 1000

    package init(readers: [String], interfaces: [String] = [], name: String) {
        self.readers = readers
        self.interfaces = interfaces
        self.name = name
    }
}

/// The devices that lend readers, as badged-remote sees them.
package struct LendersState: Sendable, Equatable {
    /// A device that announces itself.
    package struct Sighting: Sendable, Equatable {
        package var device: RemoteDevice
        /// The TCP port in the announcement.
        package var port: UInt16
        /// Whether the device waits for a new partner.
        package var isPairing: Bool

        package init(device: RemoteDevice, port: UInt16, isPairing: Bool) {
            self.device = device
            self.port = port
            self.isPairing = isPairing
        }
    }

    /// The port of announcements; 0 while it is closed.
    package var port: UInt16 = 0
    /// The announcements since the start.
    package var offers: UInt32 = 0
    package var sightings: [Sighting] = []
    /// The paired devices that are connected, with the names that they have given.
    package var connected: [RemoteDevice] = []
    /// The fingerprints of paired devices that no longer accept this host.
    package var rejecting: [String] = []

    package init() {}
}

/// The ports for devices that borrow readers.
package struct LendingState: Sendable, Equatable {
    package var isOpen = false
    /// Why they are not open.
    package var cause: Phrase?
    package var advice: Phrase?
    /// The connections that came to nothing, while there is a flood of them; 0: there is none.
    package var flood: UInt32 = 0
    /// The address from which most of them came.
    package var floodSource: String?
    /// What to do against it.
    package var floodAdvice: Phrase?

    package init() {}
}

/// The outcome of a pairing.
package enum RemotePairing: Sendable, Equatable {
    case paired(RemoteDevice)
    case wrongCode
    /// There is no announcement of the device.
    case absent
    /// The device has another certificate than its announcement says.
    case otherDevice
    case failed(Phrase)
}

package enum RemoteMessage {
    /// The first kind of a report; those of requests are smaller.
    package static let firstReport: UInt8 = 96
    package static let maximumDevices = 64
    /// Strangers and paired devices.
    static let maximumSightings = 2 * maximumDevices
    static let maximumInterfaces = 256
}

// MARK: Requests

extension RemoteRequest: FieldMessage {
    /// A key and a code are taken from their boxes.
    package var bytes: [UInt8] {
        switch self {
        case .identity(let key, let certificate): return MessageWriter(kind: 64, key, certificate).bytes
        case .borrow(let settings, let devices):
            var writer = MessageWriter(kind: 65, settings)
            writer.append(list: devices)
            return writer.bytes
        case .rest: return MessageWriter(kind: 66).bytes
        case .pair(let id, let fingerprint, let code): return MessageWriter(kind: 67, id, fingerprint, code).bytes
        case .stopPairing(let id): return MessageWriter(kind: 68, id).bytes
        case .lend(let settings, let devices):
            var writer = MessageWriter(kind: 69, settings)
            writer.append(list: devices)
            return writer.bytes
        case .openPairing(let code): return MessageWriter(kind: 70, code).bytes
        case .closePairing: return MessageWriter(kind: 71).bytes
        case .kept(let isKept): return MessageWriter(kind: 72, isKept).bytes
        }
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        let maximum = RemoteMessage.maximumDevices
        switch kind {
        case 64: self = .identity(key: try reader.read(), certificate: try reader.read())
        case 65: self = .borrow(try reader.read(), try reader.list(maximum: maximum))
        case 66: self = .rest
        case 67: self = .pair(id: try reader.read(), fingerprint: try reader.read(), code: try reader.read())
        case 68: self = .stopPairing(id: try reader.read())
        case 69: self = .lend(try reader.read(), try reader.list(maximum: maximum))
        case 70: self = .openPairing(code: try reader.read())
        case 71: self = .closePairing
        case 72: self = .kept(try reader.read())
        default: throw Malformed("kind of a request")
        }
    }
}

/// The writer takes the secret, and writes nothing if it was taken before.
extension SecretBox: MessageField {
    package func write(to writer: inout MessageWriter) {
        guard let secret = take() else { return writer.append(block: []) }
        secret.withBytes { writer.append(block: $0) }
    }

    package convenience init(from reader: inout MessageReader) throws(Malformed) {
        var bytes: [UInt8] = try reader.read()
        defer { bytes.wipe() }
        self.init(Secret(bytes))
    }
}

extension LinkTimes: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(fields: [setUp, ping, pong, answer]) }

    package init(from reader: inout MessageReader) throws(Malformed) {
        setUp = try reader.read()
        ping = try reader.read()
        pong = try reader.read()
        answer = try reader.read()
    }
}

extension RemoteLenders.Settings: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(list: interfaces)
        writer.append(fields: [port, name, times, answerTime, turnTime, sightingTime, firstPause])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        self.init(interfaces: try reader.list(maximum: RemoteMessage.maximumInterfaces), name: "")
        port = try reader.read()
        name = try reader.read()
        times = try reader.read()
        answerTime = try reader.read()
        turnTime = try reader.read()
        sightingTime = try reader.read()
        firstPause = try reader.read()
    }
}

/// What badged decides for itself is not sent.
extension LendingSettings: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(list: interfaces)
        writer.append(fields: [offerPort, name, times, offerTime, handshakeTime])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        self.init(readers: [], interfaces: try reader.list(maximum: RemoteMessage.maximumInterfaces), name: "")
        offerPort = try reader.read()
        name = try reader.read()
        times = try reader.read()
        offerTime = try reader.read()
        handshakeTime = try reader.read()
    }
}

// MARK: Reports

extension RemoteReport: FieldMessage {
    package var bytes: [UInt8] {
        switch self {
        case .lenders(let state): MessageWriter(kind: 96, state).bytes
        case .paired(let id, let outcome): MessageWriter(kind: 97, id, outcome).bytes
        case .lending(let state): MessageWriter(kind: 98, state).bytes
        case .guest(let device?): MessageWriter(kind: 99, device).bytes
        case .guest(nil): MessageWriter(kind: 100).bytes
        case .knowsCode(let device): MessageWriter(kind: 101, device).bytes
        case .wrongCodes: MessageWriter(kind: 102).bytes
        }
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        switch kind {
        case 96: self = .lenders(try reader.read())
        case 97: self = .paired(id: try reader.read(), try reader.read())
        case 98: self = .lending(try reader.read())
        case 99: self = .guest(try reader.read(RemoteDevice.self))
        case 100: self = .guest(nil)
        case 101: self = .knowsCode(try reader.read())
        case 102: self = .wrongCodes
        default: throw Malformed("kind of a report")
        }
    }
}

extension LendersState: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(fields: [port, offers])
        writer.append(list: sightings)
        writer.append(list: connected)
        writer.append(list: rejecting)
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        port = try reader.read()
        offers = try reader.read()
        sightings = try reader.list(maximum: RemoteMessage.maximumSightings)
        connected = try reader.list(maximum: RemoteMessage.maximumDevices)
        rejecting = try reader.list(maximum: RemoteMessage.maximumDevices)
    }
}

extension LendersState.Sighting: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(fields: [device, port, isPairing]) }

    package init(from reader: inout MessageReader) throws(Malformed) {
        device = try reader.read()
        port = try reader.read()
        isPairing = try reader.read()
    }
}

extension LendingState: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(isOpen)
        writer.append(optional: cause)
        writer.append(optional: advice)
        writer.append(fields: [flood, floodSource])
        writer.append(optional: floodAdvice)
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        isOpen = try reader.read()
        cause = try reader.optional()
        advice = try reader.optional()
        flood = try reader.read()
        floodSource = try reader.read()
        floodAdvice = try reader.optional()
    }
}

extension RemotePairing: MessageField {
    package func write(to writer: inout MessageWriter) {
        switch self {
        case .paired(let device): writer.append(fields: [UInt8(0), device])
        case .wrongCode: writer.append(UInt8(1))
        case .absent: writer.append(UInt8(2))
        case .otherDevice: writer.append(UInt8(3))
        case .failed(let reason): writer.append(fields: [UInt8(4), reason])
        }
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        switch try reader.read(UInt8.self) {
        case 0: self = .paired(try reader.read())
        case 1: self = .wrongCode
        case 2: self = .absent
        case 3: self = .otherDevice
        case 4: self = .failed(try reader.read())
        default: throw Malformed("outcome of a pairing")
        }
    }
}
