// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import MPin
import Server
import Store
import Text
import Wire

/// The commands that need no server.
extension MPinFeature {
    var localCommands: [CommandSpec] {
        [
            command("MPIN_INIT", begin),
            command("MPIN_DESTROY", destroy),
            command("MPIN_SET_HEADERS", setHeaders),
            command("MPIN_TRUSTED_DOMAINS", setTrustedDomains),
            command("MPIN_SET_CLIENT_ID", setClientID),
            command("MPIN_VERIFY_DOCUMENT", verifyDocument),
            command("MPIN_CLIENT_PARAM", clientParameter),
            command("MPIN_CHECK_ACCESS_NUMBER", checkAccessNumber),
            command("MPIN_MAKE_USER", makeUser),
            command("MPIN_USERS", listUsers),
            command("MPIN_BACKENDS", listBackends),
            command("MPIN_DELETE_USER", deleteUser),
        ]
    }

    private func done(_ call: Call, _ content: Content = .none) -> Reply {
        Reply(MPinResultMessage(call.name, content))
    }

    // MARK: The client

    private func begin(_ call: Call) throws(Failure) -> Reply {
        let flavour = try call.arguments.optionalWord("flavour", [("MPIN", Flavour.mpin), ("MFA", .mfa)])
        let client = MPinClient(flavour ?? .mpin)
        try Self.add(try call.arguments.headers("headers") ?? [], to: client)
        clients[ObjectIdentifier(call.session)] = client
        return done(call)
    }

    private func destroy(_ call: Call) throws(Failure) -> Reply {
        _ = try client(of: call.session)
        clients[ObjectIdentifier(call.session)] = nil
        return done(call)
    }

    private func setHeaders(_ call: Call) throws(Failure) -> Reply {
        let client = try client(of: call.session)
        let (added, clears) = (try call.arguments.headers("add"), try call.arguments.isSet("clear"))
        let before = client.headers
        if clears { client.headers = [] }
        do throws(Failure) {
            try Self.add(added ?? [], to: client)
        } catch {
            client.headers = before
            throw error
        }
        return done(call)
    }

    private func setTrustedDomains(_ call: Call) throws(Failure) -> Reply {
        let client = try client(of: call.session)
        var domains = try call.arguments.isSet("clear") ? TrustedDomains() : client.domains
        let added = try call.arguments.list("add", 0...TrustedDomains.maximumNumber, of: "a host name", \.string)
        for domain in added ?? [] {
            guard domains.add(domain) else {
                throw Failure(.flowError, "a domain is not a host name, or there are too many domains")
            }
        }
        client.domains = domains
        return done(call)
    }

    private func setClientID(_ call: Call) throws(Failure) -> Reply {
        let client = try client(of: call.session)
        guard client.flavour == .mfa else { throw Self.needsMFA }
        let text = try call.arguments.text("clientId", orEmptyTo: StoredUser.maximumCustomer)
        guard CustomHeader("X-MIRACL-CID", text) != nil else {
            throw Failure(.flowError, "clientId must be printable ASCII")
        }
        (client.clientID, client.permits) = (text, [:])
        return done(call)
    }

    private func verifyDocument(_ call: Call) throws(Failure) -> Reply {
        _ = try client(of: call.session)
        let document = try call.arguments.text("document", orEmptyTo: LineBuffer.maximumLine)
        let hash = try call.arguments.documentHash("hash")
        let own = try cryptography { () throws(CryptoError) in
            try DigestAlgorithm.sha256.hash(Array(document.utf8))
        }
        return done(call, .verified(own == hash))
    }

    private func clientParameter(_ call: Call) throws(Failure) -> Reply {
        let settings = try settings(of: try client(of: call.session))
        return done(call, .value(settings.parameter(try call.arguments.text("key", 1...128))))
    }

    private func checkAccessNumber(_ call: Call) throws(Failure) -> Reply {
        let settings = try settings(of: try client(of: call.session))
        guard settings.accepts(accessNumber: try call.arguments.text("accessNumber", orEmptyTo: 64)) else {
            throw Self.wrongAccessNumber
        }
        return done(call)
    }

    static let needsMFA = Failure(.flowError, "this is a command of MPinMFA: send MPIN_INIT with flavour MFA first")

    static let wrongAccessNumber = Failure(.incorrectAccessNumber, "the check digit of the access number is wrong")

    private static func add(_ headers: [CustomHeader], to client: MPinClient) throws(Failure) {
        var all = client.headers
        for header in headers {
            all.removeAll { $0.name.lowercased() == header.name.lowercased() }
            all.append(header)
        }
        guard all.count <= CustomHeader.maximumNumber else {
            throw Failure(.flowError, "there can be \(CustomHeader.maximumNumber) headers at most")
        }
        client.headers = all
    }

    // MARK: Users

    private func makeUser(_ call: Call) async throws(Failure) -> Reply {
        let client = try client(of: call.session)
        let backend = try settings(of: client).backend
        let user = StoredUser(
            identity: try call.arguments.identity(),
            deviceName: try call.arguments.text("deviceName", orEmptyTo: StoredUser.maximumDeviceName),
            backend: backend,
            customer: client.customer
        )
        let uid = try call.uid
        let name = try name(uid, user.identity, backend, customer: client.customer)
        guard try await users.user(name) == nil else {
            throw Failure(.flowError, "the user exists already at this backend")
        }
        guard try await users.add(user, name, uid: uid) else {
            throw Failure(
                .storageError,
                "there can be \(StoredUsers.maximumNumber) users at most",
                advice: "delete one"
            )
        }
        return done(call, .user(user))
    }

    private func listUsers(_ call: Call) async throws(Failure) -> Reply {
        let client = try client(of: call.session)
        let identity = try call.arguments.text("userId", orEmptyTo: StoredUser.maximumIdentity)
        let backend = try Self.optionalBackend(call.arguments) ?? client.settings?.backend
        let all = try await users.all(of: try call.uid)
        let found = all.filter { user in
            user.flavour == client.flavour && (identity.isEmpty || user.identity == identity)
                && (backend == nil || user.backend.key == backend?.key)
        }
        return done(call, .users(found))
    }

    private func listBackends(_ call: Call) async throws(Failure) -> Reply {
        let client = try client(of: call.session)
        var backends: [Backend] = []
        for user in try await users.all(of: try call.uid)
        where user.flavour == client.flavour && !backends.contains(where: { $0.key == user.backend.key }) {
            backends.append(user.backend)
        }
        return done(call, .backends(backends))
    }

    private func deleteUser(_ call: Call) async throws(Failure) -> Reply {
        let client = try client(of: call.session)
        let backend: Backend
        if let named = try Self.optionalBackend(call.arguments) {
            backend = named
        } else {
            backend = try settings(of: client).backend
        }
        var customer = client.customer
        if customer != nil, call.arguments.has("customerId") {
            customer = try call.arguments.text("customerId", orEmptyTo: StoredUser.maximumCustomer)
        }
        try await delete(try name(try call.uid, try call.arguments.identity(), backend, customer: customer))
        return done(call)
    }

    private static func optionalBackend(_ arguments: Arguments) throws(Failure) -> Backend? {
        arguments.has("url") ? try arguments.backend() : nil
    }
}
