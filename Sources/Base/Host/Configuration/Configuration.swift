// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

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
    /// `[eid] self_information`: the address of a service that shows the data of the own card, for badgectl.
    package var selfInformation: String?
    /// `[eid] developer_mode`: whether clients may use developer mode.
    package var allowsDeveloperMode = false
    /// `[eid] automatic_pin`: whether cards that are not virtual may get a PIN without a person.
    package var allowsAutomaticPINs = false
    /// `[eid] date`: the day for which certificates are checked, instead of today; for tests.
    package var date: CalendarDay?
    /// `[documents] anchors`: the folder with the authorities of passports and other electronic documents.
    package var documentAnchors = Self.defaultDocumentAnchors
    /// The default folder; it may be missing.
    package static let defaultDocumentAnchors = "/etc/badged/csca"
    /// `[documents] crl_required`: whether an authority counts only with a current revocation list.
    package var requiresDocumentCRLs = false
    /// `[mdoc] anchors`: the folder with the authorities of mobile documents.
    package var mdocAnchors = Self.defaultMdocAnchors
    /// The default folder; it may be missing.
    package static let defaultMdocAnchors = "/etc/badged/mdoc"
    /// `[mdoc] lists`: the addresses of the lists that badged fetches.
    package var mdocLists: [String] = []
    /// `[mdoc] identities`: the keys by which the site signs its requests.
    package var mdocIdentities: [MdocIdentityFiles] = []
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
    /// The lines in force, by section and key, such as `[log] level`. Keys without a line have their defaults.
    package internal(set) var settings: [String: Setting] = [:]

    /// A line of a file.
    package struct Setting: Sendable, Equatable {
        package let value: String
        /// Such as `badged.conf, line 3`.
        package let place: String
    }

    package init() {}

    /// The keys of a section: what reads the value of each.
    typealias KeyTable = [String: SettingRule<Configuration>]

    /// The sections with fixed keys. `[access]` has the names of users and groups as keys.
    static let sections: [String: KeyTable] = [
        "server": serverKeys, "virtual": virtualKeys, "pcsc": pcscKeys, "nfc": nfcKeys, "eid": eidKeys,
        "documents": documentKeys, "mdoc": mdocKeys, "wallet": walletKeys, "mpin": mpinKeys,
        "credentials": CredentialConfiguration.table,
        "keys": KeysConfiguration.table, "activation": activationKeys, "remote": RemoteConfiguration.table,
        "ble": RadioConfiguration.table, "log": logKeys,
    ]
    private static let accessSection = "access"
    /// The names of `[access]` that are looked up when badged starts; those that are unknown, for each new client, too.
    private static let maximumAccessRules = 1000

    /// Reads the files of `--config`, which must exist, or those of the system, which may be missing.
    /// - Throws: the error of the first line that cannot be used, with file, line and allowed values.
    package init(path: String?) throws(StartError) {
        var errors: [StartError] = []
        self.init(files: SettingFiles(path), errors: &errors)
        if let error = Self.first(of: errors, in: path ?? Self.defaultPath) { throw error }
    }

    /// Reads files, and appends the error of each line that cannot be used, also of one that a later line replaces.
    package init(files: SettingFiles, errors: inout [StartError]) {
        self.init(files.contents(&errors), errors: &errors)
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
        func refusal(_ reason: String?, mayPass: Bool = false) -> StartError {
            ConfiguredPath.refusal(path, reason, of: "[virtual] cvca", mayPass: mayPass)
        }
        switch PlainFile.read(path, limit: 1 << 18) {
        case .bytes(let bytes): return bytes
        case .missing: throw refusal(nil)
        case .tooLong: throw refusal("it is longer than 256 KiB")
        case .failed(let reason): throw refusal(reason, mayPass: PlainFile.mayPass())
        }
    }

    /// Parses a configuration; `file` is its name for messages.
    init(bytes: [UInt8], file: String) throws(StartError) {
        var errors: [StartError] = []
        self.init([(file, bytes)], errors: &errors)
        if let error = Self.first(of: errors, in: file) { throw error }
    }

    private init(_ files: [(path: String, bytes: [UInt8])], errors: inout [StartError]) {
        // The names with the numbers of their last lines, because the order of [access] is told to people.
        var order: [String: Int] = [:]
        for file in files { Self.read(file.bytes, file.path, &settings, &order, &errors) }
        for (name, _) in order.sorted(by: { $0.value < $1.value }) {
            guard let setting = settings[name], let (section, key) = Self.parts(of: name) else { continue }
            // What is wrong with a value was reported with its line.
            try? apply(section, key, ConfigurationValue(setting.value, "\(setting.place): \(name)"))
            guard access.count > Self.maximumAccessRules else { continue }
            access.removeLast()
            errors.append(
                .inConfiguration(
                    "\(setting.place): [access] has more than \(Self.maximumAccessRules) lines",
                    hint: "grant permissions to groups instead of users"
                )
            )
            return
        }
    }

    /// `[log] level` as `log` and `level`.
    private static func parts(of name: String) -> (section: String, key: String)? {
        guard let end = name.firstIndex(of: "]") else { return nil }
        return (String(name[name.index(after: name.startIndex)..<end]), String(name[end...].dropFirst(2)))
    }

    private mutating func apply(_ section: String, _ key: String, _ value: ConfigurationValue) throws(StartError) {
        if section == Self.accessSection { return try readAccess(key, value) }
        guard let rule = Self.sections[section]?[key] else { return }
        try rule.read(&self, value)
    }

    /// Reads the lines of one file. A key without a value gets its default again.
    private static func read(
        _ bytes: [UInt8],
        _ file: String,
        _ settings: inout [String: Setting],
        _ order: inout [String: Int],
        _ errors: inout [StartError]
    ) {
        var section: String?
        // The lines in which sections and keys were seen first.
        var seen: [String: Int] = [:]
        let before = order.values.max() ?? 0
        for (number, content) in INIFile(bytes: bytes).lines {
            let place = "\(file), line \(number)"
            do throws(StartError) {
                switch content {
                case .fault(let text, let hint): throw .inConfiguration("\(place): \(text)", hint: hint)
                case .section(let name):
                    section = name
                    guard name == accessSection || sections[name] != nil else {
                        throw unknown("\(place): unknown section [\(name)]", name, sections.keys + [accessSection])
                    }
                    try note("[\(name)]", number, place, &seen, "move its lines to the first one")
                case .value(let key, let text):
                    guard let section else { throw .beforeSections(key, place, "badged.conf(5)") }
                    // The error of an unknown section is at its header.
                    guard section == accessSection || sections[section] != nil else { continue }
                    if section != accessSection, let keys = sections[section], keys[key] == nil {
                        throw unknown("\(place): unknown key '\(key)' in [\(section)]", key, keys.keys)
                    }
                    let name = "[\(section)] \(key)"
                    var trial = Configuration()
                    if !text.isEmpty || section == accessSection && settings[name] == nil {
                        try trial.apply(section, key, ConfigurationValue(text, "\(place): \(name)"))
                    }
                    try note(name, number, place, &seen, "leave one of the two lines")
                    settings[name] = text.isEmpty ? nil : Setting(value: text, place: place)
                    order[name] = before + number
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

    /// The lines in force, each as `[section] key = value`, sorted. Hosts with equal settings have equal lines.
    package var effectiveLines: [(text: String, place: String)] {
        settings.sorted { $0.key < $1.key }.map { ("\($0.key) = \($0.value.value)", $0.value.place) }
    }

    /// The effective settings as a file, with the place of each line. A key without a value has no default.
    package var printed: String {
        var lines: [String] = []
        let sections = Self.sections.mapValues { Array($0.keys) }
        let subjects = settings.keys.compactMap(Self.parts).filter { $0.section == Self.accessSection }.map(\.key)
        for (section, keys) in (sections.sorted { $0.key < $1.key }) + [(Self.accessSection, subjects)] {
            lines.append("[\(section)]")
            for key in Set(keys + (section == Self.accessSection ? ["default"] : [])).sorted() {
                let name = "[\(section)] \(key)"
                let setting = settings[name]
                lines.append("# \(setting?.place ?? "default")")
                lines.append("\(key) = \(setting?.value ?? Self.defaults[name] ?? "")")
            }
        }
        return lines.map { $0 + "\n" }.joined()
    }

    /// The settings that differ from those of another configuration.
    package func changes(from other: Configuration) -> [String] {
        Set(settings.keys).union(other.settings.keys).filter {
            settings[$0]?.value != other.settings[$0]?.value
        }.sorted()
    }

    /// Whether SIGHUP applies a setting.
    package static func isLive(_ setting: String) -> Bool {
        setting.hasPrefix("[\(accessSection)] ")
            || [
                "[log] level", "[nfc] devices", "[credentials] allow_list", "[credentials] allow_list_watch",
            ].contains(setting)
    }

    /// Adds the place of the line that is wrong to an error.
    package func placed(_ error: StartError) -> StartError {
        guard let line = error.setting.flatMap({ settings[$0] }) else { return error }
        var error = error
        error.message = "\(line.place): \(error.message)"
        // They do not name the line.
        error.phrases = nil
        return error
    }

    /// Returns the first error, with the number of the others.
    private static func first(of errors: [StartError], in file: String) -> StartError? {
        guard var first = errors.first else { return nil }
        if errors.count > 1 { first.hint += "; for all \(errors.count) errors: badged --check-config \(file)" }
        return first
    }
}
