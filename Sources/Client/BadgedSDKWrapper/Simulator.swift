// SPDX-License-Identifier: Apache-2.0
import Text

/// Files and keys of a virtual card: `simulator` of SET_CARD. Without files the card has only the files that every card
/// has; it is not the reader's own card.
public struct Simulator: Sendable, Equatable, Encodable {
    let files: [SimulatorFile]
    let keys: [SimulatorKey]?

    public init(withFiles files: [SimulatorFile], withKeys keys: [SimulatorKey]? = nil) {
        self.files = files
        self.keys = keys
    }

    var json: JSON {
        var members = [JSON.Member("files", .array(files.map(\.json)))]
        if let keys { members.append(.init("keys", .array(keys.map(\.json)))) }
        return .object(members)
    }
}

/// A file of the card. Identifiers and content are hexadecimal digits.
public struct SimulatorFile: Sendable, Equatable, Encodable {
    let fileId: String
    let shortFileId: String
    let content: String

    public init(withFileId fileId: String, withShortFileId shortFileId: String, withContent content: String) {
        self.fileId = fileId
        self.shortFileId = shortFileId
        self.content = content
    }

    /// Compares the identifiers, not the content.
    public static func == (left: SimulatorFile, right: SimulatorFile) -> Bool {
        left.fileId == right.fileId && left.shortFileId == right.shortFileId
    }

    var json: JSON {
        .object([
            .init("fileId", .string(fileId)), .init("shortFileId", .string(shortFileId)),
            .init("content", .string(content)),
        ])
    }
}

/// A key for restricted identification: PKCS #8 in hexadecimal digits.
public struct SimulatorKey: Sendable, Equatable, Encodable {
    let id: Int
    let content: String

    public init(withId id: Int, withContent content: String) {
        self.id = id
        self.content = content
    }

    var json: JSON {
        .object([.init("id", .number(String(id))), .init("content", .string(content))])
    }
}
