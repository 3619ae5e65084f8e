// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import Host
import Secrets
package import Server
import Store
import Text
package import Vault
import Wire

/// Keeps keys for doors and one-time codes, and enrols them with an issuer. docs/protocol/keys.md.
@Loop package final class KeyFeature: Feature {
    let vault: Vault
    let issuer: Issuer
    /// The users of the system with whose endpoint a dialogue runs.
    private var busy: Set<UInt32> = []

    package init(_ vault: Vault, _ issuer: IssuerSettings) {
        self.vault = vault
        self.issuer = Issuer(issuer)
    }

    package var commands: [CommandSpec] {
        keyCommands + codeCommands + endpointCommands + walletCommands
    }

    // MARK: Commands

    /// A command that is answered after work with the vault.
    func command<Prepared: Sendable, Content: KeyContent>(
        _ name: String,
        _ prepare: @escaping @Loop (KeyArguments) throws(KeyFailure) -> Prepared,
        _ perform: @escaping @Loop (KeyFeature, UInt32, Prepared) async throws(KeyFailure) -> Content
    ) -> CommandSpec {
        CommandSpec(name, permission: .keys) { [unowned self] session, command in
            do throws(KeyFailure) {
                let prepared = try prepare(KeyArguments(command: command))
                let uid = try Self.uid(of: session)
                session.answerLater(to: command) { [self] in
                    let result: Result<Content, KeyFailure>
                    do throws(KeyFailure) {
                        result = .success(try await perform(self, uid, prepared))
                    } catch {
                        log(session, name, error)
                        result = .failure(error)
                    }
                    return KeyAnswer(result: result, storage: try? await vault.keySource())
                }
            } catch {
                session.answer(KeyAnswer<Content>(result: .failure(error), storage: nil), to: command)
            }
            return .answered
        }
    }

    static func uid(of session: Session) throws(KeyFailure) -> UInt32 {
        guard let uid = session.uid else {
            throw KeyFailure(.internalError, "the kernel does not report the user of this client")
        }
        return uid
    }

    func log(_ session: Session, _ name: String, _ failure: KeyFailure) {
        session.server.log(.notice, "\(session.name): \(name) ended, \(failure.name.rawValue): \(failure.text)")
    }

    func storage() async throws(KeyFailure) -> StoreKeySource {
        try await vaulted { vault throws(VaultError) in try await vault.keySource() }
    }

    /// Works with the vault.
    func vaulted<Value: Sendable>(
        _ body: @Loop (Vault) async throws(VaultError) -> Value
    ) async throws(KeyFailure) -> Value {
        do throws(VaultError) {
            return try await body(vault)
        } catch {
            throw KeyFailure(error)
        }
    }

    /// Runs a dialogue with the endpoint of a user, while no other one runs.
    func alone<Value: Sendable>(
        _ uid: UInt32,
        _ body: @Loop () async throws(KeyFailure) -> Value
    ) async throws(KeyFailure) -> Value {
        guard busy.insert(uid).inserted else {
            throw KeyFailure(.busy, "another command for this endpoint is running: wait until it has ended")
        }
        defer { busy.remove(uid) }
        return try await body()
    }

    func view(_ key: KeyRecord) -> KeyView { KeyView(key: key, now: vault.now()) }

    // MARK: Keys

    private var keyCommands: [CommandSpec] {
        [
            command("GET_KEYS", { _ in }) { feature, uid, _ throws(KeyFailure) in
                let keys = try await feature.vaulted { vault throws(VaultError) in try await vault.keys(of: uid) }
                return KeysContent(keys: keys.map { feature.view($0) })
            },
            command("NEW_KEY", NewKey.init) { feature, uid, new throws(KeyFailure) in
                KeyContentMessage(key: feature.view(try await feature.make(new, uid)))
            },
            activation("ACTIVATE_KEY", true),
            activation("DEACTIVATE_KEY", false),
            command("DELETE_KEY", { arguments throws(KeyFailure) in try arguments.key() }) {
                feature,
                uid,
                id throws(KeyFailure) in
                try await feature.vaulted { vault throws(VaultError) in try await vault.delete(id, of: uid) }
                return KeyDeletedContent(id: id)
            },
            command("EXPORT_KEY", { arguments throws(KeyFailure) in try arguments.key() }) {
                feature,
                uid,
                id throws(KeyFailure) in
                let key = try await feature.vaulted { vault throws(VaultError) in try await vault.key(id, of: uid) }
                guard let publicKey = key.publicKey else {
                    throw KeyFailure(.keyUnfit, "a secret for one-time codes is not exported")
                }
                return KeyExportContent(id: id, publicKey: publicKey, label: key.label)
            },
            command("IMPORT_SITE", SiteToImport.init) { feature, uid, site throws(KeyFailure) in
                try await feature.add(site, uid)
            },
            command("GET_LAST_AUTH", { _ in }) { feature, uid, _ throws(KeyFailure) in
                LastAuthContent(
                    last: try await feature.vaulted { vault throws(VaultError) in
                        try await vault.lastAuthentication(of: uid)
                    }
                )
            },
        ]
    }

    private func activation(_ name: String, _ isActive: Bool) -> CommandSpec {
        command(name, { arguments throws(KeyFailure) in try arguments.key() }) { feature, uid, id throws(KeyFailure) in
            let key = try await feature.vaulted { vault throws(VaultError) in
                try await vault.activate(id, isActive, of: uid)
            }
            return KeyContentMessage(key: feature.view(key))
        }
    }

    /// The members of NEW_KEY.
    struct NewKey: Sendable {
        let label: String
        let cardNumber: String
        let isActive: Bool
        /// nil: a key pair.
        let codes: (settings: OneTimeCodes, secret: SecretBox, counter: UInt64)?

        init(_ arguments: KeyArguments) throws(KeyFailure) {
            label = try arguments.text("label", limit: KeyRecord.maximumLabel) ?? ""
            cardNumber = try arguments.text("cardNumber", limit: 128) ?? ""
            isActive = try arguments.flag("active") ?? true
            switch try arguments.text("protocol", limit: 16) ?? "pkoc" {
            case "pkoc": codes = nil
            case "otp":
                guard let kind = OneTimeCodes.Kind(rawValue: try arguments.text("type", limit: 8) ?? "hotp") else {
                    throw KeyArguments.invalid("type", "hotp or totp")
                }
                guard let algorithm = DigestAlgorithm(name: try arguments.text("algorithm", limit: 8) ?? "SHA1"),
                    let settings = OneTimeCodes(
                        kind: kind,
                        digits: try arguments.number("digits", in: 6...8) ?? 6,
                        algorithm: algorithm,
                        period: try arguments.number("period", in: 5...300) ?? 30
                    )
                else { throw KeyArguments.invalid("algorithm", "SHA1, SHA256 or SHA512") }
                let counter = try arguments.number("counter", in: 0...Int.max) ?? 0
                codes = (settings, try arguments.codeSecret(), UInt64(counter))
            default: throw KeyArguments.invalid("protocol", "pkoc or otp")
            }
        }

        func prepare(_ key: inout KeyRecord) {
            (key.label, key.cardNumber, key.isActive) = (label, cardNumber, isActive)
        }
    }

    private func make(_ new: NewKey, _ uid: UInt32) async throws(KeyFailure) -> KeyRecord {
        try await vaulted { vault throws(VaultError) in
            guard let codes = new.codes else {
                return try await vault.makeKey(of: uid, origin: .created, prepare: new.prepare)
            }
            return try await vault.addCodes(
                codes.settings,
                secret: codes.secret,
                counter: codes.counter,
                of: uid,
                prepare: new.prepare
            )
        }
    }

    /// The members of IMPORT_SITE.
    struct SiteToImport: Sendable {
        /// nil: the only key pair of the user.
        let key: String?
        let code: ReaderCode

        init(_ arguments: KeyArguments) throws(KeyFailure) {
            key = arguments.command.isPresent("key") ? try arguments.key() : nil
            guard let text = try arguments.text("qr", limit: ReaderCode.maximumCount),
                let code = ReaderCode(text.utf8)
            else {
                throw KeyArguments.invalid("qr", "the text of the QR code of a reader: siteUuid, readerUuid, publicKey")
            }
            self.code = code
        }
    }

    private func add(_ new: SiteToImport, _ uid: UInt32) async throws(KeyFailure) -> SiteImportedContent {
        let id: String
        if let key = new.key {
            id = key
        } else {
            let keys = try await vaulted { vault throws(VaultError) in try await vault.keys(of: uid) }
            let pairs = keys.filter { $0.publicKey != nil && !$0.isRevoked && $0.pendingUntil == nil }
            guard let only = pairs.first, pairs.count == 1 else {
                throw KeyFailure(.keyNotFound, "name the key in the member key: there are \(pairs.count) keys")
            }
            id = only.id
        }
        let code = new.code
        _ = try await vaulted { vault throws(VaultError) in
            try await vault.change(id, of: uid) { key in key.add(code) }
        }
        return SiteImportedContent(id: id, code: code)
    }

    // MARK: One-time codes and data

    private var codeCommands: [CommandSpec] {
        [
            command("GET_OTP", { arguments throws(KeyFailure) in try arguments.key() }) {
                feature,
                uid,
                id throws(KeyFailure) in
                let code = try await feature.vaulted { vault throws(VaultError) in try await vault.code(id, of: uid) }
                return OTPContent(id: id, code: code, now: feature.vault.now())
            },
            command("GET_OTP_COUNTER", { arguments throws(KeyFailure) in try arguments.key() }) {
                feature,
                uid,
                id throws(KeyFailure) in
                let counter = try await feature.vaulted { vault throws(VaultError) in
                    try await vault.counter(id, of: uid)
                }
                return OTPCounterContent(id: id, counter: counter)
            },
            command("GET_DATA", { arguments throws(KeyFailure) in (try arguments.key("oid"), try arguments.tag()) }) {
                feature,
                uid,
                object throws(KeyFailure) in
                let (id, tag) = object
                let box = try await feature.vaulted { vault throws(VaultError) in
                    try await vault.data(tag, key: id, of: uid)
                }
                guard let data = box?.take() else { return DataContent(id: id, tag: tag, data: nil) }
                return DataContent(id: id, tag: tag, data: data.withBytes { Array($0) })
            },
            command("PUT_DATA", DataToKeep.init) { feature, uid, object throws(KeyFailure) in
                try await feature.vaulted { vault throws(VaultError) in
                    try await vault.setData(object.content, object.tag, key: object.id, of: uid)
                }
                return DataContent(id: object.id, tag: object.tag, data: nil)
            },
        ]
    }

    /// The members of PUT_DATA.
    struct DataToKeep: Sendable {
        let id: String
        let tag: DataTag
        let content: SecretBox

        init(_ arguments: KeyArguments) throws(KeyFailure) {
            (id, tag) = (try arguments.key("oid"), try arguments.tag())
            content = try arguments.bytes("data", limit: Vault.maximumData)
        }
    }
}

extension KeyRecord {
    /// Adds a reader, and its site if it is new. A known key of a reader is not replaced.
    fileprivate mutating func add(_ code: ReaderCode) -> VaultError? {
        guard publicKey != nil else { return .unfit("the key opens no readers") }
        guard let index = sites.firstIndex(where: { $0.id == code.site }) else {
            guard sites.count < Site.maximumNumber else {
                return .full("a key can have at most \(Site.maximumNumber) sites")
            }
            sites.append(Site(id: code.site, publicKey: code.publicKey, readers: [code.reader]))
            return nil
        }
        guard sites[index].publicKey == code.publicKey else {
            return .unfit("this site is known with another public key: ask the operator of the site")
        }
        guard !sites[index].readers.isEmpty, !sites[index].readers.contains(code.reader) else { return nil }
        guard sites[index].readers.count < Site.maximumReaders else {
            return .full("a site can have at most \(Site.maximumReaders) readers")
        }
        sites[index].readers.append(code.reader)
        return nil
    }
}
