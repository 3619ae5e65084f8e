// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Store
import Text
import Vault

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
        object.member("pending", key.pendingUntil != nil)
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

/// The answer to EXPORT_KEY: the public part of a key in several forms.
enum KeyExport {
    static func write(_ id: String, _ publicKey: [UInt8], _ label: String, to object: inout JSONWriter) {
        object.member("id", id)
        object.member("keyType", "ECDSA P-256")
        object.member("publicKey", Hex.encode(publicKey))
        object.member("der", Hex.encode(PublicKeyText.der(publicKey)))
        object.member("pem", PublicKeyText.pem(publicKey))
        object.member("thumbprint", PublicKeyText.thumbprint(publicKey))
        object.array("numbers", CredentialNumber.views(of: publicKey)) { list, number in
            list.object { number.write(to: &$0) }
        }
        let code = JSONWriter.bytes { code in
            code.member("keyType", "P-256")
            code.member("publicKey", Hex.encode(publicKey))
            if !label.isEmpty { code.member("label", label) }
        }
        object.member("qr", String(decoding: code, as: UTF8.self))
    }
}
