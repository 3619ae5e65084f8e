// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Host
import Server
import Text
import Vault

/// The endpoint of a user, and the keys that an issuer enrols.
extension KeyFeature {
    func start(_ call: Call) async throws(Failure) -> Reply {
        let isSetUp = try await vault.endpoint(of: try await user(call))?.isPending == false
        return try await reply(call) { $0.member("setUp", isSetUp) }
    }

    func endpoint(_ call: Call) async throws(Failure) -> Reply {
        let uid = try await user(call)
        var endpoint = try await vault.endpoint(of: uid)
        var (keys, dataCount) = (0, 0)
        if endpoint?.isPending == false {
            keys = try await vault.keys(of: uid).count
            dataCount = try await vault.dataCount(of: uid)
        } else {
            endpoint = nil
        }
        let (found, keyCount, byteCount) = (endpoint, keys, dataCount)
        return try await reply(call) { object in
            object.member("setUp", found != nil)
            object.member("id", found?.id)
            object.member("environment", "local")
            object.member("keys", keyCount)
            object.member("maximumKeys", Vault.maximumKeys)
            object.member("bytesUsed", byteCount)
            object.member("bytesPerKey", Vault.maximumData)
            object.member("lastSync", found?.lastSync.map { DateText.text($0) })
            object.member("sealed", true)
        }
    }

    func setUp(_ call: Call) async throws(Failure) -> Reply {
        let invitation = try call.arguments.optionalText("invitation", 0...Enrolment.maximumCount)
        let uid = try await user(call)
        return try await alone(uid) { () throws(Failure) in
            // An invitation completes the setup with its key, so a failure leaves no endpoint.
            let endpoint = try await vault.setUp(uid, isPending: invitation != nil)
            var key: KeyView?
            if let invitation { key = view(try await redeem(invitation, uid)) }
            let view = key
            return try await reply(call) { object in
                object.member("ok", true)
                object.member("id", endpoint.id)
                if let view { object.object("key") { view.write(to: &$0) } }
            }
        }
    }

    func update(_ call: Call) async throws(Failure) -> Reply {
        let uid = try await readableOwner(call)
        return try await alone(uid) { () throws(Failure) in
            let summary = try await update(uid)
            return try await reply(call) { summary.write(to: &$0) }
        }
    }

    func remove(_ call: Call) async throws(Failure) -> Reply {
        let form = "true: all keys and data of this user are deleted"
        try call.arguments.required("confirm", form) { $0 == .bool(true) ? () : nil }
        let uid = try await user(call)
        return try await alone(uid) { () throws(Failure) in
            try await vault.removeAll(of: uid)
            return try await reply(call) { _ in }
        }
    }

    // MARK: Invitations

    /// Gets a key for an invitation: a code, an address of the issuer, or an enrolment file. The same invitation gives
    /// the same key again.
    private func redeem(_ invitation: String, _ uid: UInt32) async throws(Failure) -> KeyRecord {
        if invitation.contains("."), !invitation.contains("/") {
            let file = try issuer.read(invitation.utf8)
            guard file.key == nil else { return try await install(file, uid) }
            return try await install(file, for: try await invitedKey(Self.name(of: file), uid), uid)
        }
        let code = try issuer.code(in: invitation)
        let key = try await invitedKey(code, uid)
        do throws(Failure) {
            let proof = try await proof(of: key, uid, nonce: nil)
            let file = try await withIssuer { connection throws(Failure) in
                try await issuer.redeem(code, proof: proof, connection)
            }
            guard file.invitation == nil || file.invitation == code, file.key == nil || file.key == key.thumbprint
            else { throw Failure(.deviceSetupRetry, "the issuer has sent the file of another invitation") }
            return try await install(file, for: key, uid)
        } catch {
            if key.pendingUntil != nil, [.invitationInvalid, .invitationForeign].contains(error.keyCode) {
                // The invitation is refused permanently, so this key would never be completed.
                do throws(Failure) {
                    try await vault.delete(key.id, of: uid)
                } catch {
                    Log.warning("the key of a refused invitation stays in the store: \(error.logText)")
                }
            }
            throw error
        }
    }

    /// The name that replaces the code if the invitation is a file.
    private static func name(of file: Enrolment) -> String {
        file.invitation ?? "\(Hex.encode(file.issuerFingerprint.prefix(8)))/\(file.serial)/\(file.label)"
    }

    /// Returns the key that was made for an invitation, or makes one. A new key is saved before it is returned.
    private func invitedKey(_ name: String, _ uid: UInt32) async throws(Failure) -> KeyRecord {
        let end = vault.now() + Vault.pendingTime
        if let known = try await vault.keys(of: uid).first(where: { $0.invitation == name }) { return known }
        return try await vault.makeKey(of: uid, origin: .invitation) { key in
            key.invitation = name
            key.pendingUntil = end
        }
    }

    /// Proves that this user has a key: a JWS by the key with its public part.
    func proof(of key: KeyRecord, _ uid: UInt32, nonce: String?) async throws(Failure) -> String {
        guard let publicKey = key.publicKey else { throw Failure(.keyUnfit, "the key cannot sign") }
        guard let endpoint = try await vault.endpoint(of: uid) else { throw .notSetUp }
        let signer = try await vault.signingKey(key.id, of: uid)
        let random = try cryptography(Random.bytes(16))
        let numbers = CredentialNumber.views(of: publicKey).map { number in
            JSON.object([
                .init("bits", .number(String(number.bits))), .init("hex", .string(number.hex)),
                .init("decimal", .string(number.decimal)),
            ])
        }
        let payload = JSON.object([
            .init("version", .number("1")), .init("keyType", .string("P-256")),
            .init("publicKey", .string(Hex.encode(publicKey))),
            .init("numbers", .array(numbers)), .init("nonce", .string(nonce ?? Hex.encode(random))),
            .init("deviceId", .string(endpoint.id)), .init("protection", .string(key.protection.rawValue)),
        ])
        return try await SignedText.make(type: "badged-key", payload, key: signer)
    }

    // MARK: Enrolment files

    /// Applies a file to the key of its thumbprint.
    func install(_ file: Enrolment, _ uid: UInt32) async throws(Failure) -> KeyRecord {
        let keys = try await vault.keys(of: uid)
        guard let thumbprint = file.key, let key = keys.first(where: { $0.thumbprint == thumbprint }) else {
            throw Failure(.deviceSetupFailed, "the enrolment file is for a key that this user does not have")
        }
        return try await install(file, for: key, uid)
    }

    private func install(_ file: Enrolment, for key: KeyRecord, _ uid: UInt32) async throws(Failure) -> KeyRecord {
        try await vault.change(key.id, of: uid, completesSetUp: true) { key throws(Failure) in
            try Self.check(file, for: key)
            guard file.serial > key.serial else { return }
            if key.pendingUntil != nil { key.isActive = true }
            key.pendingUntil = nil
            file.apply(to: &key)
        }
    }

    private nonisolated static func check(_ file: Enrolment, for key: KeyRecord) throws(Failure) {
        guard key.issuerFingerprint.isEmpty || key.issuerFingerprint == file.issuerFingerprint else {
            throw .unfit("the key belongs to another issuer")
        }
        guard file.serial >= key.serial else { throw .unfit("the enrolment file is older than the one that is known") }
    }

    /// Runs `body` with a connection to the issuer, within one time limit for all requests.
    func withIssuer<Value: Sendable>(
        _ body: @Loop (Issuer.Connection) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard let connection = issuer.connect() else {
            throw Failure.closedService(Phrase("no issuer is configured; set [keys] issuer"))
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
    private func update(_ uid: UInt32) async throws(Failure) -> UpdateSummary {
        let start = ContinuousClock.now
        let keys = try await vault.keys(of: uid)
        var summary = UpdateSummary()
        try await withIssuer { connection throws(Failure) in
            for key in keys where key.pendingUntil == nil && !key.isRevoked {
                guard let thumbprint = key.thumbprint,
                    let file = try await issuer.enrolment(of: thumbprint, connection), file.key == thumbprint,
                    (try? Self.check(file, for: key)) != nil, file.serial > key.serial
                else { continue }
                _ = try await install(file, for: key, uid)
                summary.count(file, wasEnrolled: key.serial > 0)
            }
        }
        try await vault.synchronized(uid)
        summary.duration = .now - start
        return summary
    }
}

/// What UPDATE_ENDPOINT has changed.
private struct UpdateSummary {
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
