// SPDX-License-Identifier: Apache-2.0
public import Text

/// Carries commands to the SDK and its messages back. The default is `DaemonTransport`; an app can use another one, for
/// example in its tests.
public protocol SDKConnection: AnyObject, Sendable {
    /// Connects. `receive` is called for every event, one after the other, on any thread.
    func start(_ receive: @escaping @Sendable (SDKEvent) -> Void)
    /// Disconnects; `.ended(nil)` follows. Does nothing after the end.
    func stop()
    /// Sends a command after all earlier ones.
    func send(_ command: SDKCommand)
}

/// What happens on the connection to the SDK.
public enum SDKEvent: Sendable {
    /// Commands can be sent now.
    case connected
    /// A message of the SDK: a JSON object.
    case message(JSON)
    /// The connection has ended, and `start` may be called again. `error` says why and what to do; nil after `stop`.
    case ended(error: String?)
}

/// A command for the SDK.
public struct SDKCommand: Sendable {
    /// `cmd`.
    public let name: String
    /// All members except `cmd` and `value`.
    public let members: [JSON.Member]
    /// `value` of SET_PIN, SET_CAN, SET_NEW_PIN and SET_PUK. It can be taken once.
    public let value: SecretBox?

    public init(_ name: String, _ members: [JSON.Member] = [], value: SecretBox? = nil) {
        self.name = name
        self.members = members
        self.value = value
    }
}
