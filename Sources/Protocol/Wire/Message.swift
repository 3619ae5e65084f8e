// SPDX-License-Identifier: Apache-2.0
package import Text

/// What level 1, 2 and 3 of the SDK's protocol change. docs/protocol.md, API levels.
package enum APILevel: Int, Sendable, CaseIterable, Comparable {
    case one = 1
    case two, three

    package static func < (left: APILevel, right: APILevel) -> Bool { left.rawValue < right.rawValue }
}

/// The card in a reader, as READER tells it.
package enum CardState: Sendable, Equatable {
    case none
    /// Not an eID card: `{}` at level 3, `null` below.
    case unknown
    case eid(retryCounter: Int, deactivated: Bool, inoperative: Bool)
}

/// The members of READER, of each entry of READER_LIST and of `reader` in the ENTER messages.
package struct ReaderState: Sendable, Equatable {
    package var name: String
    /// nil: no such reader; then the message has no other member.
    package var attached: Attached?

    package struct Attached: Sendable, Equatable {
        package var insertable: Bool
        package var keypad: Bool
        package var card: CardState
        /// Another session's workflow holds it.
        package var busy: Bool

        package init(insertable: Bool, keypad: Bool, card: CardState, busy: Bool) {
            (self.insertable, self.keypad, self.card, self.busy) = (insertable, keypad, card, busy)
        }
    }

    package init(name: String, attached: Attached?) {
        (self.name, self.attached) = (name, attached)
    }
}

/// What a workflow waits for; the names are those of the messages that ask.
package enum WaitingState: String, Sendable {
    case accessRights = "ACCESS_RIGHTS"
    case insertCard = "INSERT_CARD"
    case enterPIN = "ENTER_PIN"
    case enterCAN = "ENTER_CAN"
    case enterNewPIN = "ENTER_NEW_PIN"
    case enterPUK = "ENTER_PUK"
    case pause = "PAUSE"
}

package enum WorkflowName: String, Sendable {
    case auth = "AUTH"
    case changePIN = "CHANGE_PIN"
}

/// Who serves: the members of INFO that change.
package struct ServerInfo: Sendable, Equatable {
    package var version: String
    package var drivers: [String]
    package var scanners: [String]

    /// Version of docs/protocol.md.
    package static let protocolVersion = 1

    package init(version: String, drivers: [String], scanners: [String] = []) {
        (self.version, self.drivers, self.scanners) = (version, drivers, scanners)
    }

    /// `VersionInfo`, keys sorted.
    package var versionFields: [(key: StaticString, value: String)] {
        [
            ("Implementation-Title", "badged"), ("Implementation-Vendor", "badged developers"),
            ("Implementation-Version", version), ("Name", "badged"), ("Specification-Title", "TR-03124-1"),
            ("Specification-Vendor", "Federal Office for Information Security"), ("Specification-Version", "1.4"),
        ]
    }
}

/// One line of HEALTH.
package struct HealthLine: Sendable, Equatable {
    package var name: String
    package var ok: Bool
    package var advice: String?
    /// Milliseconds since it went wrong, where that is known.
    package var errorAgo: Int64?

    package init(name: String, ok: Bool, advice: String?, errorAgo: Int64? = nil) {
        (self.name, self.ok, self.advice, self.errorAgo) = (name, ok, advice, errorAgo)
    }
}

/// Everything the server says. docs/protocol.md, Messages.
package enum Message: Sendable, Equatable {
    case accessDenied(command: String)
    case accessRights(AccessRightsState, error: String?)
    case apiLevel(current: APILevel, withAvailable: Bool, error: String?)
    /// The answer to ACTIVATE: where the browser goes, or why it goes nowhere; neither: what it asked for was done.
    case activation(url: String?, error: String?)
    /// ACTIVATION before its end: an authentication has begun.
    case activationAccepted
    case authStarted
    case authRefused(error: String)
    case authEnded(AuthResult)
    case badState(command: String)
    case certificate(CertificateState)
    case changePINStarted
    case changePINRefused(error: String)
    case changePINEnded(success: Bool, reason: String?)
    case door(DoorMessage)
    /// ENTER_PIN, ENTER_CAN, ENTER_NEW_PIN or ENTER_PUK. `question`: its number on this connection.
    case enter(WaitingState, error: String?, question: Int, reader: ReaderState)
    case health([HealthLine])
    case info(ServerInfo)
    /// `error` says why the card that is there cannot be used, `reader` where it is.
    case insertCard(error: String?, reader: String?)
    case internalError(String)
    case invalid(String)
    case pause(cause: String)
    case reader(ReaderState)
    case readerRefused(error: String)
    case readerList([ReaderState])
    /// A browser wants the user's program to come to the front, and perhaps to show a part of itself.
    case showUI(module: String)
    case status(workflow: WorkflowName?, progress: Int?, state: WaitingState?)
    case unknownCommand(String)
    /// Does this client speak with the user for browsers?
    case userInterface(active: Bool, error: String?)

    /// Name in `msg`.
    package var name: StaticString {
        switch self {
        case .accessDenied: "ACCESS_DENIED"
        case .accessRights: "ACCESS_RIGHTS"
        case .apiLevel: "API_LEVEL"
        case .activation, .activationAccepted: "ACTIVATION"
        case .authStarted, .authRefused, .authEnded: "AUTH"
        case .badState: "BAD_STATE"
        case .certificate: "CERTIFICATE"
        case .changePINStarted, .changePINRefused, .changePINEnded: "CHANGE_PIN"
        case .door(let message): message.name
        case .enter(let state, _, _, _):
            switch state {
            case .accessRights: "ACCESS_RIGHTS"
            case .enterPIN: "ENTER_PIN"
            case .enterCAN: "ENTER_CAN"
            case .enterNewPIN: "ENTER_NEW_PIN"
            case .enterPUK: "ENTER_PUK"
            case .insertCard: "INSERT_CARD"
            case .pause: "PAUSE"
            }
        case .health: "HEALTH"
        case .info: "INFO"
        case .insertCard: "INSERT_CARD"
        case .internalError: "INTERNAL_ERROR"
        case .invalid: "INVALID"
        case .pause: "PAUSE"
        case .reader, .readerRefused: "READER"
        case .readerList: "READER_LIST"
        case .showUI: "SHOW_UI"
        case .status: "STATUS"
        case .unknownCommand: "UNKNOWN_COMMAND"
        case .userInterface: "USER_INTERFACE"
        }
    }

    /// Writes the message as one compact object, keys sorted, without a line end.
    package func write(to writer: inout JSONWriter, level: APILevel, request: UnsafeRawBufferPointer? = nil) {
        writer.beginObject()
        // Members that sort before `msg`.
        switch self {
        case .apiLevel(let current, let withAvailable, let error):
            if withAvailable {
                writer.key("available")
                writer.beginArray()
                for level in APILevel.allCases { writer.int(level.rawValue) }
                writer.endArray()
            }
            writer.key("current")
            writer.int(current.rawValue)
            if let error { writer.member("error", error) }
        case .accessDenied(let text), .authRefused(let text), .badState(let text), .changePINRefused(let text),
            .internalError(let text), .invalid(let text), .readerRefused(let text), .unknownCommand(let text):
            writer.member("error", text)
        case .accessRights(let state, let error):
            state.writeBeforeError(to: &writer)
            if let error { writer.member("error", error) }
        case .certificate(let state):
            state.writeDescription(to: &writer)
        case .door(let message):
            message.writeBeforeMessage(to: &writer)
        case .activation(_, let error), .enter(_, let error, _, _), .insertCard(let error, _):
            if let error { writer.member("error", error) }
        case .activationAccepted:
            writer.key("accepted")
            writer.bool(true)
        case .showUI(let module):
            writer.member("module", module)
        case .userInterface(let active, let error):
            writer.key("active")
            writer.bool(active)
            if let error { writer.member("error", error) }
        case .health(let lines):
            writer.key("checks")
            writer.beginArray()
            for line in lines { line.write(to: &writer) }
            writer.endArray()
        case .info(let info):
            info.write(to: &writer)
        case .pause(let cause):
            writer.member("cause", cause)
        case .reader(let state):
            state.writeBeforeMessage(to: &writer, level: level)
        case .authStarted, .authEnded, .changePINStarted, .changePINEnded, .readerList, .status:
            break
        }
        writer.key("msg")
        writer.string(name.description)
        // Members that sort after it; `request` stands between `readers` and `state`.
        switch self {
        case .accessRights(let state, _):
            writer.request(request)
            if let info = state.transactionInfo { writer.member("transactionInfo", info) }
        case .activation(let url, _):
            writer.request(request)
            if let url { writer.member("url", url) }
        case .authEnded(let result):
            writer.request(request)
            result.write(to: &writer)
        case .certificate(let state):
            writer.request(request)
            state.writeValidity(to: &writer)
        case .changePINEnded(let success, let reason):
            if let reason { writer.member("reason", reason) }
            writer.request(request)
            writer.key("success")
            writer.bool(success)
        case .door(let message):
            message.writeBeforeRequest(to: &writer)
            writer.request(request)
            message.writeAfterRequest(to: &writer)
        case .enter(_, _, let question, let reader):
            writer.key("question")
            writer.int(question)
            writer.key("reader")
            reader.write(to: &writer, level: level)
            writer.request(request)
        case .insertCard(_, let reader):
            if let reader { writer.member("reader", reader) }
            writer.request(request)
        case .reader(let state):
            writer.member("name", state.name)
            writer.request(request)
        case .readerList(let readers):
            if level == .one { writer.key("reader") } else { writer.key("readers") }
            writer.beginArray()
            for reader in readers { reader.write(to: &writer, level: level) }
            writer.endArray()
            writer.request(request)
        case .status(let workflow, let progress, let state):
            writer.key("progress")
            if let progress { writer.int(progress) } else { writer.null() }
            writer.request(request)
            writer.key("state")
            if let state { writer.string(state.rawValue) } else { writer.null() }
            writer.key("workflow")
            if let workflow { writer.string(workflow.rawValue) } else { writer.null() }
        case .accessDenied, .activationAccepted, .apiLevel, .authStarted, .authRefused, .badState, .changePINStarted,
            .changePINRefused, .health, .info, .internalError, .invalid, .pause, .readerRefused, .showUI,
            .unknownCommand, .userInterface:
            writer.request(request)
        }
        writer.endObject()
    }
}

extension JSONWriter {
    mutating func member(_ name: StaticString, _ text: String) {
        key(name)
        string(text)
    }

    fileprivate mutating func request(_ text: UnsafeRawBufferPointer?) {
        guard let text else { return }
        key("request")
        raw(text)
    }
}

extension HealthLine {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        if let advice { writer.member("advice", advice) }
        if let errorAgo { writer.member("errorAgo", Int(errorAgo)) }
        writer.member("name", name)
        writer.key("ok")
        writer.bool(ok)
        writer.endObject()
    }
}

extension ServerInfo {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.member("AusweisApp", "UNKNOWN")
        writer.key("VersionInfo")
        writer.beginObject()
        for field in versionFields { writer.member(field.key, field.value) }
        writer.endObject()
        writer.key("badged")
        writer.beginObject()
        writer.key("drivers")
        writer.beginArray()
        for driver in drivers { writer.string(driver) }
        writer.endArray()
        writer.key("protocol")
        writer.int(Self.protocolVersion)
        writer.key("scanners")
        writer.beginArray()
        for scanner in scanners { writer.string(scanner) }
        writer.endArray()
        writer.endObject()
    }
}

extension ReaderState {
    /// The object without `msg`, as in lists and in the ENTER messages.
    fileprivate func write(to writer: inout JSONWriter, level: APILevel) {
        writer.beginObject()
        writeBeforeMessage(to: &writer, level: level)
        writer.member("name", name)
        writer.endObject()
    }

    /// The members that sort before `msg`.
    fileprivate func writeBeforeMessage(to writer: inout JSONWriter, level: APILevel) {
        writer.key("attached")
        writer.bool(attached != nil)
        guard let attached else { return }
        if attached.busy {
            writer.key("busy")
            writer.bool(true)
        }
        writer.key("card")
        switch attached.card {
        case .none:
            writer.null()
        case .unknown:
            if level < .three {
                writer.null()
            } else {
                writer.beginObject()
                writer.endObject()
            }
        case .eid(let retryCounter, let deactivated, let inoperative):
            writer.beginObject()
            writer.key("deactivated")
            writer.bool(deactivated)
            writer.key("inoperative")
            writer.bool(inoperative)
            writer.key("retryCounter")
            writer.int(retryCounter)
            writer.endObject()
        }
        writer.key("insertable")
        writer.bool(attached.insertable)
        writer.key("keypad")
        writer.bool(attached.keypad)
    }
}
