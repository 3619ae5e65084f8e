// SPDX-License-Identifier: Apache-2.0
import Wire

/// The commands of an online authentication. docs/protocol.md, RUN_AUTH.
extension DaemonConnection {
    /// RUN_AUTH: starts the workflow; what it wants comes as events, its end as `authEnded`.
    ///
    /// - Parameters:
    ///   - tcTokenURL: the address at which the service offers its TcToken.
    ///   - reader: name of the reader to use; nil: the first with an eID card.
    ///   - developerMode: goes by the rules of test services, and takes no other.
    ///   - status: whether STATUS comes by itself; nil: as before on this connection, at first true.
    /// - Returns: the mark that a refusal carries.
    /// - Throws: when the command cannot be sent.
    @discardableResult
    public func startAuthentication(
        tcTokenURL: String,
        reader: String? = nil,
        developerMode: Bool = false,
        status: Bool? = nil
    ) async throws(ClientError) -> RequestID {
        var members: [JSON.Member] = []
        if developerMode { members.append(.init("developerMode", .bool(true))) }
        if let reader { members.append(.init("reader", .string(reader))) }
        if let status { members.append(.init("status", .bool(status))) }
        members.append(.init("tcTokenURL", .string(tcTokenURL)))
        return try await send("RUN_AUTH", members)
    }

    /// SET_USER_INTERFACE: this connection speaks with the user for browsers, until another says the same. Then AUTH comes
    /// without RUN_AUTH. The answer is the event `userInterface`.
    @discardableResult
    public func setUserInterface(_ isActive: Bool) async throws(ClientError) -> RequestID {
        try await send("SET_USER_INTERFACE", [.init("active", .bool(isActive))])
    }

    /// GET_CERTIFICATE, while the workflow waits for consent; the answer is the event `certificate`.
    @discardableResult
    public func askForCertificate() async throws(ClientError) -> RequestID { try await send("GET_CERTIFICATE") }

    /// SET_ACCESS_RIGHTS: leaves these of the optional rights; the answer is the event `accessRights`.
    @discardableResult
    public func setAccessRights(_ optional: [String]) async throws(ClientError) -> RequestID {
        try await send("SET_ACCESS_RIGHTS", Self.chat(optional))
    }

    static func chat(_ rights: [String]) -> [JSON.Member] { [.init("chat", .array(rights.map(JSON.string)))] }

    /// ACCEPT: the service gets the effective rights.
    @discardableResult
    public func accept() async throws(ClientError) -> RequestID { try await send("ACCEPT") }
}
