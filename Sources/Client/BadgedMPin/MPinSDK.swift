// SPDX-License-Identifier: Apache-2.0
public import BadgedClient

/// The calls that `MPin` and `MPinMFA` have in common.
///
/// Each call exists twice, with the same name. One is an `async` method. The other one blocks the calling thread until
/// badged has answered, as in the original SDK. It cannot be called from an `async` function, because it would block a
/// thread of the cooperative pool there.
///
/// A call ends with a status; it throws only if badged cannot be asked. A connection runs one call at a time: during a
/// call that asks a server or the user, another one throws `workflowRunning`. Cancelling the task of an `async` call
/// cancels the call.
public protocol MPinSDK: Sendable {
    var session: MPinSession { get }
    /// `flavour` of MPIN_INIT.
    static var flavour: String { get }
    /// `rps`, or `rps/v2`.
    static var usualPrefix: String { get }

    /// Uses a connection, which must run no other workflow meanwhile.
    ///
    /// - Parameters:
    ///   - connection: to badged.
    ///   - cardUser: answers questions about the card under which a token is kept. Without one, calls for such a token end
    ///     with `pinInputCanceled`.
    init(_ connection: DaemonConnection, cardUser: (any CardUser)?)
}

extension MPinSDK {
    /// Connects to badged.
    ///
    /// - Parameters:
    ///   - socketPath: a Unix socket; the default is where badged listens on this system.
    ///   - cardUser: answers questions about the card under which a token is kept.
    /// - Throws: why badged cannot be reached.
    public init(
        socketPath: String = SocketPath.standard,
        cardUser: (any CardUser)? = nil
    ) async throws(ClientError) {
        self.init(try await MPinSession.connection(socketPath), cardUser: cardUser)
    }

    // MARK: The SDK

    /// Begins to use M-Pin. The headers are sent with every request to a server.
    public func initSDK(headers: [String: String] = [:]) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.initSDK(Self.flavour, headers))
    }

    /// Forgets backend, headers and trusted domains. The users stay.
    public func destroy() async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.destroy(session.logouts))
    }

    public func addCustomHeaders(_ headers: [String: String]) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.addCustomHeaders(headers))
    }

    public func clearCustomHeaders() async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.clearCustomHeaders)
    }

    /// Trusts a domain and all names below it. All other hosts are then refused.
    public func addTrustedDomain(_ domain: String) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.addTrustedDomain(domain))
    }

    public func clearTrustedDomains() async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.clearTrustedDomains)
    }

    // MARK: Backends

    public func testBackend(
        _ url: String,
        rpsPrefix: String = Self.usualPrefix
    ) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.testBackend(Backend(url: url, rpsPrefix: rpsPrefix)))
    }

    public func setBackend(
        _ url: String,
        rpsPrefix: String = Self.usualPrefix
    ) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.setBackend(Backend(url: url, rpsPrefix: rpsPrefix)))
    }

    // MARK: Users

    /// Makes a user of the present backend, with `MPinMFA` of the present customer; nil unless the status is OK.
    public func makeNewUser(
        _ identity: String,
        deviceName: String = ""
    ) async throws(ClientError) -> (status: MpinStatus, user: IUser?) {
        try await session.run(Calls.makeNewUser(identity, deviceName))
    }

    public func deleteUser(_ user: IUser) async throws(ClientError) -> MpinStatus {
        try await session.run(Calls.deleteUser(user, session.logouts))
    }

    /// The users of the present backend that the own user of the system has made with this class, of all customers.
    /// Without a backend the users of all backends.
    public func listUsers() async throws(ClientError) -> [IUser] { try await session.run(Calls.listUsers) }
}

/// Each of these blocks the calling thread until badged has answered.
extension MPinSDK {
    /// Connects to badged.
    @available(*, noasync)
    public init(
        socketPath: String = SocketPath.standard,
        cardUser: (any CardUser)? = nil
    ) throws(ClientError) {
        self.init(try MPinSession.connection(socketPath), cardUser: cardUser)
    }

    // MARK: The SDK

    @available(*, noasync)
    public func initSDK(headers: [String: String] = [:]) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.initSDK(Self.flavour, headers))
    }

    @available(*, noasync)
    public func destroy() throws(ClientError) -> MpinStatus {
        try session.wait(Calls.destroy(session.logouts))
    }

    @available(*, noasync)
    public func addCustomHeaders(_ headers: [String: String]) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.addCustomHeaders(headers))
    }

    @available(*, noasync)
    public func clearCustomHeaders() throws(ClientError) -> MpinStatus { try session.wait(Calls.clearCustomHeaders) }

    @available(*, noasync)
    public func addTrustedDomain(_ domain: String) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.addTrustedDomain(domain))
    }

    @available(*, noasync)
    public func clearTrustedDomains() throws(ClientError) -> MpinStatus { try session.wait(Calls.clearTrustedDomains) }

    // MARK: Backends

    @available(*, noasync)
    public func testBackend(_ url: String, rpsPrefix: String = Self.usualPrefix) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.testBackend(Backend(url: url, rpsPrefix: rpsPrefix)))
    }

    @available(*, noasync)
    public func setBackend(_ url: String, rpsPrefix: String = Self.usualPrefix) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.setBackend(Backend(url: url, rpsPrefix: rpsPrefix)))
    }

    // MARK: Users

    @available(*, noasync)
    public func makeNewUser(
        _ identity: String,
        deviceName: String = ""
    ) throws(ClientError) -> (status: MpinStatus, user: IUser?) {
        try session.wait(Calls.makeNewUser(identity, deviceName))
    }

    @available(*, noasync)
    public func deleteUser(_ user: IUser) throws(ClientError) -> MpinStatus {
        try session.wait(Calls.deleteUser(user, session.logouts))
    }

    @available(*, noasync)
    public func listUsers() throws(ClientError) -> [IUser] { try session.wait(Calls.listUsers) }
}
