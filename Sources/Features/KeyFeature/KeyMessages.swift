// SPDX-License-Identifier: GPL-3.0-or-later
import Credentials
import Store
import Text
import Vault
import Wire

/// What a command of this feature answers if it has not failed.
protocol KeyContent: Sendable {
    static var name: StaticString { get }
    func write(to object: inout JSONWriter)
}

/// The answer to a command: the content or the failure, and where the key of the store comes from.
struct KeyAnswer<Content: KeyContent>: Message {
    static var name: StaticString { Content.name }
    let result: Result<Content, KeyFailure>
    /// nil: the command was refused before the store was opened, or the store cannot be opened.
    let storage: StoreKeySource?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        switch result {
        case .success(let content): content.write(to: &object)
        case .failure(let failure): failure.write(to: &object)
        }
        if let storage { object.member("storage", storage.rawValue) }
    }
}

extension KeyFailure {
    func write(to object: inout JSONWriter) {
        object.member("error", name.rawValue)
        object.member("code", name.code)
        object.member("description", text)
    }
}

/// The answer to START.
struct StartedContent: KeyContent {
    static let name: StaticString = "STARTED"
    let isSetUp: Bool

    func write(to object: inout JSONWriter) { object.member("setUp", isSetUp) }
}

/// A key, as KEY and KEYS show it.
struct KeyView: Sendable {
    let key: KeyRecord
    let now: Int

    func write(to object: inout JSONWriter) {
        object.member("id", key.id)
        object.member("protocol", key.publicKey == nil ? "otp" : "pkoc")
        object.member("label", key.label)
        object.member("issuer", key.issuer)
        object.member("cardNumber", key.cardNumber)
        object.member("beginDate", key.beginDate.map { DateText.text($0) })
        object.member("endDate", key.endDate.map { DateText.text($0) })
        object.member("expired", key.isExpired(at: now))
        object.member("active", key.isActive)
        object.member("revoked", key.isRevoked)
        object.member("pendingUntil", key.pendingUntil.map { DateText.text($0) })
        object.member("origin", key.origin.rawValue)
        object.member("protection", key.protection.rawValue)
        object.member("supportsOTP", key.codes != nil)
        if let publicKey = key.publicKey {
            object.member("publicKey", Hex.encode(publicKey))
            object.member("thumbprint", PublicKeyText.thumbprint(publicKey))
            object.array("numbers", CredentialNumber.views(of: publicKey)) { list, number in
                list.object { number.write(to: &$0) }
            }
            object.array("sites", key.sites) { list, site in list.object { site.write(to: &$0) } }
        }
        if let codes = key.codes {
            object.object("otp") { otp in
                otp.member("type", codes.kind.rawValue)
                otp.member("digits", codes.digits)
                otp.member("algorithm", codes.algorithm.name)
                if codes.kind == .totp { otp.member("period", codes.period) }
            }
        }
    }
}

/// The answer to GET_KEYS.
struct KeysContent: KeyContent {
    static let name: StaticString = "KEYS"
    let keys: [KeyView]

    func write(to object: inout JSONWriter) {
        object.array("keys", keys) { list, key in list.object { key.write(to: &$0) } }
    }
}

/// The answer to NEW_KEY, ACTIVATE_KEY and DEACTIVATE_KEY.
struct KeyContentMessage: KeyContent {
    static let name: StaticString = "KEY"
    let key: KeyView

    func write(to object: inout JSONWriter) { key.write(to: &object) }
}

/// The answer to DELETE_KEY.
struct KeyDeletedContent: KeyContent {
    static let name: StaticString = "KEY_DELETED"
    let id: String

    func write(to object: inout JSONWriter) { object.member("id", id) }
}

/// The answer to EXPORT_KEY: the public part of a key in several forms.
struct KeyExportContent: KeyContent {
    static let name: StaticString = "KEY_EXPORT"
    let id: String
    let publicKey: [UInt8]
    let label: String

    func write(to object: inout JSONWriter) {
        object.member("id", id)
        object.member("keyType", "ECDSA P-256")
        object.member("publicKey", Hex.encode(publicKey))
        object.member("der", Hex.encode(PublicKeyText.der(publicKey)))
        object.member("pem", PublicKeyText.pem(publicKey))
        object.member("thumbprint", PublicKeyText.thumbprint(publicKey))
        object.array("numbers", CredentialNumber.views(of: publicKey)) { list, number in
            list.object { number.write(to: &$0) }
        }
        var code = JSONWriter()
        code.object { code in
            code.member("keyType", "P-256")
            code.member("publicKey", Hex.encode(publicKey))
            if !label.isEmpty { code.member("label", label) }
        }
        object.member("qr", String(decoding: code.bytes, as: UTF8.self))
    }
}

/// The answer to IMPORT_SITE.
struct SiteImportedContent: KeyContent {
    static let name: StaticString = "SITE_IMPORTED"
    let id: String
    let code: ReaderCode

    func write(to object: inout JSONWriter) {
        object.member("id", id)
        object.member("siteId", Hex.encode(code.site))
        object.member("reader", Hex.encode(code.reader))
        object.member("publicKey", Hex.encode(code.publicKey))
        object.member("fingerprint", Hex.encode(PublicKeyText.fingerprint(code.publicKey)))
    }
}

/// The answer to GET_LAST_AUTH.
struct LastAuthContent: KeyContent {
    static let name: StaticString = "LAST_AUTH"
    let last: LastAuthentication?

    func write(to object: inout JSONWriter) {
        object.member("key", last?.key)
        object.member("counter", last?.counter ?? 0)
        object.member("modified", last?.isModified ?? false)
        object.member("time", last.map { DateText.text($0.time) })
    }
}

/// The answer to GET_OTP.
struct OTPContent: KeyContent {
    static let name: StaticString = "OTP"
    let id: String
    let code: Vault.Code
    let now: Int

    func write(to object: inout JSONWriter) {
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

/// The answer to GET_OTP_COUNTER.
struct OTPCounterContent: KeyContent {
    static let name: StaticString = "OTP_COUNTER"
    let id: String
    let counter: UInt64

    func write(to object: inout JSONWriter) {
        object.member("id", id)
        object.member("counter", counter)
    }
}

/// The answer to GET_DATA and PUT_DATA.
struct DataContent: KeyContent {
    static let name: StaticString = "DATA"
    let id: String
    let tag: DataTag
    /// nil: there is no such object.
    let data: [UInt8]?

    func write(to object: inout JSONWriter) {
        object.member("oid", id)
        object.member("tag", tag.hex)
        object.member("data", data.map { Hex.encode($0) })
    }
}
