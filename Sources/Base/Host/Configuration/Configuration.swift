// SPDX-License-Identifier: GPL-3.0-or-later

/// The settings of badged.conf(5). Every line is optional. Each section is read in a file of its own.
package struct Configuration: Sendable, Equatable {
    package static let defaultPath = "/etc/badged/badged.conf"

    /// `[server] socket`
    package var socketPath: String?
    /// `[server] max_clients` and the other limits.
    package var limits = ServerLimits()
    /// `[virtual] enabled`
    package var isVirtualEnabled = false
    /// `[virtual] readers`: 1 to 64.
    package var virtualReaders = 1
    /// `[virtual] cvca`: the file with the trust point of virtual cards.
    package var virtualTrustPoint: String?
    /// `[eid] trust_anchors`: the folder with the trusted country authorities.
    package var trustAnchors = Self.defaultTrustAnchors
    /// The default folder; it may be missing.
    package static let defaultTrustAnchors = "/etc/badged/trust-anchors"
    /// `[eid] proxy`
    package var proxy = ProxyChoice.none
    /// `[eid] proxy_credentials`: the file with the name and the password for the proxy.
    package var proxyCredentials: String?
    /// `[eid] date`: the day for which certificates are checked, instead of today; for tests.
    package var date: Day?
    /// `[wallet] card_authorities`: compressed keys of the authorities of genuine Keycards; nil stands for the vendor.
    package var cardAuthorities: [[UInt8]?] = [nil]
    /// `[wallet] cards`: compressed identity keys of single Keycards of other authorities.
    package var pinnedCards: [[UInt8]] = []
    /// `[wallet] node`, `chain_id`, `node_ca` and `http_callbacks`
    package var node = NodeConfiguration()
    /// `[mpin] trusted_domains`: names of hosts; empty: clients choose.
    package var trustedDomains: [String] = []
    /// `[credentials]`
    package var credentials = CredentialConfiguration()
    /// `[keys]`
    package var keys = KeysConfiguration()
    /// `[pcsc] enabled`
    package var isPCSCEnabled = true
    /// `[nfc] enabled`
    package var isNFCEnabled = true
    /// `[nfc] devices`: connection strings of libnfc.
    package var nfcDevices: [String] = []
    /// `[activation] enabled`
    package var isActivationEnabled = false
    /// `[activation] port`
    package var activationPort: UInt16 = 24727
    /// `[activation] permissions`: the permissions of WebSocket clients.
    package var activationPermissions: Permissions = [.readers, .cards]
    /// `[activation] root_serves_all`: whether a user interface of root serves the browsers of users without one.
    package var rootServesAll = false
    /// `[activation] origins`: the origins whose pages may open a WebSocket.
    package var activationOrigins: [String] = []
    /// `[remote]`
    package var remote = RemoteConfiguration()
    /// `[ble]`
    package var radio = RadioConfiguration()
    /// `[log] level`
    package var logLevel = Log.Level.notice
    /// `[access]`
    package var access: [AccessRule] = []
    /// Warnings for the log, one line each, about lines that are ignored.
    package var warnings: [String] = []

    package init() {}

    /// Reads one line of a section. nil: there is no such section; false: the section has no such key.
    private mutating func read(
        _ section: String,
        _ key: String,
        _ value: ConfigurationValue
    ) throws(StartError) -> Bool? {
        switch section {
        case "server": try readServer(key, value)
        case "virtual": try readVirtual(key, value)
        case "pcsc": try readPCSC(key, value)
        case "nfc": try readNFC(key, value)
        case "eid": try readEID(key, value)
        case "wallet": try readWallet(key, value)
        case "mpin": try readMPin(key, value)
        case "credentials": try credentials.read(key, value)
        case "keys": try keys.read(key, value)
        case "activation": try readActivation(key, value)
        case "remote": try remote.read(key, value)
        case "ble": try radio.read(key, value)
        case "log": try readLog(key, value)
        case "access": try readAccess(key, value)
        default: nil
        }
    }

    /// Reads the file of `--config`, which must exist, or the default file, which may be missing.
    /// - Throws: `StartError` with file, line and allowed values.
    package init(path: String?) throws(StartError) {
        let file = path ?? Self.defaultPath
        guard let bytes = try INIFile.contents(of: file) else {
            guard path == nil else {
                throw .inConfiguration("there is no file \(file)", hint: "correct the path after --config")
            }
            self.init()
            return
        }
        try self.init(bytes: bytes, file: file)
    }

    /// Parses a configuration; `file` is its name for messages.
    /// - Throws: `StartError` with file, line and allowed values.
    package init(bytes: [UInt8], file: String) throws(StartError) {
        var seen: [String: Int] = [:]
        for entry in try INIFile(bytes: bytes, file: file).entries {
            let place = "\(file), line \(entry.line)"
            let name = "[\(entry.section)] \(entry.key)"
            if let first = seen.updateValue(entry.line, forKey: name) {
                warnings.append("\(place): \(name) was set in line \(first) already; this line counts")
            }
            switch try read(entry.section, entry.key, ConfigurationValue(entry.value, "\(place): \(name)")) {
            case nil: warnings.append("\(place): unknown section [\(entry.section)]")
            case false?: warnings.append("\(place): unknown key '\(entry.key)' in [\(entry.section)]")
            case true?: break
            }
        }
    }
}
