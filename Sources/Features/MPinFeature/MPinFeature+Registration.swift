// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import MPin
import Server
import Store
import Text

/// The commands that choose a backend and register users.
extension MPinFeature {
    var backendCommands: [CommandSpec] {
        [
            command("MPIN_TEST_BACKEND") { [self] call throws(Failure) in try askBackend(call, keeps: false) },
            command("MPIN_SET_BACKEND") { [self] call throws(Failure) in try askBackend(call, keeps: true) },
        ]
    }

    private func askBackend(_ call: Call, keeps: Bool) throws(Failure) -> Reply {
        let client = try client(of: call.session)
        let backend = try call.arguments.backend(client.flavour)
        return workflow(call) { [self] _ throws(Failure) in
            let settings = try await connection(for: client).settings(of: backend, client.flavour)
            if keeps {
                if client.settings?.backend.key != backend.key { client.permits = [:] }
                client.settings = settings
            }
            return .none
        }
    }

    /// The members of a registration that are passed on.
    private struct RegistrationOptions: Sendable {
        let userData: String
        let activateCode: String
        let accessCode: String
        let push: String

        init(_ arguments: Arguments, _ flavour: Flavour) throws(Failure) {
            userData = try arguments.text("userData", orEmptyTo: 4096)
            activateCode = try arguments.text("activateCode", orEmptyTo: 128)
            accessCode = flavour == .mfa ? try arguments.accessCode() : ""
            push = flavour == .mfa ? try arguments.text("pushNotificationIdentifier", orEmptyTo: 512) : ""
        }

        func request(_ user: StoredUser) -> RegistrationRequest {
            var request = RegistrationRequest(userID: user.identity)
            request.deviceName = user.deviceName
            request.userData = userData
            request.activateCode = activateCode
            request.accessCode = accessCode
            request.push = push
            return request
        }
    }

    /// What is needed to use a token.
    private struct TokenOptions: Sendable {
        /// Whether there is a second factor.
        let hasSecond: Bool
        /// Whether the token is sealed under a card.
        let usesCard: Bool
        /// Where the card is; nil: in any reader.
        let reader: String?

        init(_ arguments: Arguments, _ flavour: Flavour) throws(Failure) {
            hasSecond = flavour == .mfa ? try arguments.isSet("pin1") : false
            usesCard = try arguments.isSet("card")
            let reader = try arguments.text("reader", orEmptyTo: 256)
            self.reader = reader.isEmpty ? nil : reader
        }
    }

    var registrationCommands: [CommandSpec] {
        [
            command("MPIN_START_REGISTRATION") { [self] call throws(Failure) in try register(call, isRepeated: false) },
            command("MPIN_RESTART_REGISTRATION") { [self] call throws(Failure) in try register(call, isRepeated: true)
            },
            command("MPIN_CONFIRM_REGISTRATION", confirm),
            command("MPIN_FINISH_REGISTRATION", finish),
        ]
    }

    private func register(_ call: Call, isRepeated: Bool) throws(Failure) -> Reply {
        let dialogue = try dialogue(call)
        let options = try RegistrationOptions(call.arguments, dialogue.settings.flavour)
        return userWorkflow(call, dialogue) { [self] run throws(Failure) in
            // A registration whose secret was lost can be repeated, too.
            try Self.check(run.user, isRepeated ? [.startedRegistration, .activated] : [.invalid])
            var user = run.user
            let registration = try await connection(for: dialogue.client).register(
                options.request(user),
                repeating: isRepeated ? user.registration : nil,
                dialogue.settings
            )
            user.apply(registration)
            try await users.change(user, dialogue.name)
            pending[dialogue.name] = nil
            return .user(user)
        }
    }

    private func confirm(_ call: Call) throws(Failure) -> Reply {
        let dialogue = try dialogue(call)
        let push = try call.arguments.text("pushNotificationIdentifier", orEmptyTo: 512)
        return userWorkflow(call, dialogue) { [self] run throws(Failure) in
            try await confirm(dialogue, run.user, push: push)
        }
    }

    private func finish(_ call: Call) throws(Failure) -> Reply {
        let dialogue = try dialogue(call)
        let options = try TokenOptions(call.arguments, dialogue.settings.flavour)
        return userWorkflow(call, dialogue) { [self] run throws(Failure) in try await finish(run, options) }
    }

    static func check(_ user: StoredUser, _ states: [UserState]) throws(Failure) {
        guard !states.contains(user.state) else { return }
        let names = states.map(\.rawValue).joined(separator: " or ")
        throw Failure(.flowError, "the user is \(user.state.rawValue), and must be \(names): \(user.state.advice)")
    }

    /// Fetches both shares of the client secret. The server sends the first one only once, so it is kept until the
    /// second one has arrived.
    private func confirm(_ dialogue: Dialogue, _ user: StoredUser, push: String) async throws(Failure) -> Content {
        try Self.check(user, [.startedRegistration, .activated])
        guard let registration = user.registration else {
            throw Failure(.flowError, "the registration is incomplete: send MPIN_RESTART_REGISTRATION")
        }
        let secret = pendingSecret(of: user, dialogue.name) ?? PendingSecret(regOTT: registration.regOTT)
        guard secret.clientSecret == nil else { return .user(user) }
        do throws(Failure) {
            if user.flavour == .mfa {
                if secret.keyedShare == nil {
                    secret.keyedShare = try await connection(for: dialogue.client).firstShare(
                        registration,
                        try await IdentityKeys.make(),
                        dialogue.settings
                    )
                    pending[dialogue.name] = secret
                }
                try await completeKeyed(secret, dialogue)
            } else {
                if secret.first == nil {
                    secret.first = try await connection(for: dialogue.client).firstShare(
                        registration,
                        push: push,
                        dialogue.settings
                    )
                    pending[dialogue.name] = secret
                }
                try await complete(secret, dialogue)
            }
        } catch {
            // After a refusal the first share cannot be used, and the server does not send it again.
            guard (400...499).contains(error.http ?? 0) || error.status == .cryptoError else { throw error }
            pending[dialogue.name] = nil
            throw error.advising("confirm the identity first, or send MPIN_RESTART_REGISTRATION if it was confirmed")
        }
        var user = user
        user.state = .activated
        let changed = user
        try await users.change(changed, dialogue.name)
        return .user(user)
    }

    private func complete(_ secret: PendingSecret, _ dialogue: Dialogue) async throws(Failure) {
        guard let first = secret.first else { return }
        let second = try await connection(for: dialogue.client).secondShare(first, dialogue.settings)
        secret.first = nil
        secret.clientSecret = try await ClientKeys.clientSecret(first.share, second).take()
    }

    /// Fetches the second share for an identity with a public key.
    func completeKeyed(_ secret: PendingSecret, _ dialogue: Dialogue) async throws(Failure) {
        guard let first = secret.keyedShare else { return }
        let second = try await connection(for: dialogue.client).secondShare(first, dialogue.settings)
        secret.keyedShare = nil
        secret.identity = first.identity
        secret.clientSecret = try await first.keys.clientSecret(first.share, second).take()
    }

    /// Borrows the card that shall seal the token, asks for the new PIN and keeps the token.
    private func finish(_ run: UserRun, _ options: TokenOptions) async throws(Failure) -> Content {
        var (dialogue, user) = (run.dialogue, run.user)
        try Self.check(user, [.startedRegistration, .activated])
        let begun = pendingSecret(of: user, dialogue.name)
        guard let id = user.id, let secret = begun?.copy else {
            let advice = "send MPIN_CONFIRM_REGISTRATION first, or MPIN_RESTART_REGISTRATION if it was confirmed"
            throw Failure(.flowError, "there is no client secret: \(advice)")
        }
        let seal =
            options.usesCard ? try await borrowSeal(run.workflow, keyUID: nil, reader: options.reader) : nil
        let factors = try await ask(run, isNew: true, options.hasSecond ? .set : .none).typed
        let token = try await ClientKeys.token(from: secret, factors, begun?.identity?.signingID ?? id)
        user.account?.login = begun?.identity
        user.account?.loginHasSecond = options.hasSecond
        user.state = .registered
        user.regOTT = nil
        user.expiration = nil
        user.cardUID = seal?.keyUID
        try await keep(user, dialogue, token: token, seal)
        pending[dialogue.name] = nil
        return .user(user)
    }

    /// Asks for the PIN, and for the second factor unless the user has none.
    /// - Returns: what was typed, and whether there is a second factor.
    func ask(
        _ run: UserRun,
        isNew: Bool,
        _ second: SecondFactor
    ) async throws(Failure) -> (typed: Factors, hasSecond: Bool) {
        let pin = SecretBox(try await ask(run.workflow, MPinPrompt(isNew: isNew, user: run.user, factor: .pin)))
        var typed = Secret([])
        if second != .none {
            let factor = MPinPrompt.Factor.second(isOptional: second == .unknown)
            typed = try await ask(run.workflow, MPinPrompt(isNew: isNew, user: run.user, factor: factor))
        }
        guard let digits = pin.take() else { throw .cancelled }
        guard typed.withBytes({ !$0.isEmpty }) else { return (Factors(digits), false) }
        return (Factors(digits, second: typed), true)
    }

    /// Asks for a PIN.
    private func ask(_ workflow: Workflow, _ prompt: MPinPrompt) async throws(Failure) -> Secret {
        guard let digits = try await workflow.ask(prompt).take() else { throw .cancelled }
        return digits
    }
}
