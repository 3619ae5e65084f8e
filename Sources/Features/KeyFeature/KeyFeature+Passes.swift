// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Server
import Store
import Text
import Vault

/// Passes in the five steps of the WaveLynx SDK: a new key, a blob for the backend, and its reference.
extension KeyFeature {
    func checkPasses(_ call: Call) async throws(Failure) -> Reply {
        let uid = try await user(call)
        let protection = try await vault.protectionOfNewKeys()
        // No key can be made while the record of the endpoint is damaged.
        _ = try await vault.endpoint(of: uid)
        let (storage, unreadable) = (try await vault.keySource(), try await unreadableKeys(uid))
        return call.reply { Self.write(protection, unreadable: unreadable, nil, storage, to: &$0) }
    }

    /// Writes WALLET_ELIGIBLE. `protection` says where the private part of a new key is; `failure` why the store cannot
    /// be used.
    static func write(
        _ protection: KeyRecord.Protection?,
        unreadable: [String],
        _ failure: Failure?,
        _ storage: StoreKeySource?,
        to object: inout JSONWriter
    ) {
        object.member("eligible", failure == nil)
        object.member("protocols", ["pkoc"])
        object.member("protection", [protection].compactMap { $0?.rawValue })
        object.member("storage", storage?.rawValue)
        object.member("unreadable", unreadable)
        if let failure { failure.write(to: &object) }
    }

    /// Returns the ids of the keys of a user that cannot be read.
    private func unreadableKeys(_ uid: UInt32) async throws(Failure) -> [String] {
        do throws(Failure) {
            return try await vault.keyList(of: uid).unreadable
        } catch {
            guard error.code == .notSetUp else { throw error }
            return []
        }
    }

    func preparePass(_ call: Call) async throws(Failure) -> Reply {
        let label = try call.arguments.optionalText("label", 0...KeyRecord.maximumLabel) ?? ""
        // The nonce that the backend requires in the blob; nil: badged generates one.
        let nonce = try call.arguments.optionalText("nonce", 0...256)
        let uid = try await readableOwner(call)
        let end = vault.now() + Vault.pendingTime
        let key = try await vault.makeKey(of: uid, origin: .wallet) { key in
            key.label = label
            key.pendingUntil = end
        }
        let (blob, storage) = (try await proof(of: key, uid, nonce: nonce), try await vault.keySource())
        return Reply("WALLET_BLOB") { object in
            object.member("key", key.id)
            object.member("blob", blob)
            object.member("expires", DateText.text(end))
            object.member("storage", storage.rawValue)
        }
    }

    func savePass(_ call: Call) async throws(Failure) -> Reply {
        let reference = try PassReference(call.arguments)
        let uid = try await readableOwner(call)
        call.session.push(WrittenMessage("WALLET_PENDING"))
        let saved = try await alone(uid) { () throws(Failure) in try await save(reference, uid) }
        let (view, storage) = (view(saved), try await vault.keySource())
        return Reply("WALLET_SAVED") { object in
            object.member("reason", PassResult.success.rawValue)
            object.object("key") { view.write(to: &$0) }
            object.member("storage", storage.rawValue)
        }
    }

    /// The members of PASS_SAVE.
    private struct PassReference: Sendable {
        /// An enrolment file, or the thumbprint of a key whose file the issuer has.
        let text: String
        var isFile: Bool { text.contains(".") }
        let label: String

        init(_ arguments: Arguments) throws(Failure) {
            text = try arguments.text("reference", 1...Enrolment.maximumCount)
            guard text.contains(".") || Base64.url.decode(text)?.count == 32 else {
                throw arguments.wrong("reference", "an enrolment file, or the thumbprint of its key")
            }
            let display = try arguments.optional("display", "an object with displayName") { value in
                value.members == nil ? nil : Arguments(value)
            }
            label = try display?.optionalText("displayName", 0...KeyRecord.maximumLabel) ?? ""
        }
    }

    private static let isSaved = {
        var failure = Failure(.keyUnfit, "this pass is saved already")
        failure.details = [JSON.Member("reason", .string(PassResult.alreadyProvisionedOnPhone.rawValue))]
        return failure
    }()

    private func save(_ pass: PassReference, _ uid: UInt32) async throws(Failure) -> KeyRecord {
        let file: Enrolment
        if pass.isFile {
            file = try issuer.read(pass.text.utf8)
        } else {
            let found = try await withIssuer { connection throws(Failure) in
                try await issuer.enrolment(of: pass.text, connection)
            }
            guard let found else { throw Failure(.invitationInvalid, "the issuer has no file for this key") }
            file = found
        }
        guard !file.isRevoked else { throw Failure(.keyUnfit, "the issuer has revoked this key") }
        let keys = try await vault.keys(of: uid)
        guard let key = keys.first(where: { $0.thumbprint != nil && $0.thumbprint == file.key }) else {
            throw Failure(.keyNotFound, "no key of this user waits for this file: send PASS_PREPARE again")
        }
        guard key.pendingUntil != nil else { throw Self.isSaved }
        let saved = try await install(file, uid)
        guard !pass.label.isEmpty else { return saved }
        return try await vault.change(saved.id, of: uid) { $0.label = pass.label }
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

    /// `other` is the result of a failure that says nothing about the step itself.
    init(_ failure: Failure, else other: PassResult) {
        if let reason = failure["reason"]?.string.flatMap({ PassResult(rawValue: $0) }) {
            self = reason
            return
        }
        switch failure.keyCode {
        case .endpoint, .deviceNotEligible, .storageUnreadable, .tpmUnavailable, .tpmLocked, .incompatible:
            self = .controllerNotBound
        case .parameter, .notSupported: self = .configInvalid
        case .internalError, .busy, .deviceSetupFailed, .deviceSetupRetry, .communicationFailed, .communicationRetry,
            .invitationInvalid, .invitationForeign, .keyNotFound, .keyUnfit, .full:
            self = other
        }
    }
}
