// SPDX-License-Identifier: Apache-2.0
import Text

/// The credential of a card or phone on a reader, or why it has shown none: CREDENTIAL.
///
/// A verified key proves that the card holds it. It does not prove that its holder may enter.
/// docs/protocol/credentials.md.
public struct Credential: ServerMessage, NamedMessage {
    static let names = ["CREDENTIAL"]

    /// The number of the tap since badged started: 1, 2, ... One that is missing was not received.
    public var number: Int?
    /// When the card was read, in milliseconds since 1970, by the clock of the host.
    public var time: Int64?
    /// When the card was read, in milliseconds of CLOCK_BOOTTIME of the host, which nobody can set.
    public var uptime: Int64?
    public var reader: String
    /// How the card was read: `pkoc-se1`, `pkoc-se2`, `Aliro`, `tag`, or `raw` by a reader in the wall.
    public var technology: String
    /// With Aliro: `standard`, in which the card has signed, or `fast`; nil otherwise.
    public var phase: String?
    /// The key and its numbers; nil: the card has shown no credential, and `reason` says why.
    public var key: Key?
    /// Such as `wrongSignature` or `expired`; nil for a credential.
    public var reason: String?
    /// The certificate of the card; nil: it has none, or was read without it.
    public var certificate: Certificate?
    /// The random bytes of this tap. The card has signed them, or has proven its key with them in another way.
    public var transaction: [UInt8] = []
    /// Whether the allow list of badged has the key; nil: badged has no such list.
    public var isListed: Bool?

    /// The number of a card without a credential. Anybody can copy it, so `key` is nil and nothing is proven.
    public var tag: Tag?

    /// What a reader in the wall has read. Anybody can copy it, so `key` is nil and nothing is proven.
    public var raw: Raw?

    /// The bits that a reader in the wall has read.
    public struct Raw: Sendable, Equatable {
        public var bits: Int
        /// As the reader has sent them, in as few bytes as they need.
        public var data: [UInt8]
        /// `unspecified`, or `wiegand` with parities.
        public var format: String

        public init(bits: Int, data: [UInt8], format: String = "unspecified") {
            self.bits = bits
            self.data = data
            self.format = format
        }
    }

    /// A tag that is known by its number.
    public struct Tag: Sendable, Equatable {
        /// UID or PUPI: 4, 7, 8 or 10 bytes.
        public var uid: [UInt8]
        /// Such as `mifareUltralight`: docs/protocol/credentials.md, Tags.
        public var type: String
        /// Whether the number is another one at each tap.
        public var isRandom: Bool
        /// The records of the NDEF message, if the client has asked for them; nil also if there is no readable message.
        public var records: [Record]?

        /// A record of an NDEF message. Whoever has written the tag has chosen the content.
        public enum Record: Sendable, Equatable {
            case text(String, language: String)
            case uri(String)
            /// Another record, with the name of its type.
            case other(String)
        }

        public init(uid: [UInt8], type: String, isRandom: Bool = false, records: [Record]? = nil) {
            self.uid = uid
            self.type = type
            self.isRandom = isRandom
            self.records = records
        }
    }

    /// A key that the card has proven.
    public struct Key: Sendable, Equatable {
        /// 04, x and y: 65 bytes.
        public var point: [UInt8]
        /// The card numbers by their length in bits: 64, 75, 128, 200 and 256.
        public var numbers: [Int: [UInt8]]
        /// The 64-bit number as panels show it, in decimal.
        public var decimal: String

        public init(point: [UInt8], numbers: [Int: [UInt8]], decimal: String) {
            self.point = point
            self.numbers = numbers
            self.decimal = decimal
        }
    }

    /// The certificate of a card.
    public struct Certificate: Sendable, Equatable {
        /// `valid`, or why the certificate does not count, such as `unknownIssuer`.
        public var state: String
        /// The names of the issuer and of the card, 16 letters and digits each.
        public var issuer: String
        public var subject: String
        /// The first and the last day, `yyyy-MM-dd`.
        public var from: String
        public var to: String

        public init(state: String, issuer: String, subject: String, from: String, to: String) {
            self.state = state
            self.issuer = issuer
            self.subject = subject
            self.from = from
            self.to = to
        }
    }
}

extension Credential {
    init(_ json: JSON) throws(Malformed) {
        reader = try json.required("reader", as: \.string)
        technology = try json.required("protocol", as: \.string)
        number = json["number"]?.int
        time = json["time"]?.int.map(Int64.init)
        uptime = json["uptime"]?.int.map(Int64.init)
        guard try json.required("verified", as: \.bool) else {
            reason = json["reason"]?.string ?? "unknown"
            tag = try json["tag"].map(Tag.init)
            raw = try json["raw"].map(Raw.init)
            return
        }
        phase = json["phase"]?.string
        let point = try json.required("publicKey") { $0.string.flatMap { Hex.decode($0) } }
        let members = try json.required("numbers", as: \.members)
        var numbers: [Int: [UInt8]] = [:]
        for member in members where member.key.hasPrefix("bits") {
            guard let bits = Int(member.key.dropFirst(4)), let text = member.value.string else { continue }
            numbers[bits] = Hex.decode(text)
        }
        key = Key(point: point, numbers: numbers, decimal: json["numbers"]?["decimal64"]?.string ?? "")
        certificate = json["certificate"].flatMap(Certificate.init)
        isListed = json["listed"]?.bool
        transaction = json["transaction"]?.string.flatMap { Hex.decode($0) } ?? []
    }
}

extension Credential.Raw {
    fileprivate init(_ json: JSON) throws(Malformed) {
        bits = try json.required("bits", as: \.int)
        data = try json.required("data") { $0.string.flatMap { Hex.decode($0) } }
        format = json["format"]?.string ?? "unspecified"
    }
}

extension Credential.Tag {
    fileprivate init(_ json: JSON) throws(Malformed) {
        uid = try json.required("uid") { $0.string.flatMap { Hex.decode($0) } }
        type = try json.required("type", as: \.string)
        isRandom = json["random"]?.bool ?? false
        records = json["ndef"]?.array?.map { record in
            switch record["type"]?.string {
            case "text": .text(record["text"]?.string ?? "", language: record["language"]?.string ?? "")
            case "uri": .uri(record["uri"]?.string ?? "")
            default: .other(record["name"]?.string ?? "")
            }
        }
    }
}

extension Credential.Certificate {
    /// nil for a message without a certificate.
    fileprivate init?(_ json: JSON) {
        guard let state = json["state"]?.string else { return nil }
        self.state = state
        issuer = json["issuer"]?.string ?? ""
        subject = json["subject"]?.string ?? ""
        from = json["from"]?.string ?? ""
        to = json["to"]?.string ?? ""
    }
}

/// Whether badged reports credentials to this client: CREDENTIALS.
public struct CredentialStatus: ServerMessage, NamedMessage {
    static let names = ["CREDENTIALS"]

    public var isWatching: Bool
    /// Validated mode: only a key with a valid certificate is a credential.
    public var isValidated: Bool
    /// How many issuers badged knows.
    public var issuers: Int
}

extension CredentialStatus {
    init(_ json: JSON) throws(Malformed) {
        isWatching = try json.required("watching", as: \.bool)
        isValidated = json["validated"]?.bool ?? false
        issuers = json["issuers"]?.int ?? 0
    }
}

/// The messages about credentials.
let credentialMessages: [any NamedMessage.Type] = [
    Credential.self, CredentialStatus.self, DoorPanel.self, DoorPanelStatus.self,
]

extension DaemonConnection {
    /// START_CREDENTIALS. Each card that lies on a reader now or is put there later arrives as the event `Credential`,
    /// until `stopCredentials` or the end of the connection. Needs the permission `credentials`.
    /// `readsNDEF` says whether the text or address in a tag is read, too, which takes up to a second.
    @discardableResult
    public func startCredentials(readsNDEF: Bool = false) async throws(ClientError) -> CredentialStatus {
        try await ask("START_CREDENTIALS", readsNDEF ? [.init("ndef", .bool(true))] : [])
    }

    /// STOP_CREDENTIALS.
    @discardableResult
    public func stopCredentials() async throws(ClientError) -> CredentialStatus { try await ask("STOP_CREDENTIALS") }
}
