// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import MPin
import Secrets
import Server
import Store

/// The commands that choose a backend and register users.
extension MPinFeature {
    var backendCommands: [CommandSpec] {
        [backendCommand("MPIN_TEST_BACKEND", keeps: false), backendCommand("MPIN_SET_BACKEND", keeps: true)]
    }

    private func backendCommand(_ name: String, keeps: Bool) -> CommandSpec {
        workflow(name) { feature, session, arguments throws(MPinFailure) in
            let client = try feature.client(of: session)
            return (client, try arguments.backend(client.flavour))
        } _: { feature, workflow, prepared in
            let (client, backend) = prepared
            do throws(MPinFailure) {
                let settings = try await feature.connection(for: client).settings(of: backend, client.flavour)
                if keeps {
                    if client.settings?.backend.key != backend.key { (client.permits, client.logouts) = ([:], [:]) }
                    client.settings = settings
                }
                return MPinResultMessage(name)
            } catch {
                feature.log(workflow.session, name, error)
                return MPinResultMessage(name, error)
            }
        }
    }

    /// The members of a registration that are passed on.
    private struct RegistrationOptions: Sendable {
        let userData: String
        let activateCode: String
        let accessCode: String
        let push: String

        init(_ arguments: Arguments, _ flavour: Flavour) throws(MPinFailure) {
            userData = try arguments.text("userData", orEmptyTo: 4096)
            activateCode = try arguments.text("activateCode", orEmptyTo: 128)
            accessCode = flavour == .mfa ? try arguments.accessCode() : ""
            push = flavour == .mfa ? try arguments.text("pushNotificationIdentifier", orEmptyTo: 512) : ""
        }

        func request(_ user: MPinUser) -> RegistrationRequest {
            var request = RegistrationRequest(userID: user.identity)
            (request.deviceName, request.userData, request.activateCode) = (user.deviceName, userData, activateCode)
            (request.accessCode, request.push) = (accessCode, push)
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

        init(_ arguments: Arguments, _ flavour: Flavour) throws(MPinFailure) {
            hasSecond = flavour == .mfa ? try arguments.flag("pin1") : false
            usesCard = try arguments.flag("card")
            let reader = try arguments.text("reader", orEmptyTo: 256)
            self.reader = reader.isEmpty ? nil : reader
        }
    }

    var registrationCommands: [CommandSpec] {
        [
            registrationCommand("MPIN_START_REGISTRATION", isRepeated: false),
            registrationCommand("MPIN_RESTART_REGISTRATION", isRepeated: true),
            userWorkflow("MPIN_CONFIRM_REGISTRATION") { arguments, _ throws(MPinFailure) in
                try arguments.text("pushNotificationIdentifier", orEmptyTo: 512)
            } _: { feature, _, dialogue, user, push throws(MPinFailure) in
                try await feature.confirm(dialogue, user, push: push)
            },
            userWorkflow("MPIN_FINISH_REGISTRATION") { arguments, settings throws(MPinFailure) in
                try TokenOptions(arguments, settings.flavour)
            } _: { feature, workflow, dialogue, user, options throws(MPinFailure) in
                try await feature.finish(workflow, dialogue, user, options)
            },
        ]
    }

    private func registrationCommand(_ name: String, isRepeated: Bool) -> CommandSpec {
        userWorkflow(name) { arguments, settings throws(MPinFailure) in
            try RegistrationOptions(arguments, settings.flavour)
        } _: { feature, _, dialogue, user, options throws(MPinFailure) in
            // A registration whose secret was lost can be repeated, too.
            let states: [UserState] = isRepeated ? [.startedRegistration, .activated] : [.invalid]
            try Self.check(user, states)
            var user = user
            let registration = try await feature.connection(for: dialogue.client).register(
                options.request(user),
                repeating: isRepeated ? user.registration : nil,
                dialogue.settings
            )
            user.take(registration)
            let changed = user
            try await feature.stored { users throws(StoreError) in try await users.change(changed, dialogue.name) }
            feature.dropPending(dialogue.name)
            return .user(user)
        }
    }

    static func check(_ user: MPinUser, _ states: [UserState]) throws(MPinFailure) {
        guard !states.contains(user.state) else { return }
        let names = states.map(\.rawValue).joined(separator: " or ")
        throw MPinFailure(.flowError, "the user is \(user.state.rawValue), and must be \(names)")
    }

    /// Fetches both shares of the client secret. The server sends the first one only once, so it is kept until the
    /// second one has arrived.
    private func confirm(_ dialogue: Dialogue, _ user: MPinUser, push: String) async throws(MPinFailure) -> Content {
        try Self.check(user, [.startedRegistration, .activated])
        guard let registration = user.registration else {
            throw MPinFailure(.flowError, "the registration is incomplete: send MPIN_RESTART_REGISTRATION")
        }
        let secret = pendingSecret(of: user, dialogue.name) ?? PendingSecret(regOTT: registration.regOTT)
        guard secret.clientSecret == nil else { return .user(user) }
        do throws(MPinFailure) {
            if user.flavour == .mfa {
                if secret.keyedShare == nil {
                    secret.keyedShare = try await connection(for: dialogue.client).firstShare(
                        registration,
                        try await IdentityKeys.make(),
                        dialogue.settings
                    )
                    keep(secret, of: dialogue.name)
                }
                try await completeKeyed(secret, dialogue)
            } else {
                if secret.first == nil {
                    secret.first = try await connection(for: dialogue.client).firstShare(
                        registration,
                        push: push,
                        dialogue.settings
                    )
                    keep(secret, of: dialogue.name)
                }
                try await complete(secret, dialogue)
            }
        } catch {
            // After a refusal the first share is useless, and the server does not send it again.
            guard (400...499).contains(error.http ?? 0) || error.status == .cryptoError else { throw error }
            dropPending(dialogue.name)
            throw error.advising("confirm the identity first, or send MPIN_RESTART_REGISTRATION if it was confirmed")
        }
        var user = user
        user.state = .activated
        let changed = user
        try await stored { users throws(StoreError) in try await users.change(changed, dialogue.name) }
        return .user(user)
    }

    private func complete(_ secret: PendingSecret, _ dialogue: Dialogue) async throws(MPinFailure) {
        guard let first = secret.first else { return }
        let second = try await connection(for: dialogue.client).secondShare(first, dialogue.settings)
        secret.first = nil
        secret.clientSecret = try await ClientKeys.clientSecret(first.share, second).take()
    }

    /// Fetches the second share for an identity with a public key.
    func completeKeyed(_ secret: PendingSecret, _ dialogue: Dialogue) async throws(MPinFailure) {
        guard let first = secret.keyedShare else { return }
        let second = try await connection(for: dialogue.client).secondShare(first, dialogue.settings)
        (secret.keyedShare, secret.identity) = (nil, first.identity)
        secret.clientSecret = try await first.keys.clientSecret(first.share, second).take()
    }

    /// Borrows the card that shall seal the token, asks for the new PIN and keeps the token.
    private func finish(
        _ workflow: Workflow,
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ options: TokenOptions
    ) async throws(MPinFailure) -> Content {
        try Self.check(user, [.startedRegistration, .activated])
        let pending = pendingSecret(of: user, dialogue.name)
        guard let id = user.id, let secret = pending?.copy else {
            let advice = "send MPIN_CONFIRM_REGISTRATION first, or MPIN_RESTART_REGISTRATION if it was confirmed"
            throw MPinFailure(.flowError, "there is no client secret: \(advice)")
        }
        let seal =
            options.usesCard ? try await borrowSeal(workflow, keyUID: nil, reader: options.reader) : nil
        let factors = try await ask(workflow, user, isNew: true, hasSecond: options.hasSecond)
        let token = try await ClientKeys.token(from: secret, factors, pending?.identity?.signingID ?? id)
        var user = user
        user.account?.login = pending?.identity
        (user.state, user.regOTT, user.expiration, user.cardUID) = (.registered, nil, nil, seal?.keyUID)
        try await keep(user, dialogue, token: token, seal)
        dropPending(dialogue.name)
        return .user(user)
    }

    /// Asks for the PIN, and for the second factor if the user has one.
    func ask(
        _ workflow: Workflow,
        _ user: MPinUser,
        isNew: Bool,
        hasSecond: Bool
    ) async throws(MPinFailure) -> Factors {
        let pin = SecretBox(try await ask(workflow, MPinPrompt(isNew: isNew, user: user, factor: .pin)))
        var second: Secret?
        if hasSecond { second = try await ask(workflow, MPinPrompt(isNew: isNew, user: user, factor: .second)) }
        guard let digits = pin.take() else { throw MPinFailure(.pinInputCanceled, Self.cancelled) }
        return Factors(digits, second: second)
    }

    /// Asks for a PIN.
    private func ask(_ workflow: Workflow, _ prompt: MPinPrompt) async throws(MPinFailure) -> Secret {
        do throws(Interruption) {
            guard let digits = try await workflow.ask(prompt).take() else {
                throw Interruption.cancelled
            }
            return digits
        } catch {
            throw MPinFailure(.pinInputCanceled, error == .timedOut ? Self.timedOut : Self.cancelled)
        }
    }
}
