// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The settings of badged.conf(5). Every line is optional.
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
            let value = Value(text: entry.value, place: "\(place): \(name)")
            switch (entry.section, entry.key) {
            case ("server", "socket"): socketPath = try value.absolutePath()
            case ("server", "max_clients"): limits.clients = try value.number(in: 1...100_000)
            case ("server", "max_clients_per_user"): limits.clientsPerUser = try value.number(in: 1...100_000)
            case ("server", "max_workflows"): limits.workflows = try value.number(in: 1...10_000)
            case ("server", "max_workflows_per_user"): limits.workflowsPerUser = try value.number(in: 1...10_000)
            case ("server", "prompt_timeout"): limits.promptTimeout = .seconds(try value.number(in: 10...86_400))
            case ("virtual", "enabled"): isVirtualEnabled = try value.bool()
            case ("virtual", "readers"): virtualReaders = try value.number(in: 1...64)
            case ("virtual", "cvca"): virtualTrustPoint = value.text.isEmpty ? nil : try value.absolutePath()
            case ("eid", "trust_anchors"): trustAnchors = try value.absolutePath()
            case ("eid", "proxy"): proxy = try value.proxy()
            case ("eid", "proxy_credentials"):
                proxyCredentials = value.text.isEmpty ? nil : try value.absolutePath()
            case ("eid", "date"): date = value.text.isEmpty ? nil : try value.day()
            case ("wallet", "card_authorities"): cardAuthorities = try value.cardAuthorities()
            case ("wallet", "cards"): pinnedCards = try value.cardKeys()
            case ("wallet", "node"): node.address = value.text.isEmpty ? nil : try value.webAddress()
            case ("wallet", "chain_id"): node.chainID = try value.chainID()
            case ("wallet", "node_ca"): node.authorityFile = value.text.isEmpty ? nil : try value.absolutePath()
            case ("wallet", "http_callbacks"): node.allowsHTTPCallbacks = try value.bool()
            case ("mpin", "trusted_domains"): trustedDomains = value.text.isEmpty ? [] : value.words
            case ("credentials", "site"): credentials.site = try value.identifier()
            case ("credentials", "location"): credentials.location = try value.identifier()
            case ("credentials", "issuers"): credentials.issuers = try value.issuers()
            case ("credentials", "validated"): credentials.isValidated = try value.bool()
            case ("keys", "issuer"): keys.issuer = value.text.isEmpty ? nil : try value.issuer()
            case ("keys", "issuer_keys"): keys.fingerprints = try value.fingerprints()
            case ("keys", "issuer_ca"): keys.authorityFile = value.text.isEmpty ? nil : try value.absolutePath()
            case ("pcsc", "enabled"): isPCSCEnabled = try value.bool()
            case ("nfc", "enabled"): isNFCEnabled = try value.bool()
            case ("nfc", "devices"): nfcDevices = try value.text.isEmpty ? [] : value.connectionStrings()
            case ("activation", "enabled"): isActivationEnabled = try value.bool()
            case ("activation", "port"):
                activationPort = UInt16(truncatingIfNeeded: try value.number(in: 1...65_535))
            case ("activation", "permissions"): activationPermissions = try value.permissions()
            case ("activation", "root_serves_all"): rootServesAll = try value.bool()
            case ("activation", "origins"): activationOrigins = try value.origins()
            case ("remote", "enabled"): remote.isEnabled = try value.bool()
            case ("remote", "share"): remote.isShared = try value.bool()
            case ("remote", "readers"): remote.readers = value.list
            case ("remote", "interfaces"): remote.interfaces = try value.interfaces()
            case ("remote", "name"): remote.name = value.text.isEmpty ? nil : value.text
            case ("ble", "enabled"): radio.isEnabled = try value.bool()
            case ("ble", "backend"): radio.backend = try value.word()
            case ("ble", "replay"): radio.replay = try value.absolutePath()
            case ("ble", "sensitivity"): radio.sensitivity = try value.word()
            case ("ble", "code_encoding"): radio.codeEncoding = try value.word()
            case ("ble", "silence"): radio.silence = try value.number(in: 5...3600)
            case ("ble", "may_disconnect"): radio.mayDisconnect = try value.bool()
            case ("ble", "limit_proximity"), ("ble", "limit_motion"), ("ble", "limit_seamless"),
                ("ble", "limit_application"), ("ble", "limit_enhanced_tap"):
                let type = RadioConfiguration.limitKeys[entry.key] ?? entry.key
                radio.limits[type] = try value.number(in: -100 ... -20)
            case ("log", "level"): logLevel = try value.logLevel()
            case ("access", let key):
                let rule = AccessRule(try value.subject(key), try value.permissions())
                access.removeAll { $0.subject == rule.subject }
                access.append(rule)
            case ("server", _), ("virtual", _), ("eid", _), ("keys", _), ("credentials", _), ("pcsc", _), ("nfc", _),
                ("ble", _), ("activation", _), ("remote", _), ("log", _):
                warnings.append("\(place): unknown key '\(entry.key)' in [\(entry.section)]")
            default:
                warnings.append("\(place): unknown section [\(entry.section)]")
            }
        }
    }

    /// A value and its position in the file, for messages.
    private struct Value {
        var text: String
        var place: String

        func refuse(_ allowed: String) -> StartError {
            .inConfiguration("\(place) cannot be '\(text)'", hint: "allowed: \(allowed)")
        }

        func bool() throws(StartError) -> Bool {
            switch text.lowercased() {
            case "yes", "true", "on", "1": true
            case "no", "false", "off", "0": false
            default: throw refuse("yes, no")
            }
        }

        func number(in range: ClosedRange<Int>) throws(StartError) -> Int {
            guard let number = Int(text), range.contains(number) else {
                throw refuse("a number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }

        func word<Word: RawRepresentable & CaseIterable>() throws(StartError) -> Word where Word.RawValue == String {
            guard let word = Word(rawValue: text) else {
                throw refuse(Word.allCases.map(\.rawValue).joined(separator: ", "))
            }
            return word
        }

        func absolutePath() throws(StartError) -> String {
            guard text.hasPrefix("/") else { throw refuse("a path that begins with /") }
            return text
        }

        /// How connections to services go out.
        func proxy() throws(StartError) -> ProxyChoice {
            switch text {
            case "none": return .none
            case "environment": return .environment
            default:
                guard !text.contains("@") else {
                    // The text is not repeated, since it may hold a password.
                    throw .inConfiguration(
                        "\(place) has a name or a password",
                        hint: "put NAME:PASSWORD into a file of its own, and name the file in proxy_credentials"
                    )
                }
                guard text.hasPrefix("http://") else { throw refuse("none, environment, http://HOST:PORT") }
                return .address(text)
            }
        }

        /// A day as `yyyy-MM-dd`. Certificates of cards have days of the years 2000 to 2099.
        func day() throws(StartError) -> Day {
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            let digits = parts.joined().utf8
            guard parts.map(\.count) == [4, 2, 2], digits.allSatisfy({ (0x30...0x39).contains($0) }),
                let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2]),
                let date = Day(year: year, month: month, day: day)
            else { throw refuse("a day as in 2026-11-21, of the years 2000 to 2099") }
            return date
        }

        /// Connection strings of libnfc: a driver name, optionally followed by colons and parameters.
        func connectionStrings() throws(StartError) -> [String] {
            var strings: [String] = []
            for word in text.split(separator: ",", omittingEmptySubsequences: false) {
                let string = String(INIFile.trim(word))
                guard !string.isEmpty, string.utf8.count < 1024,
                    string.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
                else {
                    throw refuse("a list such as pn532_uart:/dev/ttyUSB0:115200, pn53x_usb")
                }
                strings.append(string)
            }
            return strings
        }

        /// The words before and after each comma.
        var words: [String] {
            text.split(separator: ",", omittingEmptySubsequences: false).map { String(INIFile.trim($0)) }
        }

        /// The keys of authorities; nil for the word `vendor`.
        func cardAuthorities() throws(StartError) -> [[UInt8]?] {
            if text == "none" { return [] }
            var keys: [[UInt8]?] = []
            for word in words {
                let key = Self.compressedKey(word)
                guard key != nil || word == "vendor" else {
                    throw refuse("none, or a list of vendor and compressed keys (66 hexadecimal digits), with commas")
                }
                keys.append(key)
            }
            return keys
        }

        /// Keys of single cards.
        func cardKeys() throws(StartError) -> [[UInt8]] {
            if text.isEmpty { return [] }
            var keys: [[UInt8]] = []
            for word in words {
                guard let key = Self.compressedKey(word) else {
                    throw refuse("a list of compressed keys (66 hexadecimal digits), with commas")
                }
                keys.append(key)
            }
            return keys
        }

        /// The address of a server on the web. Whether it can be used is checked later.
        func webAddress() throws(StartError) -> String {
            guard text.hasPrefix("https://") || text.hasPrefix("http://") else { throw refuse("https://HOST") }
            return text
        }

        /// Where enrolment files come from. Whether it can be used is checked later.
        func issuer() throws(StartError) -> String {
            guard ["/", "https://", "http://"].contains(where: text.hasPrefix) else {
                throw refuse("a folder, https://HOST/PATH")
            }
            return text
        }

        /// Fingerprints of keys, SHA-256.
        func fingerprints() throws(StartError) -> [[UInt8]] {
            if text.isEmpty { return [] }
            var fingerprints: [[UInt8]] = []
            for word in words {
                guard let bytes = Hex.decode(word, limit: 32), bytes.count == 32 else {
                    throw refuse("a list of fingerprints (64 hexadecimal digits), with commas")
                }
                fingerprints.append(bytes)
            }
            return fingerprints
        }

        /// The hash that names a chain.
        func chainID() throws(StartError) -> [UInt8] {
            guard let id = Hex.decode(text, limit: 32), id.count == 32 else { throw refuse("64 hexadecimal digits") }
            return id
        }

        /// 16 bytes: a UUID, or 32 hexadecimal digits.
        func identifier() throws(StartError) -> [UInt8] {
            guard let bytes = Hex.decode(text.filter { $0 != "-" }, limit: 16), bytes.count == 16 else {
                throw refuse("a UUID, or 32 hexadecimal digits")
            }
            return bytes
        }

        /// Issuers of card certificates, as NAME:KEY.
        func issuers() throws(StartError) -> [CredentialConfiguration.Issuer] {
            if text.isEmpty { return [] }
            var issuers: [CredentialConfiguration.Issuer] = []
            for word in words {
                let parts = word.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
                guard parts.count == 2, parts[0].utf8.count == 16,
                    parts[0].utf8.allSatisfy({ (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) }),
                    let key = Self.compressedKey(parts[1])
                else {
                    throw refuse(
                        "a list of NAME:KEY with commas; a name has 16 letters A to Z or digits, a compressed key 66"
                            + " hexadecimal digits"
                    )
                }
                issuers.append(.init(name: parts[0], key: key))
            }
            return issuers
        }

        /// A point of a curve with 256 bits: 02 or 03, and x. SEC 1, 2.3.3.
        private static func compressedKey(_ word: String) -> [UInt8]? {
            guard let key = Hex.decode(word, limit: 33), key.count == 33, key[0] == 2 || key[0] == 3 else { return nil }
            return key
        }

        func logLevel() throws(StartError) -> Log.Level {
            guard let level = Log.Level(text) else { throw refuse(Log.Level.words) }
            return level
        }

        func subject(_ key: String) throws(StartError) -> AccessRule.Subject {
            if key == "default" { return .others }
            let parts = key.split(separator: ":", maxSplits: 1).map(String.init)
            switch (parts.first, parts.count) {
            case ("user", 2): return .user(parts[1])
            case ("group", 2): return .group(parts[1])
            default:
                throw .inConfiguration(
                    "\(place) is no user, group or default",
                    hint: "allowed: user:NAME, group:NAME, default"
                )
            }
        }

        /// Origins as a browser sends them: scheme, host and optionally a port; no path and no user.
        func origins() throws(StartError) -> [String] {
            var origins: [String] = []
            for word in text.split(separator: ",") {
                let origin = INIFile.trim(word)
                let host = ["https://", "http://"].compactMap { scheme in
                    origin.hasPrefix(scheme) ? origin.dropFirst(scheme.count) : nil
                }.first
                guard let host, !host.isEmpty,
                    host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x2F && $0 != 0x40 })
                else { throw refuse("a list of origins like https://example.org, with commas") }
                origins.append(origin.lowercased())
            }
            return origins
        }

        /// The parts between commas; none for an empty value.
        var list: [String] { text.isEmpty ? [] : words.filter { !$0.isEmpty } }

        /// Names of network interfaces, which have at most 15 bytes.
        func interfaces() throws(StartError) -> [String] {
            guard list.allSatisfy({ $0.utf8.count < 16 && !$0.contains("/") }) else {
                throw refuse("a list of network interfaces like eth0, with commas")
            }
            return list
        }

        func permissions() throws(StartError) -> Permissions {
            if text == "none" { return [] }
            var permissions: Permissions = []
            for word in text.split(separator: ",", omittingEmptySubsequences: false) {
                let name = INIFile.trim(word)
                guard let known = Permissions.names.first(where: { $0.name == name }) else {
                    throw refuse("none, or a list of \(Permissions.names.map(\.name).joined(separator: ", "))")
                }
                permissions.insert(known.value)
            }
            return permissions
        }
    }
}

/// Readers over the network: `[remote]`.
package struct RemoteConfiguration: Sendable, Equatable {
    /// `enabled`: whether readers of other devices are used.
    package var isEnabled = false
    /// `share`: whether `readers` are lent to other devices.
    package var isShared = false
    package var readers: [String] = []
    /// `interfaces`: empty for all with a broadcast address.
    package var interfaces: [String] = []
    /// `name`: the name of this host for other devices; nil: its host name.
    package var name: String?

    package init() {}
}

/// How connections to services go out: `[eid] proxy`.
package enum ProxyChoice: Sendable, Equatable {
    case none
    /// As `https_proxy` and `no_proxy` say.
    case environment
    /// Through the HTTP proxy at this address, `http://HOST:PORT`.
    case address(String)
}

/// The node of the chain for which wallet cards sign: `[wallet]`.
package struct NodeConfiguration: Sendable, Equatable {
    /// `node`; nil: there is no node.
    package var address: String?
    /// `chain_id`: 32 bytes; the main net of EOS, which is called Vaulta now.
    package var chainID = Hex.decode("aca376f206b8fc25a6ed44dbdc66547c36c6c33e3a119ffbeaef943642f0e906") ?? []
    /// `node_ca`: a file with the only authorities that may certify the node; nil: those of the system.
    package var authorityFile: String?
    /// `http_callbacks`: whether callbacks may use http on this computer.
    package var allowsHTTPCallbacks = false

    package init() {}
}

/// How credentials that people tap are read: `[credentials]`.
package struct CredentialConfiguration: Sendable, Equatable {
    /// An issuer of card certificates.
    package struct Issuer: Sendable, Equatable {
        /// 16 letters A to Z or digits.
        package let name: String
        /// A compressed point, 33 bytes.
        package let key: [UInt8]
    }

    /// `site`: the site that the readers tell cards; 16 bytes.
    package var site = [UInt8](repeating: 0, count: 16)
    /// `location`: the place that the readers tell cards; 16 bytes.
    package var location = [UInt8](repeating: 0, count: 16)
    /// `issuers`
    package var issuers: [Issuer] = []
    /// `validated`: whether only a key with a valid certificate is a credential.
    package var isValidated = false
}

/// The issuer of keys for doors: `[keys]`.
package struct KeysConfiguration: Sendable, Equatable {
    /// `issuer`: a folder or an address; nil: there is none.
    package var issuer: String?
    /// `issuer_keys`: fingerprints of the keys of trusted issuers.
    package var fingerprints: [[UInt8]] = []
    /// `issuer_ca`: a file with the only authorities that may certify the server; nil: those of the system.
    package var authorityFile: String?

    package init() {}
}

/// A day of the years 2000 to 2099.
package struct Day: Sendable, Equatable {
    package let year: Int
    package let month: Int
    package let day: Int

    /// Makes a day; nil if there is no such day.
    package init?(year: Int, month: Int, day: Int) {
        // From 2000 to 2099 every fourth year is a leap year.
        let days = [31, year % 4 == 0 ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (2000...2099).contains(year), (1...12).contains(month), (1...days[month - 1]).contains(day) else {
            return nil
        }
        (self.year, self.month, self.day) = (year, month, day)
    }
}

/// The settings of this run: the command line overrides the configuration.
package struct Settings: Sendable, Equatable {
    package var limits: ServerLimits
    /// Number of virtual readers, 0 when off.
    package var virtualReaders: Int
    /// Path of the file with the trust point of their cards.
    package var virtualTrustPoint: String?
    /// Path of the folder with the trusted country authorities.
    package var trustAnchors: String
    package var proxy: ProxyChoice
    /// Path of the file with the name and the password for the proxy.
    package var proxyCredentials: String?
    /// The day for which certificates are checked; nil: today.
    package var date: Day?
    /// Compressed keys of the authorities of genuine Keycards; nil stands for the vendor.
    package var cardAuthorities: [[UInt8]?]
    /// Compressed identity keys of single Keycards.
    package var pinnedCards: [[UInt8]]
    package var node: NodeConfiguration
    /// The domains to which requests of M-Pin may go; empty: clients choose.
    package var trustedDomains: [String]
    package var credentials: CredentialConfiguration
    package var keys: KeysConfiguration
    package var isPCSCEnabled: Bool
    package var isNFCEnabled: Bool
    package var nfcDevices: [String]
    package var radio: RadioConfiguration
    package var remote: RemoteConfiguration
    package var logLevel: Log.Level

    package init(_ options: CommandLineOptions, _ configuration: Configuration) {
        limits = configuration.limits
        virtualReaders = options.isVirtual || configuration.isVirtualEnabled ? configuration.virtualReaders : 0
        (virtualTrustPoint, trustAnchors) = (configuration.virtualTrustPoint, configuration.trustAnchors)
        (proxy, proxyCredentials) = (configuration.proxy, configuration.proxyCredentials)
        date = configuration.date
        (cardAuthorities, pinnedCards) = (configuration.cardAuthorities, configuration.pinnedCards)
        node = configuration.node
        trustedDomains = configuration.trustedDomains
        credentials = configuration.credentials
        keys = configuration.keys
        isPCSCEnabled = configuration.isPCSCEnabled && !options.isWithoutPCSC
        isNFCEnabled = configuration.isNFCEnabled && !options.isWithoutNFC
        nfcDevices = configuration.nfcDevices
        (radio, remote) = (configuration.radio, configuration.remote)
        if options.isWithoutBLE { radio.isEnabled = false }
        logLevel = options.logLevel ?? configuration.logLevel
    }
    /// Reads the file of `[virtual] cvca`; nil without that line. The virtual cards check its content.
    package func readVirtualTrustPoint() throws(StartError) -> [UInt8]? {
        guard let path = virtualTrustPoint else { return nil }
        guard let bytes = try INIFile.contents(of: path) else {
            throw .inConfiguration("there is no file \(path)", hint: "correct [virtual] cvca in the configuration")
        }
        return bytes
    }
}
