// SPDX-License-Identifier: Apache-2.0
import Text

/// What badged has read of an electronic document, and what was proven. docs/protocol/documents.md.
public struct DocumentResult: Sendable, Equatable {
    public enum Verdict: String, Sendable {
        /// Every check has passed.
        case genuine
        /// Every check has passed, but nothing in the document proves its chip: a copy would look the same.
        case genuineCopyable
        /// Nothing has failed, and something was not done.
        case unverified
        /// Something has failed.
        case suspect
    }

    /// How a check ended.
    public struct Check: Sendable, Equatable {
        /// `hashes`, `signature`, `authority`, `chip` or `document`.
        public var name: String
        /// `passed`, `failed`, `absent` or `notDone`. What was not done is never passed.
        public var result: String
        public var reason: String?
        /// What only this check has, such as the names of `authority`.
        public var details: [String: String] = [:]
    }

    /// A data group that the document has.
    public struct DataGroup: Sendable, Equatable {
        public var number: Int
        /// `read`, `locked`, `notAsked`, `refused`, `malformed`, `disturbed` or `notSigned`.
        public var state: String
        /// The length of its file in bytes, if it was read.
        public var length: Int?
        /// The file, if `raw` asked for it.
        public var content: [UInt8]?
    }

    /// A file that is no data group.
    public struct File: Sendable, Equatable {
        /// `EF.SOD`, `EF.COM`, `EF.CardAccess` or `EF.CardSecurity`.
        public var name: String
        public var content: [UInt8]
    }

    /// A picture as the chip has it.
    public struct Image: Sendable, Equatable {
        /// `jpeg`, `jp2`, `j2k` or `unknown`.
        public var format: String
        public var width: Int?
        public var height: Int?
        public var data: [UInt8]
    }

    /// A field of the document, such as `surname`.
    public struct Field: Sendable, Equatable {
        public var name: String
        public var value: String
    }

    public var success: Bool
    /// Why the document was not read: a word of docs/protocol/documents.md, and the same as a sentence.
    public var error: String?
    public var message: String?
    public var reader: String?
    /// nil: the document was not read, or the verdict is of a later version.
    public var verdict: Verdict?
    /// How the document was opened: `protocol`, `password`, `mapping`, `parameters`, `cipher`.
    public var access: [Field] = []
    /// The machine readable zone of DG1, by the names of the protocol. Empty fields are left out.
    public var document: [Field] = []
    /// DG11 and DG12.
    public var person: [Field] = []
    public var issuance: [Field] = []
    public var portrait: Image?
    public var signature: Image?
    public var groups: [DataGroup] = []
    /// The other files, if `raw` asked for them: what another program needs to check the document again.
    public var files: [File] = []
    public var checks: [Check] = []
}

extension DocumentResult {
    init(_ json: JSON) throws(Malformed) {
        self.init(success: try json.required("success", as: \.bool))
        error = json["error"]?.string
        message = json["message"]?.string
        reader = json["reader"]?.string
        verdict = json["verdict"]?.string.flatMap(Verdict.init(rawValue:))
        access = Self.fields(json["access"])
        document = Self.fields(json["document"])
        person = Self.fields(json["person"])
        issuance = Self.fields(json["issuance"])
        portrait = json["portrait"].flatMap(Image.init)
        signature = json["signature"].flatMap(Image.init)
        groups = (json["groups"]?.array ?? []).compactMap(DataGroup.init)
        files = (json["files"]?.array ?? []).compactMap(File.init)
        checks = Self.sorted(json["checks"]?.members ?? []).compactMap { Check($0.key, $0.value) }
    }

    /// The order in which people read the members, since those of the protocol have none.
    private static let order = [
        "hashes", "signature", "authority", "chip", "document",
        "protocol", "password", "mapping", "parameters", "cipher",
        "type", "code", "issuer", "number", "surname", "given", "nationality", "birth", "sex", "expiry", "optional",
        "fullName", "otherNames", "birthDate", "birthPlace", "personalNumber", "address", "telephone", "profession",
    ]

    private static func sorted(_ members: [JSON.Member]) -> [JSON.Member] {
        func rank(_ member: JSON.Member) -> (Int, String) {
            (order.firstIndex(of: member.key) ?? order.count, member.key)
        }
        return members.sorted { rank($0) < rank($1) }
    }

    private static func fields(_ json: JSON?) -> [Field] {
        sorted(json?.members ?? []).compactMap { member in
            let value = member.value.string ?? member.value.strings?.joined(separator: ", ")
            guard let value, !value.isEmpty else { return nil }
            return Field(name: member.key, value: value)
        }
    }
}

extension DocumentResult.Check {
    init?(_ name: String, _ json: JSON) {
        guard let result = json["result"]?.string else { return nil }
        self.init(name: name, result: result, reason: json["reason"]?.string)
        for member in json.members ?? [] where member.key != "result" && member.key != "reason" {
            details[member.key] = Self.text(member.value)
        }
    }

    /// A list in words: `PACE-CAM passed, AA failed (wrongSignature)`.
    private static func text(_ value: JSON) -> String? {
        if let text = value.string { return text }
        if let number = value.int { return String(number) }
        guard let entries = value.array, !entries.isEmpty else { return nil }
        return entries.compactMap { entry in
            if let method = entry["method"]?.string {
                let reason = entry["reason"]?.string.map { " (\($0))" } ?? ""
                let result = entry["result"]?.string ?? ""
                return "\(method) \(result == "notDone" ? "not done" : result)\(reason)"
            }
            if let finding = entry["finding"]?.string {
                return finding + (entry["field"]?.string.map { " \($0)" } ?? "")
            }
            return entry.string ?? entry.int.map { String($0) }
        }.joined(separator: ", ")
    }
}

extension DocumentResult.DataGroup {
    init?(_ json: JSON) {
        guard let number = json["group"]?.int, let state = json["state"]?.string else { return nil }
        self.number = number
        self.state = state
        length = json["bytes"]?.int
        content = json["data"]?.string.flatMap { Base64.standard.decode($0) }
    }
}

extension DocumentResult.File {
    init?(_ json: JSON) {
        guard let name = json["file"]?.string,
            let content = json["data"]?.string.flatMap({ Base64.standard.decode($0) })
        else { return nil }
        self.init(name: name, content: content)
    }
}

extension DocumentResult.Image {
    init?(_ json: JSON) {
        guard let format = json["format"]?.string,
            let data = json["data"]?.string.flatMap({ Base64.standard.decode($0) })
        else { return nil }
        self.init(format: format, width: json["width"]?.int, height: json["height"]?.int, data: data)
    }
}
