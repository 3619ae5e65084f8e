// SPDX-License-Identifier: Apache-2.0
public import Secrets
public import Text
import Wire

/// What carries commands to the SDK and its messages back. The controller's own is `DaemonTransport`; an app may bring
/// another, for its tests say.
public protocol SDKConnection: AnyObject, Sendable {
    /// Begins. `receive` gets everything that happens, one after the other, from any thread.
    func start(_ receive: @escaping @Sendable (SDKEvent) -> Void)
    /// Ends; `.ended(nil)` follows. Does nothing when it has ended.
    func stop()
    /// Sends a command after all earlier ones.
    func send(_ command: SDKCommand)
}

public enum SDKEvent: Sendable {
    /// Commands are taken.
    case connected
    /// One message, an object.
    case message(JSON)
    /// Nothing more will come, and `start` may be called again. `error`: what happened and what to do; nil after `stop`.
    case ended(error: String?)
}

public struct SDKCommand: Sendable {
    /// `cmd`.
    public let name: String
    /// All others but `value`.
    public let members: [JSON.Member]
    /// `value` of SET_PIN, SET_CAN, SET_NEW_PIN and SET_PUK: to be taken once, and nowhere kept.
    public let value: SecretBox?

    public init(_ name: String, _ members: [JSON.Member] = [], value: SecretBox? = nil) {
        (self.name, self.members, self.value) = (name, members, value)
    }
}
