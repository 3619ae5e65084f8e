// SPDX-License-Identifier: Apache-2.0
public import Text

/// The commands for keys. docs/protocol/keys.md.
extension DaemonConnection {
    /// Sends a command for keys and returns its answer, or why it has failed.
    public func keyRequest(
        _ command: String,
        _ members: [JSON.Member] = []
    ) async throws(ClientError) -> Result<JSON, KeyFailure> {
        try Self.result(try await request(command, members))
    }

    private static func result(_ event: Event) throws(ClientError) -> Result<JSON, KeyFailure> {
        if let failure = KeyFailure(event.json), event.json["description"] != nil { return .failure(failure) }
        if let refusal = event.message.refusal { throw refusal }
        return .success(event.json)
    }

    /// GET_KEYS: the keys of the own user.
    public func doorKeys() async throws(ClientError) -> Result<[DoorKey], KeyFailure> {
        try await keyRequest("GET_KEYS").map { ($0["keys"]?.array ?? []).compactMap(DoorKey.init) }
    }

    /// NEW_KEY with the secret of one-time codes: base 32, or hexadecimal digits after `hex:`.
    public func addCodes(
        _ members: [JSON.Member],
        secret: consuming Secret
    ) async throws(ClientError) -> Result<JSON, KeyFailure> {
        try Self.result(
            try await request("NEW_KEY", members + [.init("protocol", .string("otp"))], value: secret)
        )
    }
}
