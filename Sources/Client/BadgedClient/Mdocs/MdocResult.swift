// SPDX-License-Identifier: Apache-2.0
public import Text

/// What a phone has shown, and what was proven. docs/protocol/mdoc.md.
public struct MdocResult: Sendable, Equatable {
    public enum Verdict: String, Sendable {
        /// Every check has passed.
        case genuine
        /// Nothing has failed, and something was not done.
        case unverified
        /// Something has failed.
        case suspect
    }

    /// The answer about an age.
    public struct Age: Sendable, Equatable {
        public enum Answer: String, Sendable { case yes, no, unknown }

        public var over: Int
        /// `yes` and `no` are proven by a genuine document.
        public var answer: Answer
    }

    /// A document.
    public struct Document: Sendable, Equatable {
        /// Such as `org.iso.18013.5.1.mDL`.
        public var docType: String
        /// nil: a verdict of a later version.
        public var verdict: Verdict?
        public var issuer: String?
        public var validUntil: String?
        /// What was asked for and given, without what a check refuses.
        public var elements: [Element] = []
        /// The names of elements that were not given, which is the right of the holder.
        public var withheld: [String] = []
        /// The names of elements that nobody asked for.
        public var unasked: [String] = []
        public var checks: [DocumentResult.Check] = []
    }

    public struct Element: Sendable, Equatable {
        public var namespace: String
        public var name: String
        /// A date is a text; bytes are in base64; a portrait has `format` and `data`.
        public var value: JSON
    }

    public var success: Bool
    /// Why no phone was read: a word of docs/protocol/mdoc.md, and the same as a sentence.
    public var error: String?
    public var message: String?
    /// That of the worst document.
    public var verdict: Verdict?
    /// `qr`, `nfcStatic` or `nfcNegotiated`.
    public var engagement: String?
    /// `bleCentral`, `blePeripheral` or `nfc`.
    public var transport: String?
    public var reader: String?
    public var age: Age?
    public var documents: [Document] = []
}

extension MdocResult {
    init(_ json: JSON) throws(Malformed) {
        self.init(success: try json.required("success", as: \.bool))
        error = json["error"]?.string
        message = json["message"]?.string
        verdict = json["verdict"]?.string.flatMap(Verdict.init(rawValue:))
        engagement = json["engagement"]?.string
        transport = json["transport"]?.string
        reader = json["reader"]?.string
        if let over = json["age"]?["over"]?.int {
            age = Age(over: over, answer: json["age"]?["answer"]?.string.flatMap(Age.Answer.init) ?? .unknown)
        }
        documents = (json["documents"]?.array ?? []).compactMap(Document.init)
    }
}

extension MdocResult.Document {
    private static let order = ["hashes", "signature", "authority", "device", "status", "document"]

    init?(_ json: JSON) {
        guard let docType = json["docType"]?.string else { return nil }
        self.docType = docType
        verdict = json["verdict"]?.string.flatMap(MdocResult.Verdict.init(rawValue:))
        issuer = json["issuer"]?.string
        validUntil = json["validUntil"]?.string
        for namespace in json["items"]?.members ?? [] {
            for element in namespace.value.members ?? [] {
                elements.append(.init(namespace: namespace.key, name: element.key, value: element.value))
            }
        }
        withheld = json["withheld"]?.strings ?? []
        unasked = json["unasked"]?.strings ?? []
        let members = json["checks"]?.members ?? []
        checks = Self.order.compactMap { name in
            members.first { $0.key == name }.flatMap { DocumentResult.Check($0.key, $0.value) }
        }
    }
}
