// SPDX-License-Identifier: Apache-2.0
import Text

/// The message types that this library knows, by name. A feature adds one line here.
enum MessageTable {
    private static let all: [any NamedMessage.Type] =
        // Before the questions of cards, since ENTER_CAN is of both.
        documentMessages
        + mdocMessages
        + coreMessages
        + eidMessages
        + walletMessages
        + mpinMessages
        + browserMessages
        + doorReaderMessages
        + credentialMessages
        + remoteMessages

    /// Messages of two features may have the same name, such as ENTER_PIN. Then the first type that can read a message
    /// does so.
    private static let types: [String: [any NamedMessage.Type]] = {
        let entries = all.flatMap { type in type.names.map { ($0, type) } }
        return Dictionary(entries.map { ($0, [$1]) }, uniquingKeysWith: +)
    }()

    /// Messages about badged itself, its readers and the running workflow.
    private static let coreMessages: [any NamedMessage.Type] = [
        DaemonInfo.self, APILevels.self, HealthReport.self, Reader.self, ReaderList.self, WorkflowStatus.self,
        InsertCard.self, Pause.self, SecretQuestion.self, Refusal.self, MetricsReport.self,
        CardIdentity.self, RecordingOfCard.self,
    ]

    /// The type of the messages with this name; nil for an unknown name.
    static func type(_ name: String) -> (any NamedMessage.Type)? { types[name]?.first }

    /// Reads a message. Every object has a value, if only an `UnknownMessage`.
    static func read(_ json: JSON) -> any ServerMessage {
        guard let name = json["msg"]?.string else { return UnreadableMessage(name: "", member: "msg") }
        var unreadable: UnreadableMessage?
        for type in types[name] ?? [] {
            if type.errorIsRefusal, let error = json["error"]?.string { return Refusal(name: name, error: error) }
            do {
                return try type.init(json)
            } catch {
                unreadable = unreadable ?? UnreadableMessage(name: name, member: error.text)
            }
        }
        return unreadable ?? UnknownMessage(name: name)
    }
}
