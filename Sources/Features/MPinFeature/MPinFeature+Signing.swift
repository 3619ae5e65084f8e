// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import MPin
import Server
import Store
import Wire

/// The commands with which users of MPinMFA sign documents.
extension MPinFeature {
    var signingCommands: [CommandSpec] {
        [
            mfaWorkflow("MPIN_START_DVS") { arguments throws(MPinFailure) in
                try arguments.text("token", limit: 8192)
            } _: { feature, _, dialogue, user, token throws(MPinFailure) in
                try Self.check(user, [.registered])
                feature.keepSigner(try await feature.keyedSecret(dialogue, user, token), of: dialogue.name)
                return .user(user)
            },
            mfaWorkflow("MPIN_FINISH_DVS") { arguments throws(MPinFailure) in
                try arguments.flag("nfc")
            } _: { feature, workflow, dialogue, user, hasSecond throws(MPinFailure) in
                try await feature.finishSigner(workflow, dialogue, user, hasSecond: hasSecond)
            },
            mfaWorkflow("MPIN_SIGN") { arguments throws(MPinFailure) in
                try SigningOrder(arguments)
            } _: { feature, workflow, dialogue, user, order throws(MPinFailure) in
                try await feature.sign(workflow, dialogue, user, order)
            },
        ]
    }

    /// A document that shall be signed.
    private struct SigningOrder: Sendable {
        let hash: [UInt8]
        let epochTime: UInt32
        let options: ProofOptions

        init(_ arguments: Arguments) throws(MPinFailure) {
            hash = try arguments.documentHash("documentHash")
            epochTime = try arguments.time("epochTime")
            options = try ProofOptions(signing: arguments)
        }
    }

    private func mfaWorkflow<Options: Sendable>(
        _ name: String,
        _ options: @escaping @Loop (Arguments) throws(MPinFailure) -> Options,
        _ perform:
            @escaping @Loop (MPinFeature, Workflow, Dialogue, MPinUser, Options) async throws(MPinFailure) -> Content
    ) -> CommandSpec {
        userWorkflow(name) { arguments, settings throws(MPinFailure) in
            guard settings.flavour == .mfa else { throw Self.needsMFA }
            return try options(arguments)
        } _: { feature, workflow, dialogue, user, options throws(MPinFailure) in
            try await perform(feature, workflow, dialogue, user, options)
        }
    }

    private func finishSigner(
        _ workflow: Workflow,
        _ dialogue: Dialogue,
        _ user: MPinUser,
        hasSecond: Bool
    ) async throws(MPinFailure) -> Content {
        try Self.check(user, [.registered])
        let pending = pendingSigner(dialogue.name)
        guard let identity = pending?.identity, let secret = pending?.copy else {
            throw MPinFailure(.flowError, "there is no client secret: send MPIN_START_DVS with a new token")
        }
        let seal = try await seal(workflow, of: user)
        let factors = try await ask(workflow, user, isNew: true, hasSecond: hasSecond)
        let token = try await ClientKeys.token(from: secret, factors, identity.signingID)
        var user = user
        user.account?.signer = identity
        try await keep(user, dialogue, token: token, for: .signing, seal)
        keepSigner(nil, of: dialogue.name)
        return .user(user)
    }

    /// Signs a document. The signature leaves badged only when the service has found the PIN to be right.
    private func sign(
        _ workflow: Workflow,
        _ dialogue: Dialogue,
        _ user: MPinUser,
        _ order: SigningOrder
    ) async throws(MPinFailure) -> Content {
        try Self.check(user, [.registered])
        guard user.account?.signer != nil else {
            throw MPinFailure(.flowError, "the user cannot sign: send MPIN_START_DVS and MPIN_FINISH_DVS first")
        }
        let factors = try await proofFactors(workflow, user, order.options)
        let user = try await prove(workflow, dialogue, user, order.options, factors).user
        guard let identity = user.account?.signer else {
            throw MPinFailure(.storageError, "the identity of the user is lost: send MPIN_START_DVS with a new token")
        }
        let token = try await token(dialogue, for: .signing, factors.seal)
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
