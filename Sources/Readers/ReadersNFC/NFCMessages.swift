// SPDX-License-Identifier: GPL-3.0-or-later
import Host
package import ISO7816
package import Readers
import Text

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

extension NFCRequest {
    package var bytes: [UInt8] {
        var writer: MessageWriter
        switch self {
        case .scan(let devices):
            writer = MessageWriter(kind: 1)
            for device in devices { writer.append(text: device) }
        case .transmit(let id, let insertion, let command):
            writer = MessageWriter(kind: 2)
            writer.append(id)
            writer.append(insertion)
            writer.append(command.bytes)
        case .release(let id, let insertion, let reset):
            writer = MessageWriter(kind: 3)
            writer.append(id)
            writer.append(insertion)
            writer.append(reset)
        }
        return writer.bytes
    }

    /// Parses a message; fails when the message is malformed.
    package init?(bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        switch reader.number(UInt8.self) {
        case 1:
            var devices: [String] = []
            while !reader.isAtEnd {
                guard let device = reader.text() else { return nil }
                devices.append(device)
            }
            self = .scan(devices: devices)
        case 2:
            guard let id = reader.number(UInt32.self), let insertion = reader.number(UInt64.self),
                let command = CommandAPDU(bytes: reader.remaining())
            else { return nil }
            self = .transmit(id: id, insertion: insertion, command: command)
        case 3:
            guard let id = reader.number(UInt32.self), let insertion = reader.number(UInt64.self),
                let reset = reader.flag()
            else { return nil }
            self = .release(id: id, insertion: insertion, reset: reset)
        default: return nil
        }
        guard reader.isAtEnd else { return nil }
    }
}

extension NFCReport {
    package var bytes: [UInt8] {
        var writer: MessageWriter
        switch self {
        case .event(.added(let reader)):
            writer = MessageWriter(kind: 1)
            writer.append(reader.hasExtendedLength)
            writer.append(text: reader.name)
        case .event(.changed(let reader)):
            writer = MessageWriter(kind: 2)
            writer.append(reader.hasExtendedLength)
            writer.append(text: reader.name)
        case .event(.removed(let reader)):
            writer = MessageWriter(kind: 3)
            writer.append(text: reader)
        case .event(.inserted(let insertion, let answerToReset)):
            writer = MessageWriter(kind: 4)
            writer.append(insertion.number)
            writer.append(text: insertion.reader)
            writer.append(answerToReset)
        case .event(.withdrawn(let insertion)):
            writer = MessageWriter(kind: 5)
            writer.append(insertion.number)
            writer.append(text: insertion.reader)
        case .event(.held(let insertion)):
            writer = MessageWriter(kind: 10)
            writer.append(insertion.number)
            writer.append(text: insertion.reader)
        case .event(.health(let checks)):
            writer = MessageWriter(kind: 6)
            for check in checks.prefix(NFCMessage.maximumChecks) {
                writer.append(check.ok)
                writer.append(text: check.name)
                writer.append(text: check.advice ?? "")
                writer.append(text: check.reader ?? "")
            }
        case .answer(let id, .success(let response)):
            writer = MessageWriter(kind: 7)
            writer.append(id)
            writer.append(response.bytes)
        case .answer(let id, .failure(let error)):
            writer = MessageWriter(kind: 8)
            writer.append(id)
            writer.append(error.code)
        case .released(let id):
            writer = MessageWriter(kind: 9)
            writer.append(id)
        }
        return writer.bytes
    }

    /// Parses a message; fails when the message is malformed.
    package init?(bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        switch reader.number(UInt8.self) {
        case 1:
            guard let description = reader.description() else { return nil }
            self = .event(.added(description))
        case 2:
            guard let description = reader.description() else { return nil }
            self = .event(.changed(description))
        case 3:
            guard let name = reader.text() else { return nil }
            self = .event(.removed(reader: name))
        case 4:
            guard let insertion = reader.insertion() else { return nil }
            self = .event(.inserted(insertion, answerToReset: reader.remaining()))
        case 5:
            guard let insertion = reader.insertion() else { return nil }
            self = .event(.withdrawn(insertion))
        case 6:
            var checks: [HealthCheck] = []
            while !reader.isAtEnd {
                guard checks.count < NFCMessage.maximumChecks, let isOK = reader.flag(), let name = reader.text(),
                    let advice = reader.text(), let missing = reader.text()
                else { return nil }
                checks.append(
                    HealthCheck(
                        name,
                        ok: isOK,
                        advice: advice.isEmpty ? nil : advice,
                        reader: missing.isEmpty ? nil : missing
                    )
                )
            }
            self = .event(.health(checks))
        case 7:
            guard let id = reader.number(UInt32.self), let response = ResponseAPDU(bytes: reader.remaining()) else {
                return nil
            }
            self = .answer(id: id, .success(response))
        case 8:
            guard let id = reader.number(UInt32.self), let code = reader.number(UInt8.self),
                let error = CardError(code: code)
            else { return nil }
            self = .answer(id: id, .failure(error))
        case 9:
            guard let id = reader.number(UInt32.self) else { return nil }
            self = .released(id: id)
        case 10:
            guard let insertion = reader.insertion() else { return nil }
            self = .event(.held(insertion))
        default: return nil
        }
        guard reader.isAtEnd else { return nil }
    }
}

extension CardError {
    /// The errors that badged-nfc reports. Every other error counts as `serviceUnavailable`.
    fileprivate var code: UInt8 {
        switch self {
        case .removed: 1
        case .mute: 2
        case .tooLong: 3
        case .serviceUnavailable, .reset, .exclusive, .cancelled, .noResources, .accessDenied, .other: 4
        }
    }

    fileprivate init?(code: UInt8) {
        switch code {
        case 1: self = .removed
        case 2: self = .mute
        case 3: self = .tooLong
        case 4: self = .serviceUnavailable
        default: return nil
        }
    }
}

extension MessageReader {
    fileprivate mutating func description() -> ReaderDescription? {
        guard let hasExtendedLength = flag(), let name = text() else { return nil }
        return ReaderDescription(name: name, hasExtendedLength: hasExtendedLength)
    }

    fileprivate mutating func insertion() -> Insertion? {
        guard let number = number(UInt64.self), let reader = text() else { return nil }
        return Insertion(reader: reader, number: number)
    }
}
