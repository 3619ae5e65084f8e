// SPDX-License-Identifier: Apache-2.0
public import Text

/// The commands that every feature uses. docs/protocol.md, Commands.
extension DaemonConnection {
    /// GET_INFO.
    public func info() async throws(ClientError) -> DaemonInfo { try await ask("GET_INFO") }

    /// GET_API_LEVEL.
    public func apiLevels() async throws(ClientError) -> APILevels { try await ask("GET_API_LEVEL") }

    /// SET_API_LEVEL: sets the level of this connection. A new connection has the highest.
    public func setAPILevel(_ level: Int) async throws(ClientError) {
        let _: APILevels = try await ask("SET_API_LEVEL", [.init("level", .number(String(level)))])
    }

    /// GET_STATUS: what the workflow of this connection does. Needs API level 2.
    public func status() async throws(ClientError) -> WorkflowStatus { try await ask("GET_STATUS") }

    /// GET_READER. For a name that no reader has the answer is a reader that is not attached.
    public func reader(named name: String) async throws(ClientError) -> Reader {
        try await ask("GET_READER", [.init("name", .string(name))])
    }

    /// GET_READER_LIST: all readers, sorted by name.
    public func readers() async throws(ClientError) -> [Reader] {
        let list: ReaderList = try await ask("GET_READER_LIST")
        return list.readers
    }

    /// GET_READER_LIST with the answer as an event, in its place among the changes of the readers.
    @discardableResult
    public func askForReaders() async throws(ClientError) -> RequestID { try await send("GET_READER_LIST") }

    /// GET_HEALTH: what badged needs to do its work, and what to do where something is missing.
    public func health() async throws(ClientError) -> [HealthCheck] {
        let report: HealthReport = try await ask("GET_HEALTH")
        return report.checks
    }

    /// SET_CARD: puts a card into a virtual reader while the workflow waits for one. Needs API level 2.
    ///
    /// - Parameters:
    ///   - reader: name of a virtual reader.
    ///   - simulator: files and keys of the card, docs/protocol/readers.md, Virtual reader; nil: the reader's own card.
    ///   - card: PIN, counters and faults of the card, described there, too.
    /// - Returns: identifies a refusal, which is INSERT_CARD with `error`.
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

    /// CANCEL: ends the running workflow with its final message.
    @discardableResult
    public func cancel() async throws(ClientError) -> RequestID { try await send("CANCEL") }

    /// CONTINUE: resumes the workflow after PAUSE.
    @discardableResult
    public func continueWorkflow() async throws(ClientError) -> RequestID { try await send("CONTINUE") }

    /// Sends a command and reads its answer. Throws the refusal, or `unexpectedAnswer` for a message of another type.
    func ask<Answer: ServerMessage>(
        _ command: String,
        _ members: [JSON.Member] = []
    ) async throws(ClientError) -> Answer {
        let event = try await request(command, members)
        if let refusal = event.message.refusal { throw refusal }
        guard let answer = event.message as? Answer else { throw .unexpectedAnswer(event.name) }
        return answer
    }
}
