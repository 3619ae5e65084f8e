// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Credentials
import Crypto
import Server
import Text
import Vault
import Wire

/// The endpoint of a user, and the keys that an issuer enrols.
extension KeyFeature {
    var endpointCommands: [CommandSpec] {
        [
            command("START", { _ in }) { feature, uid, _ throws(KeyFailure) in
                StartedContent(isSetUp: try await feature.endpoint(uid) != nil)
            },
            command("GET_ENDPOINT", { _ in }) { feature, uid, _ throws(KeyFailure) in
                guard let endpoint = try await feature.endpoint(uid) else { return EndpointContent(facts: nil) }
                let (keys, count) = try await feature.vaulted { vault throws(VaultError) in
                    (try await vault.keys(of: uid), try await vault.dataCount(of: uid))
                }
                return EndpointContent(facts: .init(endpoint: endpoint, keys: keys.count, dataCount: count))
            },
            command("SETUP_ENDPOINT", Invitation.init) { feature, uid, invitation throws(KeyFailure) in
                try await feature.alone(uid) { () throws(KeyFailure) in
                    let endpoint = try await feature.vaulted { vault throws(VaultError) in try await vault.setUp(uid) }
                    guard let text = invitation.text else { return EndpointSetupContent(id: endpoint.id, key: nil) }
                    let key = try await feature.redeem(text, uid)
                    return EndpointSetupContent(id: endpoint.id, key: feature.view(key))
                }
            },
            command("UPDATE_ENDPOINT", { _ in }) { feature, uid, _ throws(KeyFailure) in
                try await feature.alone(uid) { () throws(KeyFailure) in try await feature.update(uid) }
            },
            command(
                "REMOVE_ENDPOINT",
                { arguments throws(KeyFailure) in
                    guard try arguments.flag("confirm") == true else {
                        throw KeyArguments.invalid("confirm", "true: all keys and data of this user are deleted")
                    }
                }
            ) { feature, uid, _ throws(KeyFailure) in
                try await feature.alone(uid) { () throws(KeyFailure) in
                    try await feature.vaulted { vault throws(VaultError) in try await vault.removeAll(of: uid) }
                    return EndpointTerminatedContent()
                }
            },
        ]
    }

    struct Invitation: Sendable {
        let text: String?

        init(_ arguments: KeyArguments) throws(KeyFailure) {
            text = try arguments.text("invitation", limit: Enrolment.maximumCount)
        }
    }

    private func endpoint(_ uid: UInt32) async throws(KeyFailure) -> Vault.Endpoint? {
        try await vaulted { vault throws(VaultError) in try await vault.endpoint(of: uid) }
    }

    // MARK: Invitations

    /// Gets a key for an invitation: a code, an address of the issuer, or an enrolment file. The same invitation gives
    /// the same key again.
    private func redeem(_ invitation: String, _ uid: UInt32) async throws(KeyFailure) -> KeyRecord {
        if invitation.contains("."), !invitation.contains("/") {
            let file = try issuer.read(invitation.utf8)
            guard file.key == nil else { return try await install(file, uid) }
            return try await install(file, for: try await invitedKey(Self.name(of: file), uid), uid)
        }
        let code = try issuer.code(in: invitation)
        let key = try await invitedKey(code, uid)
        do throws(KeyFailure) {
            let proof = try await proof(of: key, uid, nonce: nil)
            let file = try await withIssuer { connection throws(KeyFailure) in
                try await issuer.redeem(code, proof: proof, connection)
            }
            guard file.invitation == nil || file.invitation == code, file.key == nil || file.key == key.thumbprint
            else { throw KeyFailure(.deviceSetupRetry, "the issuer has sent the file of another invitation") }
            return try await install(file, for: key, uid)
        } catch {
            if key.pendingUntil != nil, [.invitationInvalid, .invitationForeign].contains(error.name) {
                // The invitation is refused for good, so nothing would complete this key.
                try? await vault.delete(key.id, of: uid)
            }
            throw error
        }
    }

    /// The name that replaces the code if the invitation is a file.
    private static func name(of file: Enrolment) -> String {
        file.invitation ?? "\(Hex.encode(file.issuerFingerprint.prefix(8)))/\(file.serial)/\(file.label)"
    }

    /// Returns the key that was made for an invitation, or makes one. A new key is saved before it is returned.
    private func invitedKey(_ name: String, _ uid: UInt32) async throws(KeyFailure) -> KeyRecord {
        let end = vault.now() + Vault.pendingTime
        return try await vaulted { vault throws(VaultError) in
            if let known = try await vault.keys(of: uid).first(where: { $0.invitation == name }) { return known }
            return try await vault.makeKey(of: uid, origin: .invitation) { key in
                (key.invitation, key.pendingUntil) = (name, end)
            }
        }
    }

    /// Proves that this user has a key: a JWS by the key with its public part.
    func proof(of key: KeyRecord, _ uid: UInt32, nonce: String?) async throws(KeyFailure) -> String {
        guard let publicKey = key.publicKey else { throw KeyFailure(.keyUnfit, "the key cannot sign") }
        guard let endpoint = try await endpoint(uid) else { throw KeyFailure(VaultError.notSetUp) }
        let signer = try await vaulted { vault throws(VaultError) in try await vault.signingKey(key.id, of: uid) }
        do {
            let nonce = try nonce ?? Hex.encode(Random.bytes(16))
            let numbers = CredentialNumber.views(of: publicKey).map { number in
                JSON.object([
                    .init("bits", .number(String(number.bits))), .init("hex", .string(number.hex)),
                    .init("decimal", .string(number.decimal)),
                ])
            }
            let payload = JSON.object([
                .init("version", .number("1")), .init("keyType", .string("P-256")),
                .init("publicKey", .string(Hex.encode(publicKey))),
                .init("numbers", .array(numbers)), .init("nonce", .string(nonce)),
                .init("deviceId", .string(endpoint.id)), .init("protection", .string(key.protection.rawValue)),
            ])
            return try await SignedText.make(type: "badged-key", payload, publicKey: publicKey) { digest in
                try await signer.sign(digest: digest)
            }
        } catch let error as VaultError {
            throw KeyFailure(error)
        } catch {
            throw KeyFailure(.internalError, "cannot sign: \(error)")
        }
    }

    // MARK: Enrolment files

    /// Applies a file to the key of its thumbprint.
    func install(_ file: Enrolment, _ uid: UInt32) async throws(KeyFailure) -> KeyRecord {
        let keys = try await vaulted { vault throws(VaultError) in try await vault.keys(of: uid) }
        guard let thumbprint = file.key, let key = keys.first(where: { $0.thumbprint == thumbprint }) else {
            throw KeyFailure(.deviceSetupFailed, "the enrolment file is for a key that this user does not have")
        }
        return try await install(file, for: key, uid)
    }

    private func install(_ file: Enrolment, for key: KeyRecord, _ uid: UInt32) async throws(KeyFailure) -> KeyRecord {
        try await vaulted { vault throws(VaultError) in
            try await vault.change(key.id, of: uid) { key in
                if let refusal = Self.refusal(of: file, for: key) { return refusal }
                guard file.serial > key.serial else { return nil }
                let wasPending = key.pendingUntil != nil
                key.pendingUntil = nil
                if wasPending { key.isActive = true }
                file.apply(to: &key)
                return nil
            }
        }
    }

    private nonisolated static func refusal(of file: Enrolment, for key: KeyRecord) -> VaultError? {
        guard key.issuerFingerprint.isEmpty || key.issuerFingerprint == file.issuerFingerprint else {
            return .unfit("the key belongs to another issuer")
        }
        guard file.serial >= key.serial else { return .unfit("the enrolment file is older than the one that is known") }
        return nil
    }

    /// Runs `body` with a connection to the issuer, within one time limit for all requests.
    func withIssuer<Value: Sendable>(
        _ body: @Loop (Issuer.Connection) async throws(KeyFailure) -> Value
    ) async throws(KeyFailure) -> Value {
        guard let connection = issuer.connect() else {
            throw KeyFailure(.notSupported, "closedService: no issuer is configured; set [keys] issuer")
        }
        let alarm = Loop.Alarm { connection.close() }
        alarm.set(after: Int64(issuer.settings.timeout / .milliseconds(1)))
        defer {
            alarm.cancel()
            connection.close()
        }
        return try await body(connection)
    }

    /// Compares all key pairs with the issuer.
    private func update(_ uid: UInt32) async throws(KeyFailure) -> EndpointUpdatedContent {
        let start = ContinuousClock.now
        let keys = try await vaulted { vault throws(VaultError) in try await vault.keys(of: uid) }
        var summary = EndpointUpdatedContent()
        try await withIssuer { connection throws(KeyFailure) in
            for key in keys where key.pendingUntil == nil && !key.isRevoked {
                guard let thumbprint = key.thumbprint,
                    let file = try await issuer.enrolment(of: thumbprint, connection), file.key == thumbprint,
                    Self.refusal(of: file, for: key) == nil, file.serial > key.serial
                else { continue }
                _ = try await install(file, for: key, uid)
                summary.count(file, wasEnrolled: key.serial > 0)
            }
        }
        try await vaulted { vault throws(VaultError) in try await vault.synchronized(uid) }
        summary.duration = .now - start
        return summary
    }
}

// MARK: Messages

/// The answer to GET_ENDPOINT.
struct EndpointContent: KeyContent {
    static let name: StaticString = "ENDPOINT"

    struct Facts: Sendable {
        let endpoint: Vault.Endpoint
        let keys: Int
        let dataCount: Int
    }

    /// nil: the user has no endpoint.
    let facts: Facts?

    func write(to object: inout JSONWriter) {
        object.member("setUp", facts != nil)
        object.member("id", facts?.endpoint.id)
        object.member("environment", "local")
        object.member("keys", facts?.keys ?? 0)
        object.member("maximumKeys", Vault.maximumKeys)
        object.member("bytesUsed", facts?.dataCount ?? 0)
        object.member("bytesPerKey", Vault.maximumData)
        object.member("lastSync", facts?.endpoint.lastSync.map { DateText.text($0) })
        object.member("sealed", true)
    }
}

/// The answer to SETUP_ENDPOINT.
struct EndpointSetupContent: KeyContent {
    static let name: StaticString = "ENDPOINT_SETUP"
    let id: String
    /// The key of the invitation.
    let key: KeyView?

    func write(to object: inout JSONWriter) {
        object.member("ok", true)
        object.member("id", id)
        if let key { object.object("key") { key.write(to: &$0) } }
    }
}

/// The answer to UPDATE_ENDPOINT.
struct EndpointUpdatedContent: KeyContent {
    static let name: StaticString = "ENDPOINT_UPDATED"
    var (issued, updated, revoked) = (0, 0, 0)
    var duration = Duration.zero

    mutating func count(_ file: Enrolment, wasEnrolled: Bool) {
        if file.isRevoked {
            revoked += 1
        } else if wasEnrolled {
            updated += 1
        } else {
            issued += 1
        }
    }

    func write(to object: inout JSONWriter) {
        object.member("issued", issued)
        object.member("updated", updated)
        object.member("revoked", revoked)
        object.member("durationMs", Int(duration / .milliseconds(1)))
    }
}

/// The answer to REMOVE_ENDPOINT.
struct EndpointTerminatedContent: KeyContent {
    static let name: StaticString = "ENDPOINT_TERMINATED"

    func write(to object: inout JSONWriter) {}
}
