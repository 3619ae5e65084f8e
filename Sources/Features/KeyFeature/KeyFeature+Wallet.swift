// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Server
import Store
import Text
import Vault
import Wire

/// Passes in the five steps of the WaveLynx SDK: a new key, a blob for the backend, and its reference.
extension KeyFeature {
    var walletCommands: [CommandSpec] {
        [
            CommandSpec("WALLET_CHECK", permission: .keys) { [unowned self] session, command in
                session.answerLater(to: command) { [self] in
                    do throws(KeyFailure) {
                        let protection = try await vaulted { vault throws(VaultError) in
                            try await vault.protectionOfNewKeys()
                        }
                        return WalletEligibleMessage(
                            protection: protection,
                            storage: try await storage(),
                            failure: nil
                        )
                    } catch {
                        return WalletEligibleMessage(protection: nil, storage: nil, failure: error)
                    }
                }
                return .answered
            },
            pass("WALLET_PREPARE", NewPass.init, otherwise: .errorGeneratingProvisioningBlob) {
                feature,
                _,
                uid,
                new throws(KeyFailure) in
                try await feature.prepare(new, uid)
            },
            pass("WALLET_SAVE", PassReference.init, otherwise: .provisioningError) {
                feature,
                session,
                uid,
                reference throws(KeyFailure) in
                session.push(WalletPendingMessage())
                return try await feature.alone(uid) { () throws(KeyFailure) in
                    try await feature.save(reference, uid)
                }
            },
        ]
    }

    /// A command that ends with WALLET_ERROR if it fails, with the reason `otherwise` unless there is a better one.
    private func pass<Prepared: Sendable>(
        _ name: String,
        _ prepare: @escaping @Loop (KeyArguments) throws(KeyFailure) -> Prepared,
        otherwise: PassResult,
        _ perform: @escaping @Loop (KeyFeature, Session, UInt32, Prepared) async throws(KeyFailure) -> any PassMessage
    ) -> CommandSpec {
        CommandSpec(name, permission: .keys) { [unowned self] session, command in
            do throws(KeyFailure) {
                let prepared = try prepare(KeyArguments(command: command))
                let uid = try Self.uid(of: session)
                session.answerLater(to: command) { [self] in
                    do throws(KeyFailure) {
                        return try await perform(self, session, uid, prepared)
                    } catch {
                        log(session, name, error)
                        return WalletErrorMessage(
                            result: PassResult(error, otherwise: otherwise),
                            failure: error,
                            storage: try? await vault.keySource()
                        )
                    }
                }
            } catch {
                session.answer(WalletErrorMessage(result: .configInvalid, failure: error, storage: nil), to: command)
            }
            return .answered
        }
    }

    /// The members of WALLET_PREPARE.
    struct NewPass: Sendable {
        let label: String
        /// The nonce that the backend requires in the blob; nil: badged generates one.
        let nonce: String?

        init(_ arguments: KeyArguments) throws(KeyFailure) {
            label = try arguments.text("label", limit: KeyRecord.maximumLabel) ?? ""
            nonce = try arguments.text("nonce", limit: 256)
        }
    }

    private func prepare(_ new: NewPass, _ uid: UInt32) async throws(KeyFailure) -> any PassMessage {
        let end = vault.now() + Vault.pendingTime
        let key = try await vaulted { vault throws(VaultError) in
            try await vault.makeKey(of: uid, origin: .wallet) { key in (key.label, key.pendingUntil) = (new.label, end)
            }
        }
        return WalletBlobMessage(
            key: key.id,
            blob: try await proof(of: key, uid, nonce: new.nonce),
            expires: end,
            storage: try await storage()
        )
    }

    /// The members of WALLET_SAVE.
    struct PassReference: Sendable {
        /// An enrolment file, or the thumbprint of a key whose file the issuer has.
        let reference: String
        let label: String

        init(_ arguments: KeyArguments) throws(KeyFailure) {
            guard let text = try arguments.text("reference", limit: Enrolment.maximumCount), !text.isEmpty else {
                throw KeyArguments.invalid("reference", "an enrolment file, or the thumbprint of its key")
            }
            reference = text
            switch arguments.command.object("display") {
            case .missing: label = ""
            case .invalid: throw KeyArguments.invalid("display", "an object with displayName")
            case .value(let display):
                label = display["displayName"]?.string ?? ""
                guard label.utf8.count <= KeyRecord.maximumLabel else {
                    throw KeyArguments.invalid("displayName", "a text of at most \(KeyRecord.maximumLabel) bytes")
                }
            }
        }
    }

    private func save(_ pass: PassReference, _ uid: UInt32) async throws(KeyFailure) -> any PassMessage {
        let file: Enrolment
        if pass.reference.contains(".") {
            file = try issuer.read(pass.reference.utf8)
        } else {
            guard pass.reference.utf8.count == 43, Base64URL.decode(pass.reference) != nil else {
                throw KeyFailure(.parameter, "reference must be an enrolment file, or the thumbprint of its key")
            }
            let found = try await withIssuer { connection throws(KeyFailure) in
                try await issuer.enrolment(of: pass.reference, connection)
            }
            guard let found else { throw KeyFailure(.invitationInvalid, "the issuer has no file for this key") }
            file = found
        }
        guard !file.isRevoked else { throw KeyFailure(.keyUnfit, "the issuer has revoked this key") }
        let keys = try await vaulted { vault throws(VaultError) in try await vault.keys(of: uid) }
        guard let key = keys.first(where: { $0.thumbprint != nil && $0.thumbprint == file.key }) else {
            throw KeyFailure(.keyNotFound, "no key of this user waits for this file: send WALLET_PREPARE again")
        }
        if key.pendingUntil == nil {
            return WalletErrorMessage(
                result: .alreadyProvisionedOnPhone,
                failure: KeyFailure(.keyUnfit, "this pass is saved already"),
                storage: try await storage()
            )
        }
        var saved = try await install(file, uid)
        if !pass.label.isEmpty {
            saved = try await vaulted { vault throws(VaultError) in
                try await vault.change(saved.id, of: uid) { key in
                    key.label = pass.label
                    return nil
                }
            }
        }
        return WalletSavedMessage(key: view(saved), storage: try await storage())
    }
}

/// How a step of a pass ends. The names are those of `WlPassResult`.
enum PassResult: String, Sendable {
    case controllerNotBound
    case success
    case configInvalid
    case provisioningError
    /// The pass is in this vault already.
    case alreadyProvisionedOnPhone
    /// Never sent, because badged has no watch.
    case alreadyProvisionedOnWatch
    case errorGeneratingProvisioningBlob

    init(_ failure: KeyFailure, otherwise: PassResult) {
        switch failure.name {
        case .endpoint, .deviceNotEligible, .storageUnreadable, .tpmUnavailable, .tpmLocked, .incompatible:
            self = .controllerNotBound
        case .parameter, .notSupported: self = .configInvalid
        case .internalError, .busy, .deviceSetupFailed, .deviceSetupRetry, .communicationFailed, .communicationRetry,
            .invitationInvalid, .invitationForeign, .keyNotFound, .keyUnfit, .full:
            self = otherwise
        }
    }
}

// MARK: Messages

/// The answer to a command for a pass.
protocol PassMessage: Message, Sendable {}

/// The answer to WALLET_CHECK.
struct WalletEligibleMessage: Message {
    static let name: StaticString = "WALLET_ELIGIBLE"
    /// Where the private part of a new key is.
    let protection: KeyRecord.Protection?
    let storage: StoreKeySource?
    /// Why the store cannot be used.
    let failure: KeyFailure?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("eligible", failure == nil)
        object.member("protocols", ["pkoc"])
        object.member("protection", [protection].compactMap { $0?.rawValue })
        object.member("storage", storage?.rawValue)
        if let failure { failure.write(to: &object) }
    }
}

/// The answer to WALLET_PREPARE.
struct WalletBlobMessage: PassMessage {
    static let name: StaticString = "WALLET_BLOB"
    /// The id of the new key.
    let key: String
    let blob: String
    /// In seconds since 1970.
    let expires: Int
    let storage: StoreKeySource

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("key", key)
        object.member("blob", blob)
        object.member("expires", DateText.text(expires))
        object.member("storage", storage.rawValue)
    }
}

/// Says that WALLET_SAVE has begun.
struct WalletPendingMessage: Message {
    static let name: StaticString = "WALLET_PENDING"

    func write(to object: inout JSONWriter, _ level: APILevel) {}
}

/// The answer to WALLET_SAVE.
struct WalletSavedMessage: PassMessage {
    static let name: StaticString = "WALLET_SAVED"
    let key: KeyView
    let storage: StoreKeySource

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("reason", PassResult.success.rawValue)
        object.object("key") { key.write(to: &$0) }
        object.member("storage", storage.rawValue)
    }
}

/// The answer to a command for a pass that has failed.
struct WalletErrorMessage: PassMessage {
    static let name: StaticString = "WALLET_ERROR"
    let result: PassResult
    let failure: KeyFailure
    /// As in `KeyAnswer`.
    let storage: StoreKeySource?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("reason", result.rawValue)
        failure.write(to: &object)
        if let storage { object.member("storage", storage.rawValue) }
    }
}
