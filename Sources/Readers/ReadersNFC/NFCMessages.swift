// SPDX-License-Identifier: GPL-3.0-or-later
package import Host
package import ISO7816
package import Readers
package import Text

// badged and badged-nfc talk over a socket pair of type SOCK_SEQPACKET, which keeps the boundaries of messages. The
// first byte of a message is its kind. `MessageWriter` says how numbers and texts are written.

/// A message from badged to badged-nfc.
package enum NFCRequest: Sendable, Equatable {
    /// Look for devices. Gives the connection strings of the configuration.
    case scan(devices: [String])
    /// Send a command APDU to the card of an insertion. `NFCReport.answer` has the same `id`.
    case transmit(id: UInt32, insertion: UInt64, command: CommandAPDU)
    /// The user of a card has finished. With `reset` a card that got commands is reset. `NFCReport.released` has the
    /// same `id`.
    case release(id: UInt32, insertion: UInt64, reset: Bool)
}

/// A message from badged-nfc to badged.
package enum NFCReport: Sendable {
    /// The numbers of insertions are those of badged-nfc.
    case event(ReaderEvent)
    case answer(id: UInt32, Result<ResponseAPDU, CardError>)
    case released(id: UInt32)
}

package enum NFCMessage {
    /// The maximum size of a message. The largest messages are APDUs and health checks.
    package static let maximumSize = 131_072
    /// The texts of as many checks fit into a message.
    static let maximumChecks = 32
}

extension NFCRequest: FieldMessage {
    package var bytes: [UInt8] {
        switch self {
        case .scan(let devices):
            var writer = MessageWriter(kind: 1)
            writer.append(fields: devices)
            return writer.bytes
        case .transmit(let id, let insertion, let command):
            var writer = MessageWriter(kind: 2, id, insertion)
            writer.append(command.bytes)
            return writer.bytes
        case .release(let id, let insertion, let reset): return MessageWriter(kind: 3, id, insertion, reset).bytes
        }
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        switch kind {
        case 1:
            var devices: [String] = []
            while !reader.isAtEnd { devices.append(try reader.read()) }
            self = .scan(devices: devices)
        case 2:
            self = .transmit(
                id: try reader.read(),
                insertion: try reader.read(),
                command: try CommandAPDU(bytes: reader.remaining()).field()
            )
        case 3: self = .release(id: try reader.read(), insertion: try reader.read(), reset: try reader.read())
        default: throw Malformed("kind of a request")
        }
    }
}

extension NFCReport: FieldMessage {
    package var bytes: [UInt8] {
        switch self {
        case .event(.added(let reader)): return MessageWriter(kind: 1, reader).bytes
        case .event(.changed(let reader)): return MessageWriter(kind: 2, reader).bytes
        case .event(.removed(let reader)): return MessageWriter(kind: 3, reader).bytes
        case .event(.inserted(let insertion, let answerToReset)):
            var writer = MessageWriter(kind: 4, insertion)
            writer.append(answerToReset)
            return writer.bytes
        case .event(.withdrawn(let insertion)): return MessageWriter(kind: 5, insertion).bytes
        case .event(.held(let insertion)): return MessageWriter(kind: 10, insertion).bytes
        case .event(.health(let checks)):
            var writer = MessageWriter(kind: 6)
            writer.append(fields: Array(checks.prefix(NFCMessage.maximumChecks)))
            return writer.bytes
        case .answer(let id, .success(let response)):
            var writer = MessageWriter(kind: 7, id)
            writer.append(response.bytes)
            return writer.bytes
        case .answer(let id, .failure(let error)): return MessageWriter(kind: 8, id, error).bytes
        case .released(let id): return MessageWriter(kind: 9, id).bytes
        }
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        switch kind {
        case 1: self = .event(.added(try reader.read()))
        case 2: self = .event(.changed(try reader.read()))
        case 3: self = .event(.removed(reader: try reader.read()))
        case 4: self = .event(.inserted(try reader.read(), answerToReset: reader.remaining()))
        case 5: self = .event(.withdrawn(try reader.read()))
        case 6:
            var checks: [HealthCheck] = []
            while !reader.isAtEnd {
                guard checks.count < NFCMessage.maximumChecks else { throw Malformed("too many checks") }
                checks.append(try reader.read())
            }
            self = .event(.health(checks))
        case 7:
            self = .answer(
                id: try reader.read(),
                .success(try ResponseAPDU(bytes: reader.remaining()).field())
            )
        case 8: self = .answer(id: try reader.read(), .failure(try reader.read()))
        case 9: self = .released(id: try reader.read())
        case 10: self = .event(.held(try reader.read()))
        default: throw Malformed("kind of a report")
        }
    }
}

/// The errors that badged-nfc reports. Every other error counts as `serviceUnavailable`.
extension CardError: MessageField {
    package func write(to writer: inout MessageWriter) {
        let code: UInt8 =
            switch self {
            case .removed: 1
            case .mute: 2
            case .tooLong: 3
            case .serviceUnavailable, .reset, .exclusive, .cancelled, .noResources, .accessDenied, .other: 4
            }
        writer.append(code)
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        switch try reader.read(UInt8.self) {
        case 1: self = .removed
        case 2: self = .mute
        case 3: self = .tooLong
        case 4: self = .serviceUnavailable
        default: throw Malformed("error of a card")
        }
    }
}

extension ReaderDescription: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(fields: [hasExtendedLength, name]) }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let hasExtendedLength: Bool = try reader.read()
        self.init(name: try reader.read(), hasExtendedLength: hasExtendedLength)
    }
}

extension Insertion: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(fields: [number, reader]) }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let number: UInt64 = try reader.read()
        self.init(reader: try reader.read(), number: number)
    }
}

extension HealthCheck: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(fields: [ok, name, advice, self.reader]) }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let (isOK, name): (Bool, String) = (try reader.read(), try reader.read())
        self.init(name, ok: isOK, advice: try reader.read(), reader: try reader.read())
    }
}
