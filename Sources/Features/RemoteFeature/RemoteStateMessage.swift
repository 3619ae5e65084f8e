// SPDX-License-Identifier: GPL-3.0-or-later
import ReadersRemote
import Server
import Text

/// REMOTE: the own key, the devices, and who uses which reader.
struct RemoteStateMessage: Message, Equatable {
    static let name: StaticString = "REMOTE"

    struct Device: Equatable {
        let device: RemoteDevice
        let isPaired: Bool
        let isConnected: Bool
        /// Whether the device waits for a pairing; nil for a device that has not announced itself.
        var isPairing: Bool?
        /// Whether a paired device no longer accepts this host.
        var isRefusing = false
    }

    var isEnabled = false
    var isShared = false
    /// The own fingerprint, if there is a key.
    var fingerprint: String?
    var error: Phrase?
    /// The devices that lend readers.
    var lenders: [Device] = []
    /// The devices that borrow readers of this host.
    var borrowers: [Device] = []
    /// The readers that the connected borrower uses.
    var used: [String] = []
    /// Whether this host waits for a pairing.
    var isPairing = false

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("enabled", isEnabled)
        object.member("share", isShared)
        if let fingerprint { object.member("fingerprint", fingerprint) }
        object.array("lenders", lenders) { Self.write($1, to: &$0) }
        object.array("borrowers", borrowers) { Self.write($1, to: &$0) }
        object.member("used", used)
        object.member("pairing", isPairing)
    }

    private static func write(_ device: Device, to array: inout JSONWriter) {
        array.object { entry in
            entry.member("fingerprint", device.device.fingerprint)
            entry.member("name", device.device.name)
            entry.member("paired", device.isPaired)
            entry.member("connected", device.isConnected)
            if let isPairing = device.isPairing { entry.member("pairing", isPairing) }
            if device.isRefusing { entry.member("refuses", true) }
        }
    }
}

/// PAIR_READER, OPEN_PAIRING: the start or the end of a pairing.
struct PairingMessage: Message {
    static let name: StaticString = "PAIR_READER"
    var msg = Self.name
    /// nil at the start.
    var success: Bool?
    /// The other device, as far as it is known.
    var device: RemoteDevice?
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let success { object.member("success", success) }
        if let error { object.member("error", error) }
        guard let device else { return }
        object.member("fingerprint", device.fingerprint)
        object.member("name", device.name)
    }
}
