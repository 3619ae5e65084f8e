// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import MPin
import Server
import Store
import Wire

/// The commands that need no server.
extension MPinFeature {
    var localCommands: [CommandSpec] { settingCommands + userCommands }

    private var settingCommands: [CommandSpec] {
        [
            local("MPIN_INIT") { feature, session, arguments throws(MPinFailure) in
                let client = MPinClient(try Self.flavour(arguments))
                try Self.add(try arguments.headers("headers") ?? [], to: client)
                feature.begin(client, of: session)
                return .none
            },
            local("MPIN_DESTROY") { feature, session, _ throws(MPinFailure) in
                _ = try feature.client(of: session)
                feature.end(session)
                return .none
            },
            local("MPIN_SET_HEADERS") { feature, session, arguments throws(MPinFailure) in
                let client = try feature.client(of: session)
                let (added, clears) = (try arguments.headers("add"), try arguments.flag("clear"))
                let before = client.headers
                if clears { client.headers = [] }
                do throws(MPinFailure) {
                    try Self.add(added ?? [], to: client)
                } catch {
                    client.headers = before
                    throw error
                }
                return .none
            },
            local("MPIN_TRUSTED_DOMAINS") { feature, session, arguments throws(MPinFailure) in
                let client = try feature.client(of: session)
                var domains = try arguments.flag("clear") ? TrustedDomains() : client.domains
                for domain in try arguments.texts("add") ?? [] {
                    guard domains.add(domain) else {
                        throw MPinFailure(.flowError, "a domain is not a host name, or there are too many domains")
                    }
                }
                client.domains = domains
                return .none
            },
            local("MPIN_SET_CLIENT_ID") { feature, session, arguments throws(MPinFailure) in
                let client = try feature.client(of: session)
                guard client.flavour == .mfa else { throw Self.needsMFA }
                let text = try arguments.text("clientId", orEmptyTo: MPinUser.maximumCustomer)
                guard CustomHeader("X-MIRACL-CID", text) != nil else {
                    throw MPinFailure(.flowError, "clientId must be printable ASCII")
                }
                (client.clientID, client.permits) = (text, [:])
                return .none
            },
            local("MPIN_VERIFY_DOCUMENT") { feature, session, arguments throws(MPinFailure) in
                _ = try feature.client(of: session)
                let document = try arguments.text("document", orEmptyTo: 1 << 16)
                let hash = try arguments.documentHash("hash")
                do throws(CryptoError) {
                    return .verified(try DigestAlgorithm.sha256.hash(Array(document.utf8)) == hash)
                } catch {
                    throw MPinFailure(error)
                }
            },
            local("MPIN_CLIENT_PARAM") { feature, session, arguments throws(MPinFailure) in
                let settings = try feature.settings(of: try feature.client(of: session))
                return .value(settings.parameter(try arguments.text("key", limit: 128)))
            },
            local("MPIN_CHECK_ACCESS_NUMBER") { feature, session, arguments throws(MPinFailure) in
                let settings = try feature.settings(of: try feature.client(of: session))
                guard settings.accepts(accessNumber: try arguments.text("accessNumber", orEmptyTo: 64)) else {
                    throw Self.wrongAccessNumber
                }
                return .none
            },
        ]
    }

    static let needsMFA = MPinFailure(.flowError, "this is a command of MPinMFA: send MPIN_INIT with flavour MFA first")

    private static func flavour(_ arguments: Arguments) throws(MPinFailure) -> Flavour {
        switch try arguments.text("flavour", orEmptyTo: 8) {
        case "", "MPIN": .mpin
        case "MFA": .mfa
        default: throw MPinFailure(.flowError, "flavour must be MPIN or MFA, or missing")
        }
    }

    static let wrongAccessNumber = MPinFailure(.incorrectAccessNumber, "the check digit of the access number is wrong")

    private static func add(_ headers: [CustomHeader], to client: MPinClient) throws(MPinFailure) {
        var all = client.headers
        for header in headers {
            all.removeAll { $0.name.lowercased() == header.name.lowercased() }
            all.append(header)
        }
        guard all.count <= CustomHeader.maximumNumber else {
            throw MPinFailure(.flowError, "there can be \(CustomHeader.maximumNumber) headers at most")
        }
        client.headers = all
    }

    private var userCommands: [CommandSpec] {
        [
            stored("MPIN_MAKE_USER") { feature, session, arguments throws(MPinFailure) in
                let client = try feature.client(of: session)
                let backend = try feature.settings(of: client).backend
                let user = MPinUser(
                    identity: try arguments.identity(),
                    deviceName: try arguments.text("deviceName", orEmptyTo: MPinUser.maximumDeviceName),
                    backend: backend,
                    customer: client.customer
                )
                let uid = try feature.uid(of: session)
                return (user, try feature.name(uid, user.identity, backend, customer: client.customer), uid)
            } _: { feature, prepared throws(MPinFailure) in
                let (user, name, uid) = prepared
                let existing = try await feature.stored { users throws(StoreError) in try await users.user(name) }
                guard existing == nil else {
                    throw MPinFailure(.flowError, "the user exists already at this backend")
                }
                let isAdded = try await feature.stored { users throws(StoreError) in
                    try await users.add(user, name, uid: uid)
                }
                guard isAdded else {
                    throw MPinFailure(
                        .storageError,
                        "there can be \(MPinUsers.maximumNumber) users at most: delete one"
                    )
                }
                return .user(user)
            },
            stored("MPIN_USERS") { feature, session, arguments throws(MPinFailure) in
                let flavour = try feature.client(of: session).flavour
                let identity = try arguments.text("userId", orEmptyTo: MPinUser.maximumIdentity)
                return (try feature.uid(of: session), flavour, identity, try Self.optionalBackend(arguments))
            } _: { feature, prepared throws(MPinFailure) in
                let (uid, flavour, identity, backend) = prepared
                let all = try await feature.stored { users throws(StoreError) in try await users.all(of: uid) }
                return .users(
                    all.filter { user in
                        user.flavour == flavour && (identity.isEmpty || user.identity == identity)
                            && (backend == nil || user.backend.key == backend?.key)
                    }
                )
            },
            stored("MPIN_BACKENDS") { feature, session, _ throws(MPinFailure) in
                (try feature.uid(of: session), try feature.client(of: session).flavour)
            } _: { feature, prepared throws(MPinFailure) in
                let (uid, flavour) = prepared
                let all = try await feature.stored { users throws(StoreError) in try await users.all(of: uid) }
                var backends: [Backend] = []
                for user in all
                where user.flavour == flavour && !backends.contains(where: { $0.key == user.backend.key }) {
                    backends.append(user.backend)
                }
                return .backends(backends)
            },
            stored("MPIN_DELETE_USER") { feature, session, arguments throws(MPinFailure) in
                let client = try feature.client(of: session)
                let backend: Backend
                if let named = try Self.optionalBackend(arguments) {
                    backend = named
                } else {
                    backend = try feature.settings(of: client).backend
                }
                var customer = client.customer
                if customer != nil, arguments.command.isPresent("customerId") {
                    customer = try arguments.text("customerId", orEmptyTo: MPinUser.maximumCustomer)
                }
                let uid = try feature.uid(of: session)
                let name = try feature.name(uid, try arguments.identity(), backend, customer: customer)
                return (client, name)
            } _: { feature, prepared throws(MPinFailure) in
                let (client, name) = prepared
                try await feature.delete(name)
                (client.permits[name], client.logouts[name]) = (nil, nil)
                return .none
            },
        ]
    }

    private static func optionalBackend(_ arguments: Arguments) throws(MPinFailure) -> Backend? {
        arguments.command.isPresent("url") ? try arguments.backend() : nil
    }
}
