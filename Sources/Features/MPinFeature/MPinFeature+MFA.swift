// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import MPin
import Server
import Store
import Wire

/// The options of a proof by a user of MPinMFA.
struct ProofOptions: Sendable {
    var scope = ProofScope.login
    var accessCode = ""
    /// For the header Authorization; may be empty.
    var authorization = ""
    /// Whether the user has a second factor.
    let hasSecond: Bool

    /// Reads the members of MPIN_FINISH_AUTHENTICATION.
    init(_ arguments: Arguments) throws(MPinFailure) {
        scope =
            switch try arguments.text("mode", orEmptyTo: 16) {
            case "": .login
            case "OTP": .otp
            case "REGCODE": .registrationCode
            default: throw MPinFailure(.flowError, "mode must be OTP or REGCODE, or missing")
            }
        accessCode = try arguments.accessCode()
        hasSecond = try arguments.flag("pin1")
    }

    /// Reads the members of MPIN_SIGN.
    init(signing arguments: Arguments) throws(MPinFailure) {
        scope = .signing
        authorization = try arguments.text("authZToken", orEmptyTo: 2048)
        guard CustomHeader("Authorization", authorization) != nil else {
            throw MPinFailure(.flowError, "authZToken must be printable ASCII")
        }
        hasSecond = try arguments.flag("pin1")
    }
}

/// The commands of MPinMFA that need no user.
extension MPinFeature {
    var sessionCommands: [CommandSpec] {
        [
            sessionCommand("MPIN_SERVICE_DETAILS") { feature, client, arguments throws(MPinFailure) in
                let (connection, url) = (feature.connection(for: client), try arguments.text("url", limit: 1024))
                return { () throws(MPinFailure) in .service(try await connection.serviceDetails(of: url)) }
            },
            sessionCommand("MPIN_SESSION_DETAILS") { feature, client, arguments throws(MPinFailure) in
                let (settings, code) = (try feature.settings(of: client), try arguments.accessCode())
                let connection = feature.connection(for: client)
                return { () throws(MPinFailure) in .session(try await connection.sessionDetails(code, settings)) }
            },
            sessionCommand("MPIN_ABORT_SESSION") { feature, client, arguments throws(MPinFailure) in
                let (settings, code) = (try feature.settings(of: client), try arguments.accessCode())
                let connection = feature.connection(for: client)
                return { () throws(MPinFailure) in
                    try await connection.abortSession(code, settings)
                    return .none
                }
            },
            sessionCommand("MPIN_ACCESS_CODE") { feature, client, arguments throws(MPinFailure) in
                let (connection, url) = (feature.connection(for: client), try arguments.text("url", limit: 4096))
                return { () throws(MPinFailure) in .accessCode(try await connection.accessCode(url)) }
            },
        ]
    }

    private typealias Request = @Sendable () async throws(MPinFailure) -> Content

    private func sessionCommand(
        _ name: String,
        _ prepare: @escaping @Loop (MPinFeature, MPinClient, Arguments) throws(MPinFailure) -> Request
    ) -> CommandSpec {
        workflow(name) { feature, session, arguments throws(MPinFailure) in
            let client = try feature.client(of: session)
            guard client.flavour == .mfa else { throw Self.needsMFA }
            return try prepare(feature, client, arguments)
        } _: { feature, workflow, request in
            do throws(MPinFailure) {
                return MPinResultMessage(name, try await request())
            } catch {
                feature.log(workflow.session, name, error)
                return MPinResultMessage(name, error)
            }
        }
    }
}

/// Logins of MPinMFA.
extension MPinFeature {
    /// Begins a login. The service of MIRACL uses no time permits.
    func announceLogin(
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ accessCode: String
    ) async throws(MPinFailure) -> Content {
        try Self.check(user, [.registered])
        if !accessCode.isEmpty {
            try await connection(for: dialogue.client).announce(user.identity, accessCode, dialogue.settings)
        }
        dialogue.client.permits[dialogue.name] = MPinClient.HeldPermit(permit: nil, begun: .now)
        return .user(user)
    }

    func finishLogin(
        _ workflow: Workflow,
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ options: ProofOptions
    ) async throws(MPinFailure) -> Content {
        try Self.check(user, [.registered])
        guard dialogue.client.permits[dialogue.name] != nil else {
            throw MPinFailure(.flowError, "send MPIN_START_AUTHENTICATION before each login")
        }
        let factors = try await proofFactors(workflow, user, options)
        dialogue.client.permits[dialogue.name] = nil
        return .login(try await prove(workflow, dialogue, user, options, factors).result)
    }

    /// The factors that a user proves: the card that seals the tokens, if any, and the typed values.
    struct ProofFactors: Sendable {
        /// nil: no card seals the tokens.
        let seal: CardSeal?
        let typed: Factors
    }

    /// Borrows the card of a user who has one, and asks for the PIN and the second factor.
    func proofFactors(
        _ workflow: Workflow,
        _ user: MPinUser,
        _ options: ProofOptions
    ) async throws(MPinFailure) -> ProofFactors {
        let seal = try await seal(workflow, of: user)
        return ProofFactors(
            seal: seal,
            typed: try await ask(workflow, user, isNew: false, hasSecond: options.hasSecond)
        )
    }

    /// Proves the token and the factors. If the service requires a new identity, makes one with the same factors and
    /// proves it.
    /// - Returns: the result of the service, and the user with the current identity.
    func prove(
        _ workflow: Workflow,
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ options: ProofOptions,
        _ factors: ProofFactors
    ) async throws(MPinFailure) -> (result: LoginResult, user: MPinUser) {
        var user = user
        do throws(MPinFailure) {
            var answer = try await proveOnce(dialogue, user, options, factors)
            if case .mustRegister(let token) = answer {
                user = try await renew(dialogue, user, options.purpose, token, factors)
                answer = try await proveOnce(dialogue, user, options, factors)
            }
            guard case .accepted(let result) = answer else {
                throw MPinFailure(.responseParseError, "the service has asked for a new identity twice")
            }
            return (result, user)
        } catch {
            if error.status == .incorrectPIN, error.http == 410 { await block(user, dialogue, workflow.session) }
            throw error
        }
    }

    private func proveOnce(
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ options: ProofOptions,
        _ factors: ProofFactors
    ) async throws(MPinFailure) -> ProofResult {
        let purpose = options.purpose
        guard let identity = user.account?[purpose] else {
            throw MPinFailure(.storageError, "the identity of the user is lost: delete the user and register again")
        }
        let token = try await token(dialogue, for: purpose, factors.seal)
        return try await connection(for: dialogue.client).prove(
            identity,
            options.scope,
            token: token,
            factors.typed,
            accessCode: options.accessCode,
            authorization: options.authorization,
            dialogue.settings
        )
    }

    private func renew(
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ purpose: TokenPurpose,
        _ permission: String,
        _ factors: ProofFactors
    ) async throws(MPinFailure) -> MPinUser {
        let secret = try await keyedSecret(dialogue, user, permission)
        guard let identity = secret.identity, let clientSecret = secret.copy else { throw MPinFailure(.invalidKey) }
        let token = try await ClientKeys.token(from: clientSecret, factors.typed, identity.signingID)
        var user = user
        user.account?[purpose] = identity
        if purpose == .login { user.id = identity.id }
        try await keep(user, dialogue, token: token, for: purpose, factors.seal)
        return user
    }

    /// Fetches a client secret for a new key pair.
    func keyedSecret(
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ permission: String
    ) async throws(MPinFailure) -> PendingSecret {
        let secret = PendingSecret(regOTT: "")
        secret.keyedShare = try await connection(for: dialogue.client).firstShare(
            permission,
            deviceName: user.deviceName,
            try await IdentityKeys.make(),
            dialogue.settings
        )
        try await completeKeyed(secret, dialogue)
        return secret
    }
}

extension ProofOptions {
    var purpose: TokenPurpose { scope == .signing ? .signing : .login }
}

extension MPinUser.Account {
    subscript(purpose: TokenPurpose) -> KeyedIdentity? {
        get { purpose == .login ? login : signer }
        set { if purpose == .login { login = newValue } else { signer = newValue } }
    }
}
