// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// The record of a key in the vault. The private part or the secret is stored separately.
package struct KeyRecord: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// A key pair of P-256 for PKOC readers. The public key has 65 bytes.
        case pkoc(publicKey: [UInt8])
        /// A secret for one-time codes.
        case otp(OneTimeCodes)
    }

    package enum Origin: String, Sendable {
        /// Made by a command.
        case created
        /// Made for an invitation of an issuer.
        case invitation
        /// Made for a pass.
        case wallet
    }

    /// Where the private part is.
    package enum Protection: String, Sendable, CaseIterable {
        /// In the store, sealed. The store and its key are enough to use it.
        case software
        /// In a TPM. The store holds a blob that only this TPM can decrypt.
        case tpm
    }

    /// 32 hexadecimal digits, drawn at random. The commands for data take it as `oid`.
    package let id: String
    package let kind: Kind
    package let origin: Origin
    package let protection: Protection
    package var label = ""
    package var cardNumber = ""
    package var isActive = false
    /// Whether the issuer has revoked the key. Such a key is never active again.
    package var isRevoked = false
    /// In seconds since 1970; for information only.
    package var beginDate: Int?
    /// When the key stops opening readers, in seconds since 1970.
    package var endDate: Int?
    package var sites: [Site] = []
    /// The name of the issuer; empty if there is none.
    package var issuer = ""
    /// The fingerprint of the key of the issuer: 32 bytes, or empty.
    package var issuerFingerprint: [UInt8] = []
    /// The serial number of the newest enrolment file.
    package var serial = 0
    /// The certificate of the key (CVC); empty if there is none.
    package var certificate: [UInt8] = []
    /// The invitation for which the key was made; empty if there is none.
    package var invitation = ""
    /// When the key is removed unless it is saved before, in seconds since 1970; nil for a saved key.
    package var pendingUntil: Int?

    package init(id: String, kind: Kind, origin: Origin, protection: Protection = .software) {
        self.id = id
        self.kind = kind
        self.origin = origin
        self.protection = protection
    }

    package static let maximumLabel = 256

    package var publicKey: [UInt8]? {
        guard case .pkoc(let key) = kind else { return nil }
        return key
    }

    package var codes: OneTimeCodes? {
        guard case .otp(let codes) = kind else { return nil }
        return codes
    }

    package var thumbprint: String? { publicKey.map { PublicKeyText.thumbprint($0) } }

    /// Whether drivers may use the key.
    package var isUsable: Bool { isActive && !isRevoked && pendingUntil == nil }

    /// Whether `endDate` is reached at `now`, in seconds since 1970.
    package func isExpired(at now: Int) -> Bool { endDate.map { $0 <= now } ?? false }

    /// Whether the key was not saved in time, as far as the clock is right.
    func isForgotten(at now: Int) -> Bool { pendingUntil.map { $0 <= now } ?? false }

    // MARK: In the store

    /// Reads a record; nil if a later version has written it or if it is damaged.
    package init?(_ bytes: some Sequence<UInt8>) {
        guard let json = try? JSON(bytes), json["version"]?.int == 1, let id = json["id"]?.string,
            let origin = json["origin"]?.string.flatMap(Origin.init),
            let protection = json["protection"]?.string.flatMap(Protection.init),
            let sites = json["sites"].flatMap({ Site.list($0) }),
            let isActive = json["active"]?.bool, let isRevoked = json["revoked"]?.bool,
            let kind = Self.kind(json)
        else { return nil }
        self.init(id: id, kind: kind, origin: origin, protection: protection)
        self.sites = sites
        self.isActive = isActive
        self.isRevoked = isRevoked
        label = json["label"]?.string ?? ""
        cardNumber = json["cardNumber"]?.string ?? ""
        beginDate = json["begin"]?.int
        endDate = json["end"]?.int
        issuer = json["issuer"]?.string ?? ""
        issuerFingerprint = json["issuerFingerprint"]?.string.flatMap { Hex.decode($0) } ?? []
        serial = json["serial"]?.int ?? 0
        certificate = json["certificate"]?.string.flatMap { Hex.decode($0) } ?? []
        invitation = json["invitation"]?.string ?? ""
        pendingUntil = json["pendingUntil"]?.int
    }

    private static func kind(_ json: JSON) -> Kind? {
        if let text = json["publicKey"]?.string {
            guard let key = Hex.decode(text, limit: 65), key.count == 65 else { return nil }
            return .pkoc(publicKey: key)
        }
        guard let codes = json["otp"], let kind = codes["kind"]?.string.flatMap(OneTimeCodes.Kind.init),
            let digits = codes["digits"]?.int, let period = codes["period"]?.int,
            let algorithm = codes["algorithm"]?.string.flatMap({ DigestAlgorithm(name: $0) }),
            let settings = OneTimeCodes(kind: kind, digits: digits, algorithm: algorithm, period: period)
        else { return nil }
        return .otp(settings)
    }

    var bytes: [UInt8] {
        JSONWriter.bytes { object in
            object.member("version", 1)
            object.member("id", id)
            object.member("origin", origin.rawValue)
            object.member("protection", protection.rawValue)
            object.member("active", isActive)
            object.member("revoked", isRevoked)
            object.member("label", label)
            object.member("cardNumber", cardNumber)
            object.member("begin", beginDate)
            object.member("end", endDate)
            object.member("issuer", issuer)
            object.member("issuerFingerprint", Hex.encode(issuerFingerprint))
            object.member("serial", serial)
            object.member("certificate", Hex.encode(certificate))
            object.member("invitation", invitation)
            object.member("pendingUntil", pendingUntil)
            object.array("sites", sites) { list, site in list.object { site.writeRecord(to: &$0) } }
            switch kind {
            case .pkoc(let key): object.member("publicKey", Hex.encode(key))
            case .otp(let codes):
                object.object("otp") { otp in
                    otp.member("kind", codes.kind.rawValue)
                    otp.member("digits", codes.digits)
                    otp.member("period", codes.period)
                    otp.member("algorithm", codes.algorithm.name)
                }
            }
        }
    }
}

/// The last use of a key at a reader.
package struct LastAuthentication: Sendable, Equatable {
    /// The id of the key.
    package let key: String
    /// How many times keys of this user were used.
    package let counter: Int
    /// Whether the reader has written data.
    package let isModified: Bool
    /// In seconds since 1970.
    package let time: Int

    init(key: String, counter: Int, isModified: Bool, time: Int) {
        self.key = key
        self.counter = counter
        self.isModified = isModified
        self.time = time
    }

    init?(_ bytes: some Sequence<UInt8>) {
        guard let json = try? JSON(bytes), let key = json["key"]?.string, let counter = json["counter"]?.int,
            let isModified = json["modified"]?.bool, let time = json["time"]?.int
        else { return nil }
        self.init(key: key, counter: counter, isModified: isModified, time: time)
    }

    var bytes: [UInt8] {
        JSONWriter.bytes { object in
            object.member("key", key)
            object.member("counter", counter)
            object.member("modified", isModified)
            object.member("time", time)
        }
    }
}
