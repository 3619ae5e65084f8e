// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import MPin
import Server
import Store
import Text

/// The commands that log users in and out.
extension MPinFeature {
    var loginCommands: [CommandSpec] {
        [
            command("MPIN_START_AUTHENTICATION", startLogin),
            command("MPIN_FINISH_AUTHENTICATION", finishLogin),
            command("MPIN_LOGOUT", logOut),
        ]
    }

    private func startLogin(_ call: Call) throws(Failure) -> Reply {
        let dialogue = try dialogue(call)
        let accessCode = dialogue.settings.flavour == .mfa ? try call.arguments.accessCode() : nil
        return userWorkflow(call, dialogue) { [self] run throws(Failure) in
            guard let accessCode else { return try await startLogin(dialogue, run.user) }
            return try await announceLogin(run, accessCode)
        }
    }

    private func finishLogin(_ call: Call) throws(Failure) -> Reply {
        let dialogue = try dialogue(call)
        switch dialogue.settings.flavour {
        case .mpin:
            let mode = try Self.mode(call.arguments, dialogue.settings)
            return userWorkflow(call, dialogue) { [self] run throws(Failure) in try await finishLogin(run, mode) }
        case .mfa:
            let options = try ProofOptions(call.arguments)
            return userWorkflow(call, dialogue) { [self] run throws(Failure) in try await finishLogin(run, options) }
        }
    }

    private func logOut(_ call: Call) throws(Failure) -> Reply {
        let dialogue = try dialogue(call)
        return userWorkflow(call, dialogue) { [self] run throws(Failure) in
            guard let logout = logouts[dialogue.name] else {
                throw Failure(
                    .flowError,
                    "badged knows no browser session of this user",
                    advice: "a login with an access number begins one"
                )
            }
            try await connection(for: dialogue.client).logOut(logout, dialogue.settings.backend)
            logouts[dialogue.name] = nil
            return .user(run.user)
        }
    }

    private static func mode(_ arguments: Arguments, _ settings: ClientSettings) throws(Failure) -> LoginMode {
        guard let isOTP = try arguments.optionalWord("mode", [("OTP", true), ("AN", false)]) else { return .login }
        if isOTP { return .otp }
        let number = try arguments.text("accessNumber", orEmptyTo: 64)
        guard settings.accepts(accessNumber: number) else { throw wrongAccessNumber }
        return .accessNumber(number)
    }

    /// Fetches the time permit, with which the relying party also says whether the user is revoked.
    private func startLogin(_ dialogue: Dialogue, _ user: StoredUser) async throws(Failure) -> Content {
        try Self.check(user, [.registered])
        guard let id = user.id else { throw Failure(.storageError, "the user has no M-Pin id: register again") }
        let permit = try await connection(for: dialogue.client).timePermit(
            id,
            cached: try await users.permit(dialogue.name),
            dialogue.settings
        )
        if let permit {
            try await users.keep(permit.day, permit.second, dialogue.name)
        }
        dialogue.client.permits[dialogue.name] = MPinClient.HeldPermit(
            permit: permit.map { ($0.day, $0.sum) },
            begun: .now
        )
        return .user(user)
    }

    /// Asks for the PIN and proves it. Only the server knows whether the PIN is right.
    private func finishLogin(_ run: UserRun, _ mode: LoginMode) async throws(Failure) -> Content {
        let (dialogue, user) = (run.dialogue, run.user)
        try Self.check(user, [.registered])
        let again: Phrase = "send MPIN_START_AUTHENTICATION before each login"
        guard let id = user.id, let permit = dialogue.client.permits[dialogue.name] else {
            throw Failure(.flowError, again)
        }
        guard permit.begun.duration(to: .now) < MPinClient.HeldPermit.lifetime else {
            throw Failure(.flowError, "the time permit is too old: \(again)")
        }
        try await requireToken(dialogue)
        let token = try await token(dialogue, try await seal(run))
        let factors = try await ask(run, isNew: false, .none).typed
        guard let held = dialogue.client.permits.removeValue(forKey: dialogue.name),
            held.begun.duration(to: .now) < MPinClient.HeldPermit.lifetime
        else { throw Failure(.flowError, "the time permit is too old: \(again)") }
        do throws(Failure) {
            let result = try await connection(for: dialogue.client).authenticate(
                id,
                mode,
                token: token,
                factors,
                permit: held.permit,
                dialogue.settings
            )
            logouts[dialogue.name] = result.logout
            return .login(result)
        } catch {
            if error.status == .incorrectPIN { await noteWrongPIN(error, user, dialogue, run.workflow.session) }
            throw error
        }
    }

    /// Forgets the token of a user whom the server has blocked. Otherwise forgets the time permit: a wrong permit would
    /// make the right PIN wrong again.
    func noteWrongPIN(_ failure: Failure, _ user: StoredUser, _ dialogue: Dialogue, _ session: Session) async {
        forgetPermits(of: dialogue.name)
        do throws(Failure) {
            if failure.http == 410 {
                var user = user
                user.state = .blocked
                try await users.dropToken(user, dialogue.name)
            } else if user.flavour == .mpin {
                try await users.doubtPermit(dialogue.name)
            }
        } catch {
            session.log(.warning, "token or time permit of a user of M-Pin cannot be deleted: \(error.logText)")
        }
    }
}
