// SPDX-License-Identifier: Apache-2.0
import Text
import Wire

/// `simulator` of SET_CARD: files and keys of a virtual card. Without files it is the smallest card there is, not the
/// default one.
public struct Simulator: Sendable, Equatable, Encodable {
    let files: [SimulatorFile]
    let keys: [SimulatorKey]?

    public init(withFiles files: [SimulatorFile], withKeys keys: [SimulatorKey]? = nil) {
        (self.files, self.keys) = (files, keys)
    }

    var json: JSON {
        var members = [JSON.Member("files", .array(files.map(\.json)))]
        if let keys { members.append(.init("keys", .array(keys.map(\.json)))) }
        return .object(members)
    }
}

/// A file of the card; identifiers and content in hexadecimal digits.
public struct SimulatorFile: Sendable, Equatable, Encodable {
    let fileId: String
    let shortFileId: String
    let content: String

    public init(withFileId fileId: String, withShortFileId shortFileId: String, withContent content: String) {
        (self.fileId, self.shortFileId, self.content) = (fileId, shortFileId, content)
    }

    /// The same place in the file system; what the file holds does not count.
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

/// A key of restricted identification: PKCS #8 in hexadecimal digits.
public struct SimulatorKey: Sendable, Equatable, Encodable {
    let id: Int
    let content: String

    public init(withId id: Int, withContent content: String) {
        (self.id, self.content) = (id, content)
    }

    var json: JSON {
        .object([.init("id", .number(String(id))), .init("content", .string(content))])
    }
}
