// SPDX-License-Identifier: GPL-3.0-or-later
import Text

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
    /// `[eid] developer_mode`: whether clients may use developer mode.
    package var allowsDeveloperMode = false
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
    /// `[mpin] private_servers`: whether requests may go to this computer and to private networks.
    package var allowsPrivateMPinServers = false
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
    /// The place of each line, such as `badged.conf, line 3` for `[log] level`.
    var places: [String: String] = [:]

    package init() {}

    /// The keys of a section: what reads the value of each.
    typealias KeyTable = [String: @Sendable (inout Configuration, ConfigurationValue) throws(StartError) -> Void]

    /// The sections with fixed keys. `[access]` has the names of users and groups as keys.
    static let sections: [String: KeyTable] = [
        "server": serverKeys, "virtual": virtualKeys, "pcsc": pcscKeys, "nfc": nfcKeys, "eid": eidKeys,
        "wallet": walletKeys, "mpin": mpinKeys, "credentials": CredentialConfiguration.table,
        "keys": KeysConfiguration.table, "activation": activationKeys, "remote": RemoteConfiguration.table,
        "ble": RadioConfiguration.table, "log": logKeys,
    ]
    private static let accessSection = "access"

    /// Reads the file of `--config`, which must exist, or the default file, which may be missing.
    /// - Throws: the error of the first line that cannot be used, with file, line and allowed values.
    package init(path: String?) throws(StartError) {
        var errors: [StartError] = []
        self.init(path: path, errors: &errors)
        if let error = Self.first(of: errors, in: path ?? Self.defaultPath) { throw error }
    }

    /// Reads the same file, and appends the error of each line that cannot be used.
    package init(path: String?, errors: inout [StartError]) {
        let file = path ?? Self.defaultPath
        do throws(StartError) {
            guard let bytes = try INIFile.contents(of: file, checksOwner: true) else {
                guard path == nil else {
                    throw .inConfiguration("there is no file \(file)", hint: "correct the path after --config")
                }
                self.init()
                return
            }
            self.init(bytes: bytes, file: file, errors: &errors)
        } catch {
            self.init()
            errors.append(error)
        }
    }

    /// Reads the file that the command line names; its other options override the lines of the file.
    /// - Throws: the error of the first line that cannot be used.
    package init(_ options: CommandLineOptions) throws(StartError) {
        try self.init(path: options.configurationPath)
        override(by: options)
    }

    package mutating func override(by options: CommandLineOptions) {
        isVirtualEnabled = isVirtualEnabled || options.isVirtual
        isPCSCEnabled = isPCSCEnabled && !options.isWithoutPCSC
        isNFCEnabled = isNFCEnabled && !options.isWithoutNFC
        radio.isEnabled = radio.isEnabled && !options.isWithoutBLE
        logLevel = options.logLevel ?? logLevel
    }

    /// Reads the file of `[virtual] cvca`; nil without that line. The virtual cards check its content.
    package func readVirtualTrustPoint() throws(StartError) -> [UInt8]? {
        guard let path = virtualTrustPoint else { return nil }
        guard let bytes = try INIFile.contents(of: path) else {
            throw .inConfiguration("there is no file \(path)", hint: "correct [virtual] cvca in the configuration")
        }
        return bytes
    }

    /// Parses a configuration; `file` is its name for messages.
    init(bytes: [UInt8], file: String) throws(StartError) {
        var errors: [StartError] = []
        self.init(bytes: bytes, file: file, errors: &errors)
        if let error = Self.first(of: errors, in: file) { throw error }
    }

    private init(bytes: [UInt8], file: String, errors: inout [StartError]) {
        var section: String?
        // The lines in which sections and keys were seen first.
        var seen: [String: Int] = [:]
        for (number, content) in INIFile(bytes: bytes).lines {
            let place = "\(file), line \(number)"
            do throws(StartError) {
                switch content {
                case .fault(let text, let hint): throw .inConfiguration("\(place): \(text)", hint: hint)
                case .section(let name):
                    section = name
                    guard name == Self.accessSection || Self.sections[name] != nil else {
                        throw Self.unknown("\(place): unknown section [\(name)]", name, Self.sections.keys + ["access"])
                    }
                    try Self.note("[\(name)]", number, place, &seen, "move its lines to the first one")
                case .value(let key, let text):
                    guard let section else {
                        throw .inConfiguration(
                            "\(place): '\(key)' stands before the first section",
                            hint: "move it below its [section]; see badged.conf(5)"
                        )
                    }
                    let name = "[\(section)] \(key)"
                    let value = ConfigurationValue(text, "\(place): \(name)")
                    if section == Self.accessSection {
                        try readAccess(key, value)
                    } else {
                        // The error of an unknown section is at its header.
                        guard let keys = Self.sections[section] else { continue }
                        guard let read = keys[key] else {
                            throw Self.unknown("\(place): unknown key '\(key)' in [\(section)]", key, keys.keys)
                        }
                        try read(&self, value)
                    }
                    try Self.note(name, number, place, &seen, "leave one of the two lines")
                    places[name] = place
                }
            } catch {
                errors.append(error)
            }
        }
    }

    /// Notes where a section or key is.
    /// - Throws: an error if there was one before, since it is not clear which of them counts.
    private static func note(
        _ name: String,
        _ number: Int,
        _ place: String,
        _ seen: inout [String: Int],
        _ advice: String
    ) throws(StartError) {
        guard let first = seen.updateValue(number, forKey: name) else { return }
        throw .inConfiguration("\(place): \(name) is in line \(first) already", hint: advice)
    }

    private static func unknown(_ message: String, _ word: String, _ known: some Sequence<String>) -> StartError {
        .inConfiguration(message, hint: Suggestion.question(word, among: known) + "see badged.conf(5)")
    }

    /// Adds the place of the line that an error names to the error.
    package func placed(_ error: StartError) -> StartError {
        let named = places.filter { error.message.contains($0.key) || error.hint.contains($0.key) }
        guard let line = named.max(by: { $0.key.count < $1.key.count }) else { return error }
        return StartError("\(line.value): \(error.message)", hint: error.hint, exitCode: error.exitCode)
    }

    /// Returns the first error, with the number of the others.
    private static func first(of errors: [StartError], in file: String) -> StartError? {
        guard var first = errors.first else { return nil }
        if errors.count > 1 { first.hint += "; for all \(errors.count) errors: badged --check-config \(file)" }
        return first
    }
}
