// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Host
import MPin
import Server
import Store
import Text

/// The options of a proof by a user of MPinMFA.
struct ProofOptions: Sendable {
    var scope = ProofScope.login
    var accessCode = ""
    /// For the header Authorization; may be empty.
    var authorization = ""
    /// Whether the client says that the user has a second factor; nil if it says nothing. It counts only for the token
    /// of an earlier badged.
    let hasSecond: Bool?

    /// Reads the members of MPIN_FINISH_AUTHENTICATION.
    init(_ arguments: Arguments) throws(Failure) {
        scope = try arguments.optionalWord("mode", [("OTP", .otp), ("REGCODE", .registrationCode)]) ?? .login
        accessCode = try arguments.accessCode()
        hasSecond = try arguments.flag("pin1")
    }

    /// Reads the members of MPIN_SIGN.
    init(signing arguments: Arguments) throws(Failure) {
        scope = .signing
        authorization = try arguments.text("authZToken", orEmptyTo: 2048)
        guard CustomHeader("Authorization", authorization) != nil else {
            throw Failure(.flowError, "authZToken must be printable ASCII")
        }
        hasSecond = try arguments.flag("pin1")
    }

    /// What is asked beside the PIN. The token decides: a factor too many or too few would make the right PIN wrong.
    func second(of user: StoredUser) -> SecondFactor {
        guard let hasSecond = user.account?[hasSecond: purpose] ?? hasSecond else { return .unknown }
        return hasSecond ? .set : .none
    }
}

/// The commands of MPinMFA that need no user.
extension MPinFeature {
    var sessionCommands: [CommandSpec] {
        [
            command("MPIN_SERVICE_DETAILS", serviceDetails),
            command("MPIN_SESSION_DETAILS", sessionDetails),
            command("MPIN_ABORT_SESSION", abortSession),
            command("MPIN_ACCESS_CODE", accessCode),
        ]
    }

    private func serviceDetails(_ call: Call) throws(Failure) -> Reply {
        let client = clients[ObjectIdentifier(call.session)] != nil ? try mfaClient(call) : MPinClient(.mfa)
        let connection = connection(for: client)
        let address = try MPinConnection.serviceAddress(of: try call.arguments.text("url", 1...1024))
        return workflow(call) { _ throws(Failure) in .service(try await connection.serviceDetails(at: address)) }
    }

    private func sessionDetails(_ call: Call) throws(Failure) -> Reply {
        let client = try mfaClient(call)
        let (settings, code) = (try settings(of: client), try call.arguments.sessionCode())
        let connection = connection(for: client)
        return workflow(call) { _ throws(Failure) in .session(try await connection.sessionDetails(code, settings)) }
    }

    private func abortSession(_ call: Call) throws(Failure) -> Reply {
        let client = try mfaClient(call)
        let (settings, code) = (try settings(of: client), try call.arguments.sessionCode())
        let connection = connection(for: client)
        return workflow(call) { _ throws(Failure) in
            try await connection.abortSession(code, settings)
            return .none
        }
    }

    private func accessCode(_ call: Call) throws(Failure) -> Reply {
        let connection = connection(for: try mfaClient(call))
        let address = try MPinConnection.address(try call.arguments.text("url", 1...4096))
        return workflow(call) { _ throws(Failure) in .accessCode(try await connection.accessCode(address)) }
    }

    private func mfaClient(_ call: Call) throws(Failure) -> MPinClient {
        let client = try client(of: call.session)
        guard client.flavour == .mfa else { throw Self.needsMFA }
        return client
    }
}

/// Logins of MPinMFA.
extension MPinFeature {
    /// Begins a login. The service of MIRACL uses no time permits.
    func announceLogin(_ run: UserRun, _ accessCode: String) async throws(Failure) -> Content {
        let (dialogue, user) = (run.dialogue, run.user)
        try Self.check(user, [.registered])
        if !accessCode.isEmpty {
            try await connection(for: dialogue.client).announce(user.identity, accessCode, dialogue.settings)
        }
        dialogue.client.permits[dialogue.name] = MPinClient.HeldPermit(permit: nil, begun: .now)
        return .user(user)
    }

    func finishLogin(_ run: UserRun, _ options: ProofOptions) async throws(Failure) -> Content {
        let dialogue = run.dialogue
        try Self.check(run.user, [.registered])
        guard dialogue.client.permits[dialogue.name] != nil else {
            throw Failure(.flowError, "send MPIN_START_AUTHENTICATION before each login")
        }
        let factors = try await proofFactors(run, options)
        dialogue.client.permits[dialogue.name] = nil
        return .login(try await prove(run, options, factors).result)
    }

    /// The factors that a user proves: the card that seals the tokens, if any, and the typed values.
    struct ProofFactors: Sendable {
        /// nil: no card seals the tokens.
        let seal: CardSeal?
        let typed: Factors
        let hasSecond: Bool
    }

    /// Borrows the card of a user who has one, and asks for the PIN and the second factor.
    func proofFactors(_ run: UserRun, _ options: ProofOptions) async throws(Failure) -> ProofFactors {
        try await requireToken(run.dialogue, for: options.purpose)
        let seal = try await seal(run)
        let (typed, hasSecond) = try await ask(run, isNew: false, options.second(of: run.user))
        return ProofFactors(seal: seal, typed: typed, hasSecond: hasSecond)
    }

    /// Proves the token and the factors. If the service requires a new identity, makes one with the same factors and
    /// proves it.
    /// - Returns: the result of the service, and the user with the current identity.
    func prove(
        _ run: UserRun,
        _ options: ProofOptions,
        _ factors: ProofFactors
    ) async throws(Failure) -> (result: LoginResult, user: StoredUser) {
        let (dialogue, session) = (run.dialogue, run.workflow.session)
        var user = run.user
        do throws(Failure) {
            var answer = try await proveOnce(dialogue, user, options, factors)
            if case .mustRegister(let token) = answer {
                user = try await renew(dialogue, user, options.purpose, token, factors)
                answer = try await proveOnce(dialogue, user, options, factors)
            }
            guard case .accepted(let result) = answer else {
                throw Failure(.responseParseError, "the service has asked for a new identity twice")
            }
            await note(factors.hasSecond, &user, options.purpose, dialogue, session)
            return (result, user)
        } catch {
            if error.status == .incorrectPIN { await noteWrongPIN(error, user, dialogue, session) }
            throw error
        }
    }

    /// Notes whether the token of an earlier badged has a second factor, which the service has accepted just now.
    private func note(
        _ hasSecond: Bool,
        _ user: inout StoredUser,
        _ purpose: TokenPurpose,
        _ dialogue: Dialogue,
        _ session: Session
    ) async {
        guard user.account?[hasSecond: purpose] == nil else { return }
        user.account?[hasSecond: purpose] = hasSecond
        let changed = user
        do throws(Failure) {
            try await users.change(changed, dialogue.name)
        } catch {
            session.log(.warning, "the second factor of a user of M-Pin cannot be noted: \(error.logText)")
        }
    }

    private func proveOnce(
        _ dialogue: Dialogue,
        _ user: StoredUser,
        _ options: ProofOptions,
        _ factors: ProofFactors
    ) async throws(Failure) -> ProofResult {
        let purpose = options.purpose
        guard let identity = user.account?[purpose] else {
            throw Failure(.storageError, "the identity of the user is lost: delete the user and register again")
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
        _ user: StoredUser,
        _ purpose: TokenPurpose,
        _ permission: String,
        _ factors: ProofFactors
    ) async throws(Failure) -> StoredUser {
        let secret = try await keyedSecret(dialogue, user, permission)
        guard let identity = secret.identity, let clientSecret = secret.copy else {
            throw Failure.ofServer(.invalidKey)
        }
        let token = try await ClientKeys.token(from: clientSecret, factors.typed, identity.signingID)
        var user = user
        user.account?[purpose] = identity
        user.account?[hasSecond: purpose] = factors.hasSecond
        if purpose == .login { user.id = identity.id }
        try await keep(user, dialogue, token: token, for: purpose, factors.seal)
        return user
    }

    /// Fetches a client secret for a new key pair.
    func keyedSecret(
        _ dialogue: Dialogue,
        _ user: StoredUser,
        _ permission: String
    ) async throws(Failure) -> PendingSecret {
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

extension StoredUser.Account {
    subscript(purpose: TokenPurpose) -> KeyedIdentity? {
        get { purpose == .login ? login : signer }
        set { if purpose == .login { login = newValue } else { signer = newValue } }
    }

    /// Whether the token has a second factor; nil for the token of an earlier badged.
    subscript(hasSecond purpose: TokenPurpose) -> Bool? {
        get { purpose == .login ? loginHasSecond : signerHasSecond }
        set { if purpose == .login { loginHasSecond = newValue } else { signerHasSecond = newValue } }
    }
}
