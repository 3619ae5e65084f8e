// SPDX-License-Identifier: Apache-2.0
public import Text
import Wire

/// The commands of docs/protocol.md, typed.
extension DaemonConnection {
    /// GET_INFO.
    public func info() async throws(ClientError) -> DaemonInfo {
        try await ask("GET_INFO") { if case .info(let info) = $0 { info } else { nil } }
    }

    /// GET_API_LEVEL.
    public func apiLevels() async throws(ClientError) -> APILevels {
        try await ask("GET_API_LEVEL") { if case .apiLevel(let levels, nil) = $0 { levels } else { nil } }
    }

    /// SET_API_LEVEL, for this connection only; a new connection has the highest.
    public func setAPILevel(_ level: Int) async throws(ClientError) {
        _ = try await ask("SET_API_LEVEL", [.init("level", .number(String(level)))]) {
            if case .apiLevel(let levels, nil) = $0 { levels } else { nil }
        }
    }

    /// GET_STATUS: this connection's workflow. API level 2.
    public func status() async throws(ClientError) -> WorkflowStatus {
        try await ask("GET_STATUS") { if case .status(let status) = $0 { status } else { nil } }
    }

    /// GET_READER. A reader that does not exist is an answer too: it is not attached.
    public func reader(named name: String) async throws(ClientError) -> Reader {
        try await ask("GET_READER", [.init("name", .string(name))]) {
            if case .reader(let reader) = $0 { reader } else { nil }
        }
    }

    /// GET_READER_LIST, sorted by name.
    public func readers() async throws(ClientError) -> [Reader] {
        try await ask("GET_READER_LIST") { if case .readerList(let readers) = $0 { readers } else { nil } }
    }

    /// GET_READER_LIST, for who follows the readers: the answer is the event `readerList`, at its place among the changes.
    @discardableResult
    public func askForReaders() async throws(ClientError) -> RequestID { try await send("GET_READER_LIST") }

    /// GET_HEALTH: what badged needs to do its work, and what to do where it is missing.
    public func health() async throws(ClientError) -> [HealthCheck] {
        try await ask("GET_HEALTH") { if case .health(let checks) = $0 { checks } else { nil } }
    }

    /// RUN_CHANGE_PIN: starts the workflow; what it wants comes as events, its end as `changePINEnded`.
    ///
    /// - Parameters:
    ///   - reader: name of the reader to use; nil: the first with an eID card.
    ///   - status: whether STATUS comes by itself; nil: as before on this connection, at first true.
    /// - Returns: the mark that a refusal carries.
    /// - Throws: when the command cannot be sent.
    @discardableResult
    public func startChangePIN(
        reader: String? = nil,
        status: Bool? = nil
    ) async throws(ClientError) -> RequestID {
        var members: [JSON.Member] = []
        if let reader { members.append(.init("reader", .string(reader))) }
        if let status { members.append(.init("status", .bool(status))) }
        return try await send("RUN_CHANGE_PIN", members)
    }

    /// SET_CARD: puts a card into a virtual reader while the workflow waits for one. API level 2.
    ///
    /// - Parameters:
    ///   - reader: name of a reader that is insertable.
    ///   - simulator: files and keys of the card, docs/protocol.md, Virtual reader; nil: the card on the shelf.
    ///   - card: PIN, counters and faults of the card, ibidem.
    /// - Returns: the mark that a refusal, INSERT_CARD with `error`, carries.
    /// - Throws: when the command cannot be sent.
    @discardableResult
    public func setCard(
        in reader: String,
        simulator: JSON? = nil,
        card: JSON? = nil
    ) async throws(ClientError) -> RequestID {
        var members = [JSON.Member("name", .string(reader))]
        if let simulator { members.append(.init("simulator", simulator)) }
        if let card { members.append(.init("card", card)) }
        return try await send("SET_CARD", members)
    }

    /// CANCEL: the running workflow ends with its final message.
    @discardableResult
    public func cancel() async throws(ClientError) -> RequestID { try await send("CANCEL") }

    /// CONTINUE: after PAUSE, when the card lies well.
    @discardableResult
    public func continueWorkflow() async throws(ClientError) -> RequestID { try await send("CONTINUE") }

    /// Asks and takes the answer that `read` understands; anything else is an error.
    func ask<Answer>(
        _ command: String,
        _ members: [JSON.Member] = [],
        _ read: (ServerMessage) -> Answer?
    ) async throws(ClientError) -> Answer {
        let event = try await request(command, members)
        if let answer = read(event.message) { return answer }
        throw ClientError(event.message) ?? .unexpectedAnswer(event.name)
    }
}

extension ClientError {
    /// The refusal that a message is; nil when it is none.
    public init?(_ message: ServerMessage) {
        switch message {
        case .accessDenied(let command): self = .accessDenied(command: command)
        case .badState(let command): self = .badState(command: command)
        case .unknownCommand(let command): self = .unknownCommand(command)
        case .invalid(let error), .internalError(let error), .readerRefused(let error), .changePINRefused(let error),
            .authRefused(let error), .doorReaderRefused(let error), .accessRights(_, .some(let error)),
            .apiLevel(_, .some(let error)),
            .insertCard(.some(let error), _), .userInterface(_, .some(let error)):
            self = .refused(error)
        case .enter(let question):
            guard let error = question.error else { return nil }
            self = .refused(error)
        case .scan(let status):
            guard status.isRefusal, let error = status.error else { return nil }
            self = .refused(error)
        case .doorReader, .advertisement, .doorReaderLost, .doorReaderList, .closestDoorReader: return nil
        case .info, .apiLevel, .status, .reader, .readerList, .health, .insertCard, .pause, .accessRights,
            .certificate, .authStarted, .authEnded, .changePINStarted, .changePINEnded, .userInterface,
            .showUI, .unknown, .unreadable:
            return nil
        }
    }
}
