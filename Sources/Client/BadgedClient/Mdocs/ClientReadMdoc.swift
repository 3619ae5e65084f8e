// SPDX-License-Identifier: Apache-2.0
import Text

/// The messages about mobile documents.
let mdocMessages: [any NamedMessage.Type] = [MdocMessage.self, MdocAnchorReport.self]

/// A reading of a phone has begun or ended: MDOC.
public struct MdocMessage: ServerMessage, WorkflowMessage, SecretMessage {
    static let names = ["MDOC"]
    static let errorIsRefusal = false

    /// What was read; nil when the reading has just begun.
    public var outcome: MdocResult?

    public init(outcome: MdocResult?) { self.outcome = outcome }

    init(_ json: JSON) throws(Malformed) {
        guard json["success"] != nil else { return }
        outcome = try MdocResult(json)
    }
}

/// What to ask a phone for.
public enum MdocQuestion: Sendable, Equatable {
    /// Whether the holder is over this age, 1 to 99, and nothing else.
    case ageOver(Int)
    case documents([Document])

    /// A document, and its elements by their namespaces.
    public struct Document: Sendable, Equatable {
        /// Such as `org.iso.18013.5.1.mDL`.
        public var docType: String
        public var elements: [Element]

        public init(_ docType: String, _ elements: [Element]) { (self.docType, self.elements) = (docType, elements) }
    }

    public struct Element: Sendable, Equatable {
        public var namespace: String
        public var name: String
        /// Whether the program keeps the value longer than it needs it now, which the phone shows to its holder.
        public var isRetained: Bool

        public init(_ name: String, in namespace: String, isRetained: Bool = false) {
            self.namespace = namespace
            self.name = name
            self.isRetained = isRetained
        }
    }

    var member: JSON.Member {
        switch self {
        case .ageOver(let age): JSON.Member("ageOver", .number(String(age)))
        case .documents(let documents): JSON.Member("documents", .array(documents.map(\.json)))
        }
    }
}

extension MdocQuestion.Document {
    fileprivate var json: JSON {
        var items: [JSON.Member] = []
        for element in elements {
            let entry = JSON.object([
                .init("name", .string(element.name)), .init("retain", .bool(element.isRetained)),
            ])
            if let index = items.firstIndex(where: { $0.key == element.namespace }) {
                items[index].value = .array((items[index].value.array ?? []) + [entry])
            } else {
                items.append(.init(element.namespace, .array([entry])))
            }
        }
        return .object([.init("docType", .string(docType)), .init("items", .object(items))])
    }
}

/// Who signs a request to a phone.
public enum MdocIdentity: Sendable, Equatable {
    /// The only key of badged.conf, if there is one.
    case only
    case named(String)
    case unsigned
}

extension DaemonConnection {
    /// Reads mobile documents from a phone: runs RUN_READ_MDOC from its start to its end. Cancelling the calling task
    /// cancels the workflow.
    ///
    /// - Parameters:
    ///   - question: what to ask for. Ask for no more than you need.
    ///   - reader: name of the only NFC reader to use.
    ///   - engagement: the text of a QR code that the phone shows, which begins with `mdoc:`.
    ///   - transports: of `bleCentral`, `blePeripheral` and `nfc`; nil: all.
    ///   - identity: who signs the request.
    ///   - timeout: seconds for the holder, 10 to 300; nil: 120.
    ///   - raw: whether the values are in the message also as CBOR.
    ///   - user: sees the steps.
    /// - Returns: what was read. A document that is not believed is a success with the verdict `suspect`.
    /// - Throws: a refusal, `workflowRunning`, the end of the connection, or `cancelled`.
    public func readMdoc(
        _ question: MdocQuestion,
        reader: String? = nil,
        engagement: String? = nil,
        transports: [String]? = nil,
        identity: MdocIdentity = .only,
        timeout: Int? = nil,
        raw: Bool = false,
        user: some WorkflowUser
    ) async throws(ClientError) -> MdocResult {
        var members = [question.member, .init("raw", .bool(raw))]
        if let reader { members.append(.init("reader", .string(reader))) }
        if let engagement { members.append(.init("engagement", .string(engagement))) }
        if let transports { members.append(.init("transports", .array(transports.map { .string($0) }))) }
        switch identity {
        case .only: break
        case .named(let name): members.append(.init("identity", .string(name)))
        case .unsigned: members.append(.init("identity", .null))
        }
        if let timeout { members.append(.init("timeout", .number(String(timeout)))) }
        let all = members
        return try await runWorkflow(until: MdocMessage.self, user, start: await self.send("RUN_READ_MDOC", all))
    }

    /// SET_ENGAGEMENT: gives a reading that waits for a phone the text of its QR code.
    public func setEngagement(_ text: String) async throws(ClientError) {
        _ = try await send("SET_ENGAGEMENT", [.init("value", .string(text))])
    }

    /// GET_MDOC_ANCHORS: the authorities of mobile documents that badged trusts.
    public func mdocAnchors() async throws(ClientError) -> MdocAnchorReport { try await ask("GET_MDOC_ANCHORS") }
}

/// The authorities of mobile documents that badged trusts: MDOC_ANCHORS.
public struct MdocAnchorReport: ServerMessage, NamedMessage {
    static let names = ["MDOC_ANCHORS"]

    public var folder: String
    public var authorities: Int
    /// Two letters each.
    public var countries: [String]
    /// The types of documents that have authorities of their own.
    public var docTypes: [String]
    /// The day of the newest file, `yyyy-MM-dd`; nil: there is none.
    public var newest: String?
    /// Why files are ignored.
    public var warnings: [String]
}

extension MdocAnchorReport {
    init(_ json: JSON) throws(Malformed) {
        folder = try json.required("folder", as: \.string)
        authorities = try json.required("authorities", as: \.int)
        countries = json["countries"]?.strings ?? []
        docTypes = json["docTypes"]?.strings ?? []
        newest = json["newest"]?.string
        warnings = json["warnings"]?.strings ?? []
    }
}
