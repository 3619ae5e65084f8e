// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import MPin
import Server
import Store
import Text

/// The commands with which users of MPinMFA sign documents.
extension MPinFeature {
    var signingCommands: [CommandSpec] {
        [
            command("MPIN_START_DVS", startSigner),
            command("MPIN_FINISH_DVS", finishSigner),
            command("MPIN_SIGN", sign),
        ]
    }

    private func startSigner(_ call: Call) throws(Failure) -> Reply {
        let dialogue = try signingDialogue(call)
        let token = try call.arguments.text("token", 1...8192)
        return userWorkflow(call, dialogue) { [self] run throws(Failure) in
            try Self.check(run.user, [.registered])
            pendingSigners[dialogue.name] = try await keyedSecret(dialogue, run.user, token)
            return .user(run.user)
        }
    }

    private func finishSigner(_ call: Call) throws(Failure) -> Reply {
        let dialogue = try signingDialogue(call)
        let hasSecond = try call.arguments.isSet("nfc")
        return userWorkflow(call, dialogue) { [self] run throws(Failure) in
            try await finishSigner(run, hasSecond: hasSecond)
        }
    }

    private func sign(_ call: Call) throws(Failure) -> Reply {
        let dialogue = try signingDialogue(call)
        let order = try SigningOrder(call.arguments)
        return userWorkflow(call, dialogue) { [self] run throws(Failure) in try await sign(run, order) }
    }

    private func signingDialogue(_ call: Call) throws(Failure) -> Dialogue {
        let dialogue = try dialogue(call)
        guard dialogue.settings.flavour == .mfa else { throw Self.needsMFA }
        return dialogue
    }

    /// A document that shall be signed.
    private struct SigningOrder: Sendable {
        let hash: [UInt8]
        let epochTime: UInt32
        let options: ProofOptions

        init(_ arguments: Arguments) throws(Failure) {
            hash = try arguments.hash("documentHash")
            epochTime = UInt32(try arguments.number("epochTime", 0...Int(UInt32.max)))
            options = try ProofOptions(signing: arguments)
        }
    }

    private func finishSigner(_ run: UserRun, hasSecond: Bool) async throws(Failure) -> Content {
        let dialogue = run.dialogue
        try Self.check(run.user, [.registered])
        let pending = pendingSigners[dialogue.name]
        guard let identity = pending?.identity, let secret = pending?.copy else {
            throw Failure(.flowError, "there is no client secret: send MPIN_START_DVS with a new token")
        }
        let seal = try await seal(run)
        // With the duress PIN of the card, another key would seal this token than the one for logins.
        if seal != nil { _ = try await token(dialogue, seal) }
        let factors = try await ask(run, isNew: true, hasSecond ? .set : .none).typed
        let token = try await ClientKeys.token(from: secret, factors, identity.signingID)
        var user = run.user
        user.account?.signer = identity
        user.account?.signerHasSecond = hasSecond
        try await keep(user, dialogue, token: token, for: .signing, seal)
        pendingSigners[dialogue.name] = nil
        return .user(user)
    }

    /// Signs a document. The signature leaves badged only when the service has found the PIN to be right.
    private func sign(_ run: UserRun, _ order: SigningOrder) async throws(Failure) -> Content {
        try Self.check(run.user, [.registered])
        guard run.user.account?.signer != nil else {
            throw Failure(.flowError, "the user cannot sign: send MPIN_START_DVS and MPIN_FINISH_DVS first")
        }
        let factors = try await proofFactors(run, order.options)
        let user = try await prove(run, order.options, factors).user
        guard let identity = user.account?.signer else {
            throw Failure(.storageError, "the identity of the user is lost: send MPIN_START_DVS with a new token")
        }
        let token = try await token(run.dialogue, for: .signing, factors.seal)
        return .signature(
            try await DocumentSignature.sign(
                order.hash,
                at: order.epochTime,
                identity,
                token: token,
                factors.typed
            )
        )
    }
}
