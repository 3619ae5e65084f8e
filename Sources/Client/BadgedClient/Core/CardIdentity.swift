// SPDX-License-Identifier: Apache-2.0
import Text

/// What the card in a reader has said about itself: CARD_IDENTITY. docs/protocol/readers.md.
public struct CardIdentity: ServerMessage, NamedMessage {
    static let names = ["CARD_IDENTITY"]

    /// An application that the card has selected.
    public struct Application: Sendable, Equatable {
        /// The identifier in hexadecimal digits.
        public var aid: String
        public var name: String
    }

    /// The name of the reader.
    public var reader: String
    /// The answer to reset in hexadecimal digits.
    public var answerToReset: String
    /// The number of a contactless card; nil: it has none, or this user may not see it.
    public var uid: String?
    public var applications: [Application]
    /// Why the card could not be asked for its applications; nil: it was, or a feature knows the card.
    public var fault: String?

    init(_ json: JSON) throws(Malformed) {
        reader = try json.required("name", as: \.string)
        answerToReset = try json.required("atr", as: \.string)
        uid = json["uid"]?.string
        applications = (json["applications"]?.array ?? []).compactMap { entry in
            guard let aid = entry["aid"]?.string, let name = entry["name"]?.string else { return nil }
            return Application(aid: aid, name: name)
        }
        fault = json["fault"]?.string
    }
}

extension DaemonConnection {
    /// IDENTIFY_CARD: asks the card in a reader who it is. Needs the permission `cards`, and `credentials` for the
    /// number of the card.
    public func identifyCard(in reader: String) async throws(ClientError) -> CardIdentity {
        try await ask("IDENTIFY_CARD", [.init("name", .string(reader))])
    }
}
