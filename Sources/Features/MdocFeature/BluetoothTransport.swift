// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Concurrency
import DoorReaders
import Text

/// The service that a phone and a reader share, in one of both modes. ISO/IEC 18013-5, 8.3.3.1.1.3.
struct PhoneService {
    let way: MdocWay
    /// Begins and ends the session, from either side.
    let state: String
    let toPhone: String
    let fromPhone: String

    static let start: [UInt8] = [1]
    static let end: [UInt8] = [2]

    private static func uuid(_ number: Int) -> String { "0000000\(number)-a123-48ce-896b-4c76973373e6" }

    /// The phone is the server.
    static let peripheral = PhoneService(way: .blePeripheral, state: uuid(1), toPhone: uuid(2), fromPhone: uuid(3))
    /// badged is the server.
    static let central = PhoneService(way: .bleCentral, state: uuid(5), toPhone: uuid(7), fromPhone: uuid(6))
    /// By which the phone recognises the reader.
    private static let ident = uuid(8)

    /// What badged offers as the server.
    static func offer(_ uuid: [UInt8], ident: [UInt8]) -> GATTService {
        GATTService(
            UUIDText.encode(uuid),
            [
                .init(central.state, ["notify", "write-without-response"]),
                .init(central.fromPhone, ["write-without-response"]),
                .init(central.toPhone, ["notify"]),
                .init(Self.ident, ["read"], value: ident),
            ]
        )
    }

    /// What badged expects of a phone that is the server.
    static func profile(_ uuid: [UInt8]) -> GATTProfile {
        GATTProfile(
            Phrase("mobile documents"),
            of: Phrase("the phone"),
            services: [UUIDText.encode(uuid)],
            written: [peripheral.toPhone, peripheral.state],
            notified: [peripheral.state, peripheral.fromPhone],
            mostWaiting: 8192,
            isPassing: true
        )
    }
}

/// Carries messages in values of characteristics. ISO/IEC 18013-5, 8.3.3.1.1.
@Loop final class BluetoothTransport: MdocTransport {
    var way: MdocWay { service.way }
    let caution: String?

    /// The time for the end of the session, in milliseconds.
    private static let endLimit: Milliseconds = 200

    private let service: PhoneService
    private let peer: any GATTPeer
    /// The time for one value, and for the next part of a message, in milliseconds.
    private let partLimit: Milliseconds
    /// Frees the adapter.
    private let onEnd: @Loop () -> Void
    private var parts = BluetoothParts()

    /// Takes over a connection whose session has begun.
    init(
        _ service: PhoneService,
        _ peer: any GATTPeer,
        partLimit: Milliseconds,
        caution: String?,
        onEnd: @escaping @Loop () -> Void
    ) {
        self.service = service
        self.peer = peer
        self.partLimit = partLimit
        self.caution = caution
        self.onEnd = onEnd
    }

    func send(_ message: [UInt8]) async throws(MdocTransportError) {
        do throws(LinkFailure) {
            try await send(message, within: partLimit)
        } catch {
            throw Self.fault(error)
        }
    }

    private func send(_ message: [UInt8], within limit: Milliseconds) async throws(LinkFailure) {
        for part in BluetoothParts.divide(message, capacity: peer.capacity) {
            try await peer.send(part, on: service.toPhone, within: limit)
        }
    }

    func receive(_ progress: @escaping @Sendable (Int) -> Void) async throws(MdocTransportError) -> [UInt8] {
        while true {
            let value: GATTValue
            do throws(LinkFailure) {
                value = try await peer.value(within: parts.isInside ? partLimit : nil)
            } catch {
                throw Self.fault(error)
            }
            switch value.characteristic {
            case service.state where value.bytes == PhoneService.end:
                throw parts.isInside ? .connectionLost("the phone ends the session inside its answer") : .ended
            case service.fromPhone:
                let message = try parts.add(value.bytes)
                progress(message?.count ?? parts.count)
                if let message { return message }
            default: break
            }
        }
    }

    func close(_ last: [UInt8]?) async {
        // The task may be cancelled.
        await Task { @Loop in
            // Perhaps nobody is there any more.
            if let last { try? await send(last, within: Self.endLimit) }
            try? await peer.send(PhoneService.end, on: service.state, within: Self.endLimit)
            onEnd()
        }.value
    }

    private static func fault(_ failure: LinkFailure) -> MdocTransportError {
        if Task.isCancelled { return .cancelled }
        return switch failure {
        case .timedOut: .connectionLost("the phone does not go on")
        case .late(let reason), .inUse(let reason), .failed(let reason): .connectionLost(reason)
        }
    }
}
