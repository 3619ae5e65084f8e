// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import MPin
import Server
import Store
import Text

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
        client.headers = try Self.adding(try call.arguments.headers("headers"), to: [])
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
        client.headers = try Self.adding(added, to: clears ? [] : client.headers)
        return done(call)
    }

    private func setTrustedDomains(_ call: Call) throws(Failure) -> Reply {
        let client = try client(of: call.session)
        var domains = try call.arguments.isSet("clear") ? TrustedDomains() : client.domains
        let added = try call.arguments.list("add", 0...TrustedDomains.maximumNumber, of: "a host name", \.string)
        for domain in added ?? [] {
            guard domains.names.count < TrustedDomains.maximumNumber || domains.names.contains(domain.lowercased())
            else {
                throw Failure(.flowError, "there can be \(TrustedDomains.maximumNumber) trusted domains at most")
            }
            guard domains.add(domain) else { throw call.arguments.wrong("add", "a list of host names") }
        }
        client.domains = domains
        return done(call)
    }

    private func setClientID(_ call: Call) throws(Failure) -> Reply {
        let client = try client(of: call.session)
        guard client.flavour == .mfa else { throw Self.needsMFA }
        let text = try call.arguments.text("clientId", 0...StoredUser.maximumCustomer)
        guard CustomHeader("X-MIRACL-CID", text) != nil else {
            throw Failure(.flowError, "clientId must be printable ASCII")
        }
        client.clientID = text
        client.permits = [:]
        return done(call)
    }

    private func verifyDocument(_ call: Call) throws(Failure) -> Reply {
        _ = try client(of: call.session)
        let document = try call.arguments.text("document", 0...LineBuffer.maximumLine)
        let hash = try call.arguments.hash("hash")
        let own = try cryptography(DigestAlgorithm.sha256.hash(Array(document.utf8)))
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

    /// Adds headers, each in place of one with the same name.
    private static func adding(
        _ headers: [CustomHeader]?,
        to present: [CustomHeader]
    ) throws(Failure) -> [CustomHeader] {
        var all = present
        for header in headers ?? [] {
            all.removeAll { $0.name.lowercased() == header.name.lowercased() }
            all.append(header)
        }
        guard all.count <= CustomHeader.maximumNumber else {
            throw Failure(.flowError, "there can be \(CustomHeader.maximumNumber) headers at most")
        }
        return all
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
        try await users.add(user, try name(uid, user.identity, backend, customer: client.customer), uid: uid)
        return done(call, .user(user))
    }

    private func listUsers(_ call: Call) async throws(Failure) -> Reply {
        let client = try client(of: call.session)
        let identity = try call.arguments.text("userId", orEmptyTo: StoredUser.maximumIdentity)
        let backend = try call.arguments.optionalBackend(client.flavour) ?? client.settings?.backend
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
        let named = try call.arguments.optionalBackend(client.flavour)
        let backend = if let named { named } else { try settings(of: client).backend }
        var customer = client.customer
        if customer != nil, call.arguments.has("customerId") {
            customer = try call.arguments.text("customerId", orEmptyTo: StoredUser.maximumCustomer)
        }
        try await delete(try name(try call.uid, try call.arguments.identity(), backend, customer: customer))
        return done(call)
    }
}
