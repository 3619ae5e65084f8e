// SPDX-License-Identifier: Apache-2.0
import Text

/// What the card in a reader has said before any secret, or its NFC board: CARD_RECORDING. docs/recordings.md.
public struct RecordingOfCard: ServerMessage, NamedMessage {
    static let names = ["CARD_RECORDING"]

    /// The name of the reader.
    public var reader: String
    /// The lines of the recording.
    public var recording: String
    /// Why the recording ends early, or why there is none of the board; nil: it is whole.
    public var fault: String?

    init(_ json: JSON) throws(Malformed) {
        reader = try json.required("name", as: \.string)
        recording = try json.required("recording", as: \.string)
        fault = json["fault"]?.string
    }
}

extension DaemonConnection {
    /// RECORD_CARD: records what the card in a reader says before any secret. Needs the permission `cards`. With
    /// `unchanged` numbers and the data of the holder are recorded as they are, for a card with made-up data only; this
    /// needs the permissions `documents` and `credentials`, too.
    public func recordCard(in reader: String, unchanged: Bool = false) async throws(ClientError) -> RecordingOfCard {
        let more: [JSON.Member] = unchanged ? [.init("unchanged", .bool(true))] : []
        return try await ask("RECORD_CARD", [.init("name", .string(reader))] + more)
    }

    /// RECORD_CARD with `board`: opens an NFC board anew, and records what it says. The reader is removed, and added again.
    /// Needs the permission `cards`.
    public func recordBoard(of reader: String) async throws(ClientError) -> RecordingOfCard {
        try await ask("RECORD_CARD", [.init("name", .string(reader)), .init("board", .bool(true))])
    }
}
