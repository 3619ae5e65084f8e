// SPDX-License-Identifier: GPL-3.0-or-later
package import Host
package import ISO7816
package import Readers
package import Text

// badged and the program of a driver talk over a socket of type SOCK_SEQPACKET, which keeps the boundaries of messages.
// The first byte of a message is its kind: 0 is `Heartbeat.message`, 1 to 31 are requests, 32 to 63 reports, and from 64
// on a driver may have messages of its own. `MessageWriter` says how numbers and texts are written.

/// A message to whoever has readers.
package enum DriverRequest: Sendable, Equatable {
    /// Look for readers. Names sources that the configuration has, such as devices.
    case look(sources: [String])
    /// Do something with the card of an insertion. `DriverReport.answer` has the same `id`.
    case card(CardRequest, of: UInt64, id: UInt32)
    /// Show the progress of a workflow where the card is.
    case progress(UInt8, of: UInt64)
    /// Nobody waits for the answer to a request any more: end its question to a person. badged also ends its wait for a
    /// card. The request is still answered.
    case cancel(id: UInt32)
    /// Open the device of a reader anew, and record what it says. `DriverReport.answer` has the same `id`.
    case record(reader: String, id: UInt32)
    /// Make the checks that are not sent as events. `DriverReport.health` has the same `id`.
    case health(id: UInt32)
}

/// What is asked about a card. Each request has one answer.
package enum CardRequest: Sendable, Equatable {
    case connect
    case transmit(CommandAPDU)
    /// The user of the card has finished. With `reset` a card that got commands is reset.
    case release(reset: Bool)
    case establishPACE(KeypadPACERequest)
    case destroyPACE
    case modifyPIN

    /// Whether a person answers it at the reader.
    var asksPerson: Bool {
        switch self {
        case .establishPACE, .modifyPIN: true
        case .connect, .transmit, .release, .destroyPACE: false
        }
    }
}

/// A message from whoever has readers.
package enum DriverReport: Sendable {
    /// The first message of a program.
    case hello(program: String, version: String)
    /// The numbers of insertions are those of the sender.
    case event(ReaderEvent)
    case answer(id: UInt32, Result<CardAnswer, CardError>)
    case health(id: UInt32, [HealthCheck])
}

package enum CardAnswer: Sendable, Equatable {
    case done
    /// The answer to `transmit`.
    case response(ResponseAPDU)
    /// The answer to `establishPACE`.
    case pace(KeypadPACEResult)
    /// The answer to `modifyPIN`.
    case status(StatusWord)
    /// The answer to `DriverRequest.record`: the text of a `BoardRecording`.
    case frames([UInt8])
}

package enum DriverMessage {
    /// The maximum size of a message. The largest messages are APDUs and health checks.
    package static let maximumSize = 131_072
    /// The first kind of a report, and the first of a driver's own messages.
    package static let firstReport: UInt8 = 32
    package static let firstOwn: UInt8 = 64
    static let maximumChecks = 256
    static let maximumFacts = 16
}

// MARK: Requests

extension DriverRequest: FieldMessage {
    package var bytes: [UInt8] {
        switch self {
        case .look(let sources):
            var writer = MessageWriter(kind: 1)
            writer.append(fields: sources)
            return writer.bytes
        case .card(let request, let insertion, let id):
            let kind: UInt8 =
                switch request {
                case .connect: 2
                case .transmit: 3
                case .release: 4
                case .establishPACE: 5
                case .destroyPACE: 6
                case .modifyPIN: 7
                }
            var writer = MessageWriter(kind: kind, id, insertion)
            switch request {
            case .transmit(let command): writer.append(command.bytes)
            case .release(let reset): writer.append(reset)
            case .establishPACE(let request): request.write(to: &writer)
            case .connect, .destroyPACE, .modifyPIN: break
            }
            return writer.bytes
        case .progress(let percent, let insertion): return MessageWriter(kind: 8, percent, insertion).bytes
        case .cancel(let id): return MessageWriter(kind: 9, id).bytes
        case .health(let id): return MessageWriter(kind: 10, id).bytes
        case .record(let reader, let id): return MessageWriter(kind: 11, id, reader).bytes
        }
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        switch kind {
        case 1:
            var sources: [String] = []
            while !reader.isAtEnd { sources.append(try reader.read()) }
            self = .look(sources: sources)
        case 2...7:
            let (id, insertion): (UInt32, UInt64) = (try reader.read(), try reader.read())
            let request: CardRequest =
                switch kind {
                case 2: .connect
                case 3: .transmit(try CommandAPDU(bytes: reader.remaining()).field())
                case 4: .release(reset: try reader.read())
                case 5: .establishPACE(try reader.read())
                case 6: .destroyPACE
                default: .modifyPIN
                }
            self = .card(request, of: insertion, id: id)
        case 8: self = .progress(try reader.read(), of: try reader.read())
        case 9: self = .cancel(id: try reader.read())
        case 10: self = .health(id: try reader.read())
        case 11:
            let id: UInt32 = try reader.read()
            self = .record(reader: try reader.read(), id: id)
        default: throw Malformed("kind of a request")
        }
    }
}

extension KeypadPACERequest: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(fields: [passwordID, chat, certificateDescription])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        self.init(
            passwordID: try reader.read(),
            chat: try reader.read(),
            certificateDescription: try reader.read()
        )
    }
}

// MARK: Reports

extension DriverReport: FieldMessage {
    package var bytes: [UInt8] {
        switch self {
        case .hello(let program, let version): return MessageWriter(kind: 32, program, version).bytes
        case .event(.added(let reader)): return MessageWriter(kind: 33, reader).bytes
        case .event(.changed(let reader)): return MessageWriter(kind: 34, reader).bytes
        case .event(.removed(let reader)): return MessageWriter(kind: 35, reader).bytes
        case .event(.inserted(let insertion, let answerToReset)):
            var writer = MessageWriter(kind: 36, insertion)
            writer.append(answerToReset)
            return writer.bytes
        case .event(.withdrawn(let insertion)): return MessageWriter(kind: 37, insertion).bytes
        case .event(.held(let insertion)): return MessageWriter(kind: 38, insertion).bytes
        case .event(.health(let checks)): return Self.write(checks, to: MessageWriter(kind: 39))
        case .answer(let id, .success(.done)): return MessageWriter(kind: 40, id).bytes
        case .answer(let id, .success(.response(let response))):
            var writer = MessageWriter(kind: 41, id)
            writer.append(response.bytes)
            return writer.bytes
        case .answer(let id, .success(.pace(let result))): return MessageWriter(kind: 42, id, result).bytes
        case .answer(let id, .success(.status(let status))): return MessageWriter(kind: 43, id, status.value).bytes
        case .answer(let id, .success(.frames(let text))):
            var writer = MessageWriter(kind: 46, id)
            writer.append(text)
            return writer.bytes
        case .answer(let id, .failure(let error)): return MessageWriter(kind: 44, id, error).bytes
        case .health(let id, let checks): return Self.write(checks, to: MessageWriter(kind: 45, id))
        }
    }

    /// Writes as many checks as fit.
    private static func write(_ checks: [HealthCheck], to start: MessageWriter) -> [UInt8] {
        var writer = start
        for check in checks.prefix(DriverMessage.maximumChecks) {
            var longer = writer
            check.write(to: &longer)
            if longer.bytes.count <= DriverMessage.maximumSize { writer = longer }
        }
        return writer.bytes
    }

    private static func checks(_ reader: inout MessageReader) throws(Malformed) -> [HealthCheck] {
        var checks: [HealthCheck] = []
        while !reader.isAtEnd {
            guard checks.count < DriverMessage.maximumChecks else { throw Malformed("too many checks") }
            checks.append(try reader.read())
        }
        return checks
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        switch kind {
        case 32: self = .hello(program: try reader.read(), version: try reader.read())
        case 33: self = .event(.added(try reader.read()))
        case 34: self = .event(.changed(try reader.read()))
        case 35: self = .event(.removed(reader: try reader.read()))
        case 36: self = .event(.inserted(try reader.read(), answerToReset: reader.remaining()))
        case 37: self = .event(.withdrawn(try reader.read()))
        case 38: self = .event(.held(try reader.read()))
        case 39: self = .event(.health(try Self.checks(&reader)))
        case 40: self = .answer(id: try reader.read(), .success(.done))
        case 41:
            self = .answer(
                id: try reader.read(),
                .success(.response(try ResponseAPDU(bytes: reader.remaining()).field()))
            )
        case 42: self = .answer(id: try reader.read(), .success(.pace(try reader.read())))
        case 43: self = .answer(id: try reader.read(), .success(.status(StatusWord(try reader.read()))))
        case 44: self = .answer(id: try reader.read(), .failure(try reader.read()))
        case 45: self = .health(id: try reader.read(), try Self.checks(&reader))
        case 46: self = .answer(id: try reader.read(), .success(.frames(reader.remaining())))
        default: throw Malformed("kind of a report")
        }
    }
}

extension CardError: MessageField {
    /// The errors without a text, by their code.
    private static let plain: [CardError] = [
        .removed, .reset, .mute, .exclusive, .cancelled, .noResources, .serviceUnavailable, .accessDenied, .tooLong,
    ]

    package func write(to writer: inout MessageWriter) {
        let code = UInt8(Self.plain.firstIndex(of: self) ?? Self.plain.count)
        writer.append(code)
        if case .other(let text) = self { writer.append(text: text) }
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let code = Int(try reader.read(UInt8.self))
        switch code {
        case ..<Self.plain.count: self = Self.plain[code]
        case Self.plain.count: self = .other(try reader.read())
        default: throw Malformed("error of a card")
        }
    }
}

extension KeypadPACEResult: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(PACEChannel.code(outcome))
        writer.append(optional: mseStatus?.value)
        writer.append(fields: [cardAccess, carCurrent, carPrevious, idPICC])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        self.init(outcome: PACEChannel.outcome(try reader.read()))
        let status: UInt16? = try reader.optional()
        mseStatus = status.map { StatusWord($0) }
        cardAccess = try reader.read()
        carCurrent = try reader.read()
        carPrevious = try reader.read()
        idPICC = try reader.read()
    }
}

/// Whether a reader is a virtual one or is lent is not said by its program.
extension ReaderDescription: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(fields: [hasKeypad, hasExtendedLength, name]) }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let (hasKeypad, hasExtendedLength): (Bool, Bool) = (try reader.read(), try reader.read())
        self.init(name: try reader.read(), hasKeypad: hasKeypad, hasExtendedLength: hasExtendedLength)
    }
}

extension Insertion: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(fields: [number, reader]) }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let number: UInt64 = try reader.read()
        self.init(reader: try reader.read(), number: number)
    }
}

/// Of the facts only numbers with a short name are sent.
extension HealthCheck: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(fields: [ok, name])
        writer.append(optional: cause)
        writer.append(optional: advice)
        writer.append(fields: [self.reader])
        let numbers = facts.prefix(DriverMessage.maximumFacts).compactMap { fact -> (String, Int64)? in
            guard case .number(let number) = fact.value, fact.name.utf8.count <= 240 else { return nil }
            return (fact.name, Int64(number))
        }
        writer.append(list: numbers) { $0.append(fields: [$1.0, $1.1]) }
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let (isOK, name): (Bool, String) = (try reader.read(), try reader.read())
        self.init(
            name,
            ok: isOK,
            cause: try reader.optional(),
            advice: try reader.optional(),
            reader: try reader.read(),
            facts: try reader.list(maximum: DriverMessage.maximumFacts) { reader throws(Malformed) in
                let name: String = try reader.read()
                return Fact(name, Int(try reader.read(Int64.self)))
            }
        )
    }
}
