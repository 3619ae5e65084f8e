// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import Host
package import Server
import Store
import Text
package import Vault

/// Keeps keys for doors and one-time codes, and enrols them with an issuer. docs/protocol/keys.md.
@Loop package final class KeyFeature: Feature {
    let vault: Vault
    let issuer: Issuer
    /// The users of the system with whose endpoint a dialogue runs.
    private var busy: Set<UInt32> = []
    /// Where the key of the store comes from; nil: the store was not opened yet.
    private var storage: StoreKeySource?

    package init(_ vault: Vault, _ issuer: IssuerSettings) {
        self.vault = vault
        self.issuer = Issuer(issuer)
    }

    package var commands: [CommandSpec] {
        [
            command("START", "STARTED", start),
            command("GET_ENDPOINT", "ENDPOINT", endpoint),
            command("SETUP_ENDPOINT", "ENDPOINT_SETUP", setUp),
            command("UPDATE_ENDPOINT", "ENDPOINT_UPDATED", update),
            command("REMOVE_ENDPOINT", "ENDPOINT_TERMINATED", remove),
            command("GET_KEYS", "KEYS", keys),
            command("NEW_KEY", "KEY", newKey),
            command("ACTIVATE_KEY", "KEY") { [self] call throws(Failure) in try await activate(call, true) },
            command("DEACTIVATE_KEY", "KEY") { [self] call throws(Failure) in try await activate(call, false) },
            command("DELETE_KEY", "KEY_DELETED", deleteKey),
            command("EXPORT_KEY", "KEY_EXPORT", exportKey),
            command("IMPORT_SITE", "SITE_IMPORTED", importSite),
            command("GET_LAST_AUTH", "LAST_AUTH", lastAuthentication),
            command("GET_OTP", "OTP", oneTimeCode),
            command("GET_OTP_COUNTER", "OTP_COUNTER", counter),
            command("GET_DATA", "DATA", data),
            command("PUT_DATA", "DATA", putData),
            // They are about passes; a wallet is something else in badged.
            command("PASS_CHECK", alias: "WALLET_CHECK", "WALLET_ELIGIBLE", checkPasses) { failure, storage, object in
                Self.write(nil, unreadable: [], failure, storage, to: &object)
            },
            command("PASS_PREPARE", alias: "WALLET_PREPARE", "WALLET_ERROR", preparePass) {
                Self.write($0, reason: PassResult($0, else: .errorGeneratingProvisioningBlob), $1, to: &$2)
            },
            command("PASS_SAVE", alias: "WALLET_SAVE", "WALLET_ERROR", savePass) {
                Self.write($0, reason: PassResult($0, else: .provisioningError), $1, to: &$2)
            },
        ]
    }

    /// Writes a failure, and where the key of the store comes from.
    private typealias Refusal = @Loop (Failure, StoreKeySource?, inout JSONWriter) -> Void

    private func command(
        _ name: String,
        alias: String? = nil,
        _ answer: StaticString,
        _ method: @escaping CommandSpec.AsyncMethod,
        refusal: @escaping Refusal = { KeyFeature.write($0, reason: nil, $1, to: &$2) }
    ) -> CommandSpec {
        let refuse: CommandSpec.Refusal = { [self] failure, _ in
            let isArgument = failure.code == .wrongArgument || failure.code == .missingArgument
            // A command with a wrong argument does not open the store.
            let storage = isArgument ? nil : storage
            return Reply(answer) { refusal(failure, storage, &$0) }
        }
        return CommandSpec(
            name,
            aliases: alias.map { [$0] } ?? [],
            answer,
            permission: .keys,
            refusal: refuse,
            method
        )
    }

    private static func write(
        _ failure: Failure,
        reason: PassResult?,
        _ storage: StoreKeySource?,
        to object: inout JSONWriter
    ) {
        if let reason { object.member("reason", reason.rawValue) }
        failure.write(to: &object)
        if let storage { object.member("storage", storage.rawValue) }
    }

    /// Writes the answer of a command, and where the key of the store comes from.
    func reply(_ call: Call, _ body: @escaping (inout JSONWriter) -> Void) async throws(Failure) -> Reply {
        let source = try await vault.keySource()
        return call.reply { object in
            body(&object)
            object.member("storage", source.rawValue)
        }
    }

    /// The user of a command, when the store is open.
    func user(_ call: Call) async throws(Failure) -> UInt32 {
        let uid = try call.uid
        storage = try await vault.keySource()
        return uid
    }

    /// The user of a command that needs an endpoint. Fails while the setup of the endpoint is pending; the vault
    /// refuses what needs an endpoint if there is none.
    func owner(_ call: Call) async throws(Failure) -> UInt32 {
        let uid = try await user(call)
        guard try await vault.isPending(uid) else { return uid }
        throw busy.contains(uid) ? Self.isBusy : .notSetUp
    }

    /// The user of a command that adds something to the endpoint. While its record is damaged nothing is added: only
    /// REMOVE_ENDPOINT helps, which deletes everything.
    func readableOwner(_ call: Call) async throws(Failure) -> UInt32 {
        let uid = try await owner(call)
        guard try await vault.endpoint(of: uid) != nil else { throw .notSetUp }
        return uid
    }

    /// Runs a dialogue with the endpoint of a user, while no other one runs.
    func alone<Value: Sendable>(
        _ uid: UInt32,
        _ body: @Loop () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard busy.insert(uid).inserted else {
            throw Self.isBusy
        }
        defer { busy.remove(uid) }
        return try await body()
    }

    private static let isBusy = Failure(
        .busy,
        "another command for this endpoint is running: wait until it has ended"
    )

    func view(_ key: KeyRecord) -> KeyView { KeyView(key: key, now: vault.now()) }

    private func reply(_ call: Call, _ key: KeyRecord) async throws(Failure) -> Reply {
        let view = view(key)
        return try await reply(call) { view.write(to: &$0) }
    }

    // MARK: Keys

    private func keys(_ call: Call) async throws(Failure) -> Reply {
        let list = try await vault.keyList(of: try await owner(call))
        let views = list.keys.map { view($0) }
        return try await reply(call) { object in
            object.array("keys", views) { list, key in list.object { key.write(to: &$0) } }
            object.member("unreadable", list.unreadable)
        }
    }

    private func newKey(_ call: Call) async throws(Failure) -> Reply {
        let new = try NewKey(call.arguments)
        return try await reply(call, try await make(new, try await readableOwner(call)))
    }

    private func activate(_ call: Call, _ isActive: Bool) async throws(Failure) -> Reply {
        let id = try call.arguments.key()
        return try await reply(call, try await vault.activate(id, isActive, of: try await owner(call)))
    }

    private func deleteKey(_ call: Call) async throws(Failure) -> Reply {
        let id = try call.arguments.key()
        try await vault.delete(id, of: try await owner(call))
        return try await reply(call) { $0.member("id", id) }
    }

    private func exportKey(_ call: Call) async throws(Failure) -> Reply {
        let id = try call.arguments.key()
        let key = try await vault.key(id, of: try await owner(call))
        guard let publicKey = key.publicKey else {
            throw Failure(.keyUnfit, "a secret for one-time codes is not exported")
        }
        return try await reply(call) { KeyExport.write(id, publicKey, key.label, to: &$0) }
    }

    private func importSite(_ call: Call) async throws(Failure) -> Reply {
        let site = try SiteToImport(call.arguments)
        let id = try await add(site, try await readableOwner(call))
        return try await reply(call) { object in
            object.member("id", id)
            object.member("siteId", Hex.encode(site.code.site))
            object.member("reader", Hex.encode(site.code.reader))
            object.member("publicKey", Hex.encode(site.code.publicKey))
            object.member("fingerprint", Hex.encode(PublicKeyText.fingerprint(site.code.publicKey)))
        }
    }

    private func lastAuthentication(_ call: Call) async throws(Failure) -> Reply {
        let last = try await vault.lastAuthentication(of: try await owner(call))
        return try await reply(call) { object in
            object.member("key", last?.key)
            object.member("counter", last?.counter ?? 0)
            object.member("modified", last?.isModified ?? false)
            object.member("time", last.map { DateText.text($0.time) })
        }
    }

    /// The members of NEW_KEY.
    struct NewKey: Sendable {
        let label: String
        let cardNumber: String
        let isActive: Bool
        /// nil: a key pair.
        let codes: (settings: OneTimeCodes, secret: SecretBox, counter: UInt64)?

        init(_ arguments: Arguments) throws(Failure) {
            label = try arguments.optionalText("label", 0...KeyRecord.maximumLabel) ?? ""
            cardNumber = try arguments.optionalText("cardNumber", 0...128) ?? ""
            isActive = try arguments.flag("active") ?? true
            guard try arguments.optionalWord("protocol", [("pkoc", false), ("otp", true)]) ?? false else {
                // A secret that was typed is not replaced by a key that nobody has asked for.
                if arguments.has("value") { throw arguments.wrong("protocol", "otp if there is a value") }
                codes = nil
                return
            }
            let algorithms = "SHA1, SHA256 or SHA512"
            let algorithm = try arguments.optional("algorithm", algorithms) { value in
                value.string.flatMap { DigestAlgorithm(name: $0) }
            }
            guard
                let settings = OneTimeCodes(
                    kind: try arguments.optionalWord("type", [("hotp", .hotp), ("totp", .totp)]) ?? .hotp,
                    digits: try arguments.optionalNumber("digits", 6...8) ?? 6,
                    algorithm: algorithm ?? .sha1,
                    period: try arguments.optionalNumber("period", 5...300) ?? 30
                )
            else { throw arguments.wrong("algorithm", algorithms) }
            // The next counter is a number of JSON, too.
            let counter = try arguments.optionalNumber("counter", 0...Int.max - 1) ?? 0
            codes = (settings, try arguments.codeSecret(), UInt64(counter))
        }

        func prepare(_ key: inout KeyRecord) {
            key.label = label
            key.cardNumber = cardNumber
            key.isActive = isActive
        }
    }

    private func make(_ new: NewKey, _ uid: UInt32) async throws(Failure) -> KeyRecord {
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

    /// The members of IMPORT_SITE.
    struct SiteToImport: Sendable {
        /// nil: the only key pair of the user.
        let key: String?
        let code: ReaderCode

        init(_ arguments: Arguments) throws(Failure) {
            key = try arguments.optionalKey()
            code = try arguments.required("qr", "the QR code of a reader: siteUuid, readerUuid, publicKey") { value in
                guard let text = value.string, text.utf8.count <= ReaderCode.maximumCount else { return nil }
                return ReaderCode(text.utf8)
            }
        }
    }

    /// Adds the site to its key, and returns the id of the key.
    private func add(_ new: SiteToImport, _ uid: UInt32) async throws(Failure) -> String {
        let id: String
        if let key = new.key {
            id = key
        } else {
            let keys = try await vault.keys(of: uid)
            let pairs = keys.filter { $0.publicKey != nil && !$0.isRevoked && $0.pendingUntil == nil }
            guard let only = pairs.first, pairs.count == 1 else {
                throw Failure(.keyNotFound, "name the key in the member key: there are \(pairs.count) keys")
            }
            id = only.id
        }
        let code = new.code
        _ = try await vault.change(id, of: uid) { key throws(Failure) in try key.add(code) }
        return id
    }

    // MARK: One-time codes and data

    private func oneTimeCode(_ call: Call) async throws(Failure) -> Reply {
        let id = try call.arguments.key()
        let code = try await vault.code(id, of: try await owner(call))
        let now = vault.now()
        return try await reply(call) { object in
            object.member("id", id)
            object.member("otp", code.text)
            object.member("digits", code.codes.digits)
            switch code.codes.kind {
            case .hotp: object.member("counter", code.counter)
            case .totp:
                object.member("step", code.counter)
                object.member("secondsLeft", code.codes.period - now % code.codes.period)
            }
        }
    }

    private func counter(_ call: Call) async throws(Failure) -> Reply {
        let id = try call.arguments.key()
        let counter = try await vault.counter(id, of: try await owner(call))
        return try await reply(call) { object in
            object.member("id", id)
            object.member("counter", counter)
        }
    }

    private func data(_ call: Call) async throws(Failure) -> Reply {
        let (id, tag) = (try call.arguments.key("oid"), try call.arguments.tag())
        let box = try await vault.data(tag, key: id, of: try await owner(call))
        guard let content = box?.take() else { return try await reply(call, id, tag, nil) }
        return try await reply(call, id, tag, content.withBytes { Array($0) })
    }

    private func putData(_ call: Call) async throws(Failure) -> Reply {
        let new = try DataToKeep(call.arguments)
        let uid = new.isRemoval ? try await owner(call) : try await readableOwner(call)
        try await vault.setData(new.content, new.tag, key: new.id, of: uid)
        return try await reply(call, new.id, new.tag, nil)
    }

    /// Writes DATA; `data` is nil if there is no such object.
    private func reply(
        _ call: Call,
        _ id: String,
        _ tag: DataTag,
        _ data: [UInt8]?
    ) async throws(Failure) -> Reply {
        try await reply(call) { object in
            object.member("oid", id)
            object.member("tag", tag.hex)
            object.member("data", data.map { Hex.encode($0) })
        }
    }

    /// The members of PUT_DATA.
    struct DataToKeep: Sendable {
        let id: String
        let tag: DataTag
        let content: SecretBox
        /// Whether the object is removed.
        let isRemoval: Bool

        init(_ arguments: Arguments) throws(Failure) {
            id = try arguments.key("oid")
            tag = try arguments.tag()
            content = try arguments.bytes("data", limit: Vault.maximumData)
            isRemoval = arguments["data"]?.string?.isEmpty == true
        }
    }
}

extension KeyRecord {
    /// Adds a reader, and its site if it is new. A known key of a reader is not replaced.
    fileprivate mutating func add(_ code: ReaderCode) throws(Failure) {
        guard publicKey != nil else { throw .unfit("the key opens no readers") }
        guard let index = sites.firstIndex(where: { $0.id == code.site }) else {
            guard sites.count < Site.maximumNumber else {
                throw .full("a key can have at most \(Site.maximumNumber) sites")
            }
            sites.append(Site(id: code.site, publicKey: code.publicKey, readers: [code.reader]))
            return
        }
        guard sites[index].publicKey == code.publicKey else {
            throw .unfit("this site is known with another public key: ask the operator of the site")
        }
        guard !sites[index].readers.isEmpty, !sites[index].readers.contains(code.reader) else { return }
        guard sites[index].readers.count < Site.maximumReaders else {
            throw .full("a site can have at most \(Site.maximumReaders) readers")
        }
        sites[index].readers.append(code.reader)
    }
}
