// SPDX-License-Identifier: Apache-2.0
public import Text

/// The messages about electronic documents.
let documentMessages: [any NamedMessage.Type] = [
    DocumentQuestion.self, DocumentMessage.self, DocumentAnchorReport.self,
]

/// A reading has begun or ended: DOCUMENT.
public struct DocumentMessage: ServerMessage, WorkflowMessage, SecretMessage {
    static let names = ["DOCUMENT"]
    static let errorIsRefusal = false

    /// What was read; nil when the reading has just begun.
    public var outcome: DocumentResult?

    public init(outcome: DocumentResult?) { self.outcome = outcome }

    init(_ json: JSON) throws(Malformed) {
        guard json["success"] != nil else { return }
        outcome = try DocumentResult(json)
    }
}

/// badged asks for what is printed on a document: ENTER_MRZ or ENTER_CAN.
public struct DocumentQuestion: ServerMessage, NamedMessage {
    static let names = ["ENTER_MRZ", "ENTER_CAN"]
    static let errorIsRefusal = false

    public var reader: Reader
    /// Whether the CAN is an answer, too.
    public var acceptsCAN: Bool
    /// `malformed`: the last value was not sent to the document. `wrongPassword`: the document has refused it.
    public var error: String?
    /// The same as a sentence.
    public var message: String?
    public var number: Int?

    public var refusal: ClientError? { error.map(ClientError.refused) }
}

extension DocumentQuestion {
    /// A question without `passwords` is about another kind of card.
    init(_ json: JSON) throws(Malformed) {
        reader = try json.required("reader", as: Reader.init(entry:))
        acceptsCAN = try json.required("passwords", as: \.strings).contains("can")
        error = json["error"]?.string
        message = json["message"]?.string
        number = json["question"]?.int
    }
}

/// What opens a document.
public enum DocumentKey: Sendable {
    /// The lines of the machine readable zone, ASCII, with or without line ends.
    case mrz(SecretBox)
    /// The card access number: six digits.
    case can(SecretBox)
}

/// Answers the questions of `readDocument`.
public protocol DocumentUser: WorkflowUser {
    /// ENTER_MRZ and ENTER_CAN: returns what is printed on the document, or nil to cancel the workflow. It is sent once
    /// and wiped. After a wrong value the question comes again with `error`.
    func key(for question: DocumentQuestion) async -> DocumentKey?
}

extension DocumentQuestion: Question {
    var cardReader: String? { reader.name }

    func answer(by user: any DocumentUser, after _: Submission?) async -> Answer? {
        switch await user.key(for: self) {
        case .mrz(let box)?: Answer(command: "SET_MRZ", value: box)
        case .can(let box)?: Answer(command: "SET_CAN", value: box)
        case nil: nil
        }
    }
}

extension DaemonConnection {
    /// Reads a passport or another electronic document: runs RUN_READ_DOCUMENT from its start to its end. Cancelling
    /// the calling task cancels the workflow.
    ///
    /// - Parameters:
    ///   - reader: name of the reader to use; nil: the first with a document.
    ///   - groups: the data groups to read; nil: 1, 2, 11 and 12.
    ///   - portrait: whether the picture of DG2 is in the result.
    ///   - raw: whether the files are in the result.
    ///   - allowBAC: `never`, `whenNoPACE` or `always`; nil: `whenNoPACE`.
    ///   - user: answers the questions.
    /// - Returns: what was read. A document that is not believed is a success with the verdict `suspect`.
    /// - Throws: a refusal, `workflowRunning`, the end of the connection, or `cancelled`.
    public func readDocument(
        reader: String? = nil,
        groups: [Int]? = nil,
        portrait: Bool = true,
        raw: Bool = false,
        allowBAC: String? = nil,
        user: some DocumentUser
    ) async throws(ClientError) -> DocumentResult {
        var members = [JSON.Member("portrait", .bool(portrait)), .init("raw", .bool(raw))]
        if let reader { members.append(.init("reader", .string(reader))) }
        if let groups { members.append(.init("groups", .array(groups.map { .number(String($0)) }))) }
        if let allowBAC { members.append(.init("allowBAC", .string(allowBAC))) }
        let all = members
        return try await runWorkflow(
            until: DocumentMessage.self,
            user,
            start: await self.send("RUN_READ_DOCUMENT", all)
        )
    }

    /// GET_DOCUMENT_ANCHORS: the authorities of documents that badged trusts.
    public func documentAnchors() async throws(ClientError) -> DocumentAnchorReport {
        try await ask("GET_DOCUMENT_ANCHORS")
    }
}

/// The authorities of documents that badged trusts: DOCUMENT_ANCHORS.
public struct DocumentAnchorReport: ServerMessage, NamedMessage {
    static let names = ["DOCUMENT_ANCHORS"]

    public var folder: String
    public var authorities: Int
    /// Two letters each.
    public var countries: [String] = []
    public var links: Int = 0
    public var revocationLists: Int = 0
    /// The day of the newest file, `yyyy-MM-dd`; nil: there is none.
    public var newest: String?
    /// Why files are ignored.
    public var warnings: [String] = []
}

extension DocumentAnchorReport {
    init(_ json: JSON) throws(Malformed) {
        folder = try json.required("folder", as: \.string)
        authorities = try json.required("authorities", as: \.int)
        countries = json["countries"]?.strings ?? []
        links = json["links"]?.int ?? 0
        revocationLists = json["crls"]?.int ?? 0
        newest = json["newest"]?.string
        warnings = json["warnings"]?.strings ?? []
    }
}
