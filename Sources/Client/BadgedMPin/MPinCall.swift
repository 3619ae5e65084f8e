// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Text

/// A call of the SDK: the command that badged gets, and how its result is read.
struct MPinCall<Value: Sendable>: Sendable {
    let command: String
    let members: [JSON.Member]
    /// Whether the command is a workflow; otherwise badged answers at once.
    let isWorkflow: Bool
    let factors: Factors
    let read: @Sendable (MpinStatus, JSON) throws(ClientError) -> Value

    private init(
        _ command: String,
        _ user: IUser?,
        _ members: KeyValuePairs<String, JSON>,
        isWorkflow: Bool,
        _ factors: Factors,
        _ read: @escaping @Sendable (MpinStatus, JSON) throws(ClientError) -> Value
    ) {
        let name = user.map { [JSON.Member("userId", .string($0.identity))] } ?? []
        self.members = name + members.map { JSON.Member($0.key, $0.value) }
        self.command = command
        self.isWorkflow = isWorkflow
        self.factors = factors
        self.read = read
    }

    /// A command that is answered at once.
    static func request(
        _ command: String,
        _ user: IUser? = nil,
        _ members: KeyValuePairs<String, JSON> = [:],
        read: @escaping @Sendable (MpinStatus, JSON) throws(ClientError) -> Value
    ) -> MPinCall { MPinCall(command, user, members, isWorkflow: false, Factors(), read) }

    /// A command that asks a server, or the user.
    static func workflow(
        _ command: String,
        _ user: IUser? = nil,
        _ members: KeyValuePairs<String, JSON> = [:],
        _ factors: Factors = Factors(),
        read: @escaping @Sendable (MpinStatus, JSON) throws(ClientError) -> Value
    ) -> MPinCall { MPinCall(command, user, members, isWorkflow: true, factors, read) }
}

extension MPinCall where Value == MpinStatus {
    static func request(
        _ command: String,
        _ user: IUser? = nil,
        _ members: KeyValuePairs<String, JSON> = [:]
    ) -> MPinCall { request(command, user, members) { status, _ in status } }

    static func workflow(
        _ command: String,
        _ user: IUser? = nil,
        _ members: KeyValuePairs<String, JSON> = [:],
        _ factors: Factors = Factors()
    ) -> MPinCall { workflow(command, user, members, factors) { status, _ in status } }
}

/// The values that a call gives. Each is used once.
struct Factors: Sendable {
    private(set) var pin: SecretBox?
    /// The second factor of MPinMFA.
    private(set) var second: SecretBox?

    init() {}

    init(_ pin: consuming Secret) { self.pin = SecretBox(pin) }

    init(_ pin: consuming Secret, _ second: consuming Secret?) {
        self.pin = SecretBox(pin)
        if let second { self.second = SecretBox(second) }
    }

    var hasSecond: JSON { .bool(second != nil) }
}
