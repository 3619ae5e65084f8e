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
            (try feature.client(of: session), try arguments.backend())
        } _: { feature, workflow, prepared in
            let (client, backend) = prepared
            do throws(MPinFailure) {
                let settings = try await feature.connection(for: client).settings(of: backend)
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

        init(_ arguments: Arguments) throws(MPinFailure) {
            userData = try arguments.text("userData", orEmptyTo: 4096)
            activateCode = try arguments.text("activateCode", orEmptyTo: 128)
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
            userWorkflow("MPIN_FINISH_REGISTRATION") { _, _ throws(MPinFailure) in
            } _: { feature, workflow, dialogue, user, _ throws(MPinFailure) in
                try await feature.finish(workflow, dialogue, user)
            },
        ]
    }

    private func registrationCommand(_ name: String, isRepeated: Bool) -> CommandSpec {
        userWorkflow(name) { arguments, _ throws(MPinFailure) in
            try RegistrationOptions(arguments)
        } _: { feature, _, dialogue, user, options throws(MPinFailure) in
            // A registration whose secret was lost can be repeated, too.
            let states: [UserState] = isRepeated ? [.startedRegistration, .activated] : [.invalid]
            try Self.check(user, states)
            var user = user
            let registration = try await feature.connection(for: dialogue.client).register(
                user.identity,
                deviceName: user.deviceName,
                userData: options.userData,
                activateCode: options.activateCode,
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

    /// Fetches both shares of the client secret. The first one is served once, so it is kept until the second is there.
    private func confirm(_ dialogue: Dialogue, _ user: MPinUser, push: String) async throws(MPinFailure) -> Content {
        try Self.check(user, [.startedRegistration, .activated])
        guard let registration = user.registration else {
            throw MPinFailure(.flowError, "the registration is incomplete: send MPIN_RESTART_REGISTRATION")
        }
        let secret = pendingSecret(of: user, dialogue.name) ?? PendingSecret(regOTT: registration.regOTT)
        guard secret.clientSecret == nil else { return .user(user) }
        let connection = connection(for: dialogue.client)
        let first: FirstShare
        if let kept = secret.first {
            first = kept
        } else {
            first = try await connection.firstShare(registration, push: push, dialogue.settings)
            secret.first = first
            keep(secret, of: dialogue.name)
        }
        do throws(MPinFailure) {
            let second = try await connection.secondShare(first, dialogue.settings)
            secret.first = nil
            secret.clientSecret = try await ClientKeys.clientSecret(first.share, second).take()
        } catch {
            // After a refusal the first share is of no use any more.
            if (400...499).contains(error.http ?? 0) || error.status == .cryptoError { dropPending(dialogue.name) }
            throw error
        }
        var user = user
        user.state = .activated
        let changed = user
        try await stored { users throws(StoreError) in try await users.change(changed, dialogue.name) }
        return .user(user)
    }

    /// Asks for the new PIN and keeps the token.
    private func finish(
        _ workflow: Workflow,
        _ dialogue: Dialogue,
        _ user: MPinUser
    ) async throws(MPinFailure) -> Content {
        try Self.check(user, [.startedRegistration, .activated])
        guard let id = user.id, let secret = pendingSecret(of: user, dialogue.name)?.copy else {
            let advice = "send MPIN_CONFIRM_REGISTRATION first, or MPIN_RESTART_REGISTRATION if it was confirmed"
            throw MPinFailure(.flowError, "there is no client secret: \(advice)")
        }
        let pin = SecretBox(try await ask(workflow, MPinPrompt(isNew: true, user: user)))
        let token = try await ClientKeys.token(from: secret, pin, id)
        var user = user
        (user.state, user.regOTT, user.expiration) = (.registered, nil, nil)
        let changed = user
        try await stored { users throws(StoreError) in
            try await users.keep(changed, dialogue.name, token: token)
        }
        dropPending(dialogue.name)
        return .user(user)
    }

    /// Asks for a PIN.
    func ask(_ workflow: Workflow, _ prompt: MPinPrompt) async throws(MPinFailure) -> Secret {
        do throws(Interruption) {
            guard let digits = try await workflow.ask(prompt).take() else {
                throw Interruption.cancelled
            }
            return digits
        } catch {
            let text = error == .timedOut ? "Prompt_Timeout: the user did not answer in time" : "it was cancelled"
            throw MPinFailure(.pinInputCanceled, text)
        }
    }
}
