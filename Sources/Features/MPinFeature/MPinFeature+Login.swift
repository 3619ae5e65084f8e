// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import MPin
import Secrets
import Server
import Store

/// The commands that log users in and out.
extension MPinFeature {
    var loginCommands: [CommandSpec] {
        [
            userWorkflow("MPIN_START_AUTHENTICATION") { arguments, settings throws(MPinFailure) in
                settings.flavour == .mfa ? try arguments.accessCode() : nil
            } _: { feature, _, dialogue, user, accessCode throws(MPinFailure) in
                guard let accessCode else { return try await feature.startLogin(dialogue, user) }
                return try await feature.announceLogin(dialogue, user, accessCode)
            },
            userWorkflow("MPIN_FINISH_AUTHENTICATION") { arguments, settings throws(MPinFailure) in
                try Login(arguments, settings)
            } _: { feature, workflow, dialogue, user, login throws(MPinFailure) in
                switch login {
                case .mpin(let mode): try await feature.finishLogin(workflow, dialogue, user, mode)
                case .mfa(let proof): try await feature.finishLogin(workflow, dialogue, user, proof)
                }
            },
            userWorkflow("MPIN_LOGOUT") { _, _ throws(MPinFailure) in
            } _: { feature, _, dialogue, user, _ throws(MPinFailure) in
                guard let logout = dialogue.client.logouts[dialogue.name] else {
                    throw MPinFailure(.flowError, "badged knows no browser session of this user")
                }
                try await feature.connection(for: dialogue.client).logOut(logout, dialogue.settings.backend)
                dialogue.client.logouts[dialogue.name] = nil
                return .user(user)
            },
        ]
    }

    /// What MPIN_FINISH_AUTHENTICATION shall do.
    private enum Login: Sendable {
        case mpin(LoginMode)
        case mfa(ProofOptions)

        @Loop init(_ arguments: Arguments, _ settings: ClientSettings) throws(MPinFailure) {
            switch settings.flavour {
            case .mpin: self = .mpin(try MPinFeature.mode(arguments, settings))
            case .mfa: self = .mfa(try ProofOptions(arguments))
            }
        }
    }

    private static func mode(_ arguments: Arguments, _ settings: ClientSettings) throws(MPinFailure) -> LoginMode {
        switch try arguments.text("mode", orEmptyTo: 16) {
        case "": return .login
        case "OTP": return .otp
        case "AN":
            let number = try arguments.text("accessNumber", orEmptyTo: 64)
            guard settings.accepts(accessNumber: number) else { throw wrongAccessNumber }
            return .accessNumber(number)
        default: throw MPinFailure(.flowError, "mode must be OTP or AN, or missing")
        }
    }

    /// Fetches the time permit, with which the relying party also says whether the user is revoked.
    private func startLogin(_ dialogue: Dialogue, _ user: MPinUser) async throws(MPinFailure) -> Content {
        try Self.check(user, [.registered])
        guard let id = user.id else { throw MPinFailure(.storageError, "the user has no M-Pin id: register again") }
        let cached = try await stored { users throws(StoreError) in
            let kept = try await users.permit(dialogue.name)
            return kept.map { CachedPermit(day: $0.day, second: $0.second) }
        }
        let permit = try await connection(for: dialogue.client).timePermit(
            id,
            cached: cached.map { ($0.day, $0.second) },
            dialogue.settings
        )
        if let permit {
            try await stored { users throws(StoreError) in
                try await users.keep(permit.day, permit.second, dialogue.name)
            }
        }
        dialogue.client.permits[dialogue.name] = MPinClient.HeldPermit(
            permit: permit.map { ($0.day, $0.sum) },
            begun: .now
        )
        return .user(user)
    }

    private struct CachedPermit: Sendable {
        let day: PermitDay
        let second: SecretBox
    }

    /// Asks for the PIN and proves it. Only the server knows whether the PIN is right.
    private func finishLogin(
        _ workflow: Workflow,
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ mode: LoginMode
    ) async throws(MPinFailure) -> Content {
        try Self.check(user, [.registered])
        let again = "send MPIN_START_AUTHENTICATION before each login"
        guard let id = user.id, dialogue.client.permits[dialogue.name] != nil else {
            throw MPinFailure(.flowError, again)
        }
        let token = try await token(dialogue, try await seal(workflow, of: user))
        let factors = try await ask(workflow, user, isNew: false, hasSecond: false)
        guard let held = dialogue.client.permits.removeValue(forKey: dialogue.name),
            held.begun.duration(to: .now) < MPinClient.HeldPermit.lifetime
        else { throw MPinFailure(.flowError, "the time permit is too old: \(again)") }
        do throws(MPinFailure) {
            let result = try await connection(for: dialogue.client).authenticate(
                id,
                mode,
                token: token,
                factors,
                permit: held.permit,
                dialogue.settings
            )
            dialogue.client.logouts[dialogue.name] = result.logout
            return .login(result)
        } catch {
            if error.status == .incorrectPIN, error.http == 410 { await block(user, dialogue, workflow.session) }
            throw error
        }
    }

    /// Forgets the token of a user whom the server has blocked.
    func block(_ user: MPinUser, _ dialogue: Dialogue, _ session: Session) async {
        var user = user
        user.state = .blocked
        do throws(StoreError) {
            try await users.dropToken(user, dialogue.name)
        } catch {
            session.server.log(.warning, "the token of a blocked user of M-Pin cannot be deleted: \(error.text)")
        }
    }
}
