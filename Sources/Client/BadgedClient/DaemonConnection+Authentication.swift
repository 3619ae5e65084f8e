// SPDX-License-Identifier: Apache-2.0
import Text
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
    /// without RUN_AUTH: `authenticateForBrowser` takes it from there.
    public func setUserInterface(_ isActive: Bool) async throws(ClientError) {
        _ = try await ask("SET_USER_INTERFACE", [.init("active", .bool(isActive))]) {
            if case .userInterface(let active, nil) = $0 { active } else { nil }
        }
    }

    /// GET_CERTIFICATE, while the workflow waits for consent.
    public func certificate() async throws(ClientError) -> ServiceCertificate {
        try await ask("GET_CERTIFICATE") { if case .certificate(let certificate) = $0 { certificate } else { nil } }
    }

    /// GET_ACCESS_RIGHTS, while the workflow waits for consent.
    public func accessRights() async throws(ClientError) -> AccessRights {
        try await ask("GET_ACCESS_RIGHTS") { if case .accessRights(let rights, nil) = $0 { rights } else { nil } }
    }

    /// SET_ACCESS_RIGHTS: leaves these of the optional rights; the answer is what the service gets now.
    @discardableResult
    public func setAccessRights(_ optional: [String]) async throws(ClientError) -> AccessRights {
        try await ask("SET_ACCESS_RIGHTS", [.init("chat", .array(optional.map(JSON.string)))]) {
            if case .accessRights(let rights, nil) = $0 { rights } else { nil }
        }
    }

    /// ACCEPT: the service gets the effective rights.
    @discardableResult
    public func accept() async throws(ClientError) -> RequestID { try await send("ACCEPT") }
}
