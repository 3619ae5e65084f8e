// SPDX-License-Identifier: Apache-2.0
import Text

/// Another device that lends readers to this host, or borrows those of this host.
public struct RemoteDevice: Sendable, Equatable {
    /// SHA-256 of the certificate of the device: 64 lower-case digits. Only the fingerprint identifies a device.
    public var fingerprint: String
    /// The name that the device gives itself. Nothing authenticates it.
    public var name: String
    public var isPaired = false
    public var isConnected = false
    /// Whether the device waits for a pairing; nil for a device that has not announced itself.
    public var isPairing: Bool?
    /// Whether a paired device no longer accepts this host: remove the pairing, then pair again.
    public var isRefusing = false
}

extension RemoteDevice {
    /// An entry of REMOTE; nil when it has no fingerprint.
    fileprivate init?(_ json: JSON) {
        guard let fingerprint = json["fingerprint"]?.string else { return nil }
        self.fingerprint = fingerprint
        name = json["name"]?.string ?? ""
        isPaired = json["paired"]?.bool ?? false
        isConnected = json["connected"]?.bool ?? false
        isPairing = json["pairing"]?.bool
        isRefusing = json["refuses"]?.bool ?? false
    }
}

/// The devices with which readers are shared, and who uses which reader: REMOTE. It also comes as an event when
/// something changes.
public struct RemoteReaders: ServerMessage, NamedMessage {
    static let names = ["REMOTE"]

    /// Whether other devices may lend their readers to this host.
    public var isEnabled: Bool
    /// Whether this host lends its readers.
    public var isShared: Bool
    /// The fingerprint of this host; nil before it has a key, and for a host that lends no readers.
    public var fingerprint: String?
    /// The devices that lend their readers: those that are paired, and those that announce themselves now.
    public var lenders: [RemoteDevice] = []
    /// The devices that may use the readers of this host.
    public var borrowers: [RemoteDevice] = []
    /// The names of the readers whose card the connected borrower uses.
    public var used: [String] = []
    /// Whether this host waits for a pairing.
    public var isPairing = false
}

extension RemoteReaders {
    init(_ json: JSON) throws(Malformed) {
        isEnabled = try json.required("enabled", as: \.bool)
        isShared = try json.required("share", as: \.bool)
        fingerprint = json["fingerprint"]?.string
        lenders = (json["lenders"]?.array ?? []).compactMap(RemoteDevice.init)
        borrowers = (json["borrowers"]?.array ?? []).compactMap(RemoteDevice.init)
        used = json["used"]?.strings ?? []
        isPairing = json["pairing"]?.bool ?? false
    }
}

/// The messages about readers over the network.
let remoteMessages: [any NamedMessage.Type] = [
    RemoteReaders.self, PairingMessage.self, PairingCode.self, PairingCodeQuestion.self,
]

/// The commands for readers over the network. docs/protocol/remote.md.
extension DaemonConnection {
    /// GET_REMOTE.
    public func remoteReaders() async throws(ClientError) -> RemoteReaders { try await ask("GET_REMOTE") }

    /// GET_REMOTE with the answer as an event, in its place among the changes.
    @discardableResult
    public func askForRemoteReaders() async throws(ClientError) -> RequestID { try await send("GET_REMOTE") }

    /// REMOVE_REMOTE: removes the pairing with the device that has this fingerprint. The device gets no message.
    @discardableResult
    public func removeRemote(_ fingerprint: String) async throws(ClientError) -> RemoteReaders {
        try await ask("REMOVE_REMOTE", [.init("fingerprint", .string(fingerprint))])
    }
}
