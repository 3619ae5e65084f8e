// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
package import Host
import Text
package import Vault

/// The settings of mqtt.conf(5). The format is that of badged.conf(5).
package struct MQTTConfiguration: Sendable, Equatable {
    package static let defaultPath = "/etc/badged/mqtt.conf"

    package enum ProtocolVersion: String, Sendable, CaseIterable {
        case five = "5"
        /// No expiry and no reasons: ghosts and silent refusals are possible.
        case three = "3.1.1"
    }

    package enum Credentials: String, Sendable, CaseIterable {
        case no, hashed, plain
    }

    // MARK: [broker]

    /// nil: there is no broker, and the program does not start.
    package var host: String?
    package var port = 8883
    package var usesTLS = true
    /// `plain`: whether a connection without TLS may leave this computer.
    package var allowsPlain = false
    package var version = ProtocolVersion.five
    package var user: String?
    package var passwordFile: String?
    /// PEM; nil: the authorities of the system.
    package var authorityFile: String?
    package var certificateFile: String?
    package var keyFile: String?
    /// Seconds.
    package var keepAlive = 60
    package var longestPause = 60

    // MARK: [publish]

    package var prefix = "badged/1"
    /// The level of the topic that names this host.
    package var name = MQTTConfiguration.hostName
    package var heartbeat = 300
    package var sightingsInterval = 10
    package var healthInterval = 60
    package var credentials = Credentials.no
    package var openings = false
    package var sightings = false
    package var siteKeyFile: String?

    // MARK: [queue], [homeassistant], [server]

    /// Events of each stream.
    package var limit = 10_000
    /// `keep`: for how many days acknowledged events are kept for `--events`.
    package var keptDays = 0
    package var folder = MQTTConfiguration.standardFolder
    private static let standardFolder = "/var/lib/badged-mqtt"
    private static let folderKey = "[queue] folder"
    package var isHomeAssistantEnabled = false
    package var homeAssistantPrefix = "homeassistant"
    /// nil: that of this system.
    package var socket: String?

    /// The keys that have a value, and what is written there.
    private var written: [String: String] = [:]
    /// The keys whose line cannot be used. Nothing more is told of them.
    private var faulty: Set<String> = []

    static let sections: [String: [String: SettingRule<MQTTConfiguration>]] = [
        "broker": [
            "url": .init { all, value throws(StartError) in try all.readURL(value) },
            "plain": .bool(\.allowsPlain),
            "version": .word(\.version),
            "user": .form(\.user, ConfigurationValue.topicText),
            "password_file": .path(\.passwordFile),
            "ca": .path(\.authorityFile),
            "certificate": .path(\.certificateFile),
            "key": .path(\.keyFile),
            "keepalive": .number(\.keepAlive, in: 5...3600),
            "reconnect_max": .number(\.longestPause, in: 1...3600),
        ],
        "publish": [
            "prefix": .form(\.prefix, ConfigurationValue.topic),
            "host": .init { all, value throws(StartError) in
                guard MQTTConfiguration.isHostName(value.text) else {
                    throw value.refuse("1 to 64 letters, digits, and the characters _ . -")
                }
                all.name = value.text
            },
            "heartbeat": .number(\.heartbeat, in: 10...86_400),
            "sightings_interval": .number(\.sightingsInterval, in: 1...3600),
            "health_interval": .number(\.healthInterval, in: 5...3600),
            "credentials": .word(\.credentials),
            "openings": .bool(\.openings),
            "sightings": .bool(\.sightings),
            "site_key": .path(\.siteKeyFile),
        ],
        "queue": [
            "limit": .number(\.limit, in: 20...1_000_000),
            "keep": .number(\.keptDays, in: 0...3650),
            "folder": .path(\.folder),
        ],
        "homeassistant": [
            "enabled": .bool(\.isHomeAssistantEnabled),
            "prefix": .form(\.homeAssistantPrefix, ConfigurationValue.topic),
        ],
        "server": ["socket": .path(\.socket)],
    ]

    package init() {}

    /// Reads a file, and appends the error of each line that cannot be used. A missing file names no broker.
    package init(path: String, errors: inout [StartError]) {
        do throws(StartError) {
            guard let bytes = try INIFile.contents(of: path, checksOwner: true) else {
                throw .inConfiguration("there is no file \(path)", hint: "see /usr/share/doc/badged-mqtt/mqtt.conf")
            }
            read(bytes, path, &errors)
            check(path, &errors)
        } catch {
            errors.append(error)
            // Without the file it is not known.
            faulty = [Self.folderKey]
        }
    }

    package mutating func read(_ bytes: [UInt8], _ file: String, _ errors: inout [StartError]) {
        var section: String?
        var seen: Set<String> = []
        for (number, content) in INIFile(bytes: bytes).lines {
            let place = "\(file), line \(number)"
            do throws(StartError) {
                switch content {
                case .fault(let text, let hint): throw .inConfiguration("\(place): \(text)", hint: hint)
                case .section(let name):
                    section = name
                    guard Self.sections[name] != nil else {
                        let hint = Suggestion.question(name, among: Self.sections.keys) + "see docs/fleet.md"
                        throw .inConfiguration("\(place): unknown section [\(name)]", hint: hint)
                    }
                case .value(let key, let text):
                    guard let section else { throw .beforeSections(key, place, "docs/fleet.md") }
                    // The error of an unknown section is at its header.
                    guard let keys = Self.sections[section] else { continue }
                    guard let rule = keys[key] else {
                        let hint = Suggestion.question(key, among: keys.keys) + "see docs/fleet.md"
                        throw .inConfiguration("\(place): unknown key '\(key)' in [\(section)]", hint: hint)
                    }
                    let name = "[\(section)] \(key)"
                    guard seen.insert(name).inserted else {
                        throw .inConfiguration("\(place): \(name) occurs twice", hint: "leave one of the two lines")
                    }
                    // A key without a value has its default.
                    guard !text.isEmpty else { continue }
                    written[name] = text
                    faulty.insert(name)
                    try rule.read(&self, ConfigurationValue(text, "\(place): \(name)"))
                    faulty.remove(name)
                }
            } catch {
                errors.append(error)
            }
        }
    }

    /// What single lines do not show.
    private func check(_ file: String, _ errors: inout [StartError]) {
        func refuse(_ text: String, _ hint: String) {
            errors.append(.inConfiguration("\(file): \(text)", hint: hint))
        }
        // What is wrong with a line has been said.
        if let host, !usesTLS, !allowsPlain, isSound("plain"), !LoopbackSockets.areReached(by: host) {
            refuse("mqtt:// is only for this computer", "use mqtts://HOST:PORT, or write plain = yes below [broker]")
        } else if host == nil, isSound("url") {
            refuse("no broker is named", "write url = mqtts://HOST:PORT below [broker]")
        }
        if (certificateFile == nil) != (keyFile == nil), isSound("certificate", "key") {
            refuse("[broker] certificate and key belong together", "name both files or none")
        }
        if credentials == .hashed, siteKeyFile == nil, !faulty.contains("[publish] site_key") {
            refuse("credentials = hashed needs a site key", "name the file of 32 bytes in [publish] site_key")
        }
        if !Self.isHostName(name), !faulty.contains("[publish] host") {
            refuse("the host name is no name for a topic", "write host = NAME below [publish]")
        }
        for (path, setting) in [(authorityFile, "[broker] ca"), (certificateFile, "[broker] certificate")] {
            guard let path else { continue }
            switch PlainFile.read(path, limit: 10_000_000) {
            case .bytes: break
            case .missing: errors.append(ConfiguredPath.refusal(path, nil, of: setting))
            case .tooLong: errors.append(ConfiguredPath.refusal(path, "it is longer than 10 MB", of: setting))
            case .failed(let reason):
                let mayPass = PlainFile.mayPass()
                errors.append(ConfiguredPath.refusal(path, reason, of: setting, mayPass: mayPass))
            }
        }
    }

    /// Whether no line of these keys of [broker] is one that cannot be used.
    private func isSound(_ keys: String...) -> Bool { keys.allSatisfy { !faulty.contains("[broker] \($0)") } }

    /// Reads and tries what the settings name: certificates and keys, password, key of the site, folder of the queue.
    ///
    /// A credential of systemd is there only in the service.
    /// - Returns: what could not be tried.
    package func tryFiles(
        _ errors: inout [StartError],
        _ environment: Environment = systemEnvironment
    ) -> [String] {
        var notes: [String] = []
        /// Whether a file can be tried.
        func isHere(_ path: String?) -> Bool {
            guard let path, path.hasPrefix("/run/credentials/") else { return true }
            if let folder = environment("CREDENTIALS_DIRECTORY"), path.hasPrefix(folder + "/") { return true }
            notes.append("\(path) is a credential of the service: it is tried when the service starts or is reloaded")
            return false
        }
        func attempt<Value: ~Copyable>(_ value: @autoclosure () throws(StartError) -> Value) {
            do throws(StartError) { _ = try value() } catch { errors.append(error) }
        }
        var part = self
        let isPair = certificateFile != nil && keyFile != nil
        if !isHere(keyFile) || !isHere(certificateFile) || !isPair {
            part.certificateFile = nil
            part.keyFile = nil
        }
        // A file that cannot be read has been told.
        let isReadable = !errors.contains { ["[broker] ca", "[broker] certificate"].contains($0.setting) }
        if host != nil, usesTLS, isReadable { attempt(try TLSSettings(part).check()) }
        if isHere(passwordFile) { attempt(try BrokerConnection.password(self)) }
        if isHere(siteKeyFile) { attempt(try siteKey()) }
        if faulty.contains(Self.folderKey) {
            // This has been told, too.
        } else if folder == Self.standardFolder, access(folder, F_OK) != 0 {
            notes.append("\(folder) is made when the service starts")
        } else if let reason = ConfiguredPath.reason(againstFolder: folder, for: .write) {
            let hint = "correct [queue] folder; it must belong to the user of badged-mqtt"
            errors.append(.inConfiguration("events cannot be stored in \(folder): \(reason)", hint: hint))
        }
        if let socket { attempt(try ConfiguredPath.checkSocket(socket, isMade: false, of: "[server] socket")) }
        return notes
    }

    /// The key of the site; nil: none is named.
    package func siteKey() throws(StartError) -> SiteKey? {
        guard let path = siteKeyFile else { return nil }
        guard let key = SiteKey(try SecretFile.read(path, limit: SiteKey.count, setting: "[publish] site_key")) else {
            throw .inConfiguration("\(path) has not \(SiteKey.count) bytes", hint: "correct [publish] site_key")
        }
        return key
    }

    private mutating func readURL(_ value: ConfigurationValue) throws(StartError) {
        let allowed = "mqtts://HOST:PORT, mqtt://HOST:PORT"
        let schemes = [("mqtts://", true, 8883), ("mqtt://", false, 1883)]
        guard let (scheme, isTLS, usual) = schemes.first(where: { value.text.hasPrefix($0.0) }) else {
            throw value.refuse(allowed)
        }
        var rest = value.text.dropFirst(scheme.count)
        if rest.hasSuffix("/") { rest.removeLast() }
        guard !rest.contains("/"), !rest.contains("@"), !rest.contains(" ") else { throw value.refuse(allowed) }
        var portText: Substring?
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { throw value.refuse(allowed) }
            let tail = rest[rest.index(after: end)...]
            guard tail.isEmpty || tail.hasPrefix(":") else { throw value.refuse(allowed) }
            portText = tail.isEmpty ? nil : tail.dropFirst()
            rest = rest[rest.index(after: rest.startIndex)..<end]
        } else if let colon = rest.firstIndex(of: ":") {
            portText = rest[rest.index(after: colon)...]
            rest = rest[..<colon]
        }
        guard !rest.isEmpty, rest.utf8.count <= 253 else { throw value.refuse(allowed) }
        if let portText {
            guard let number = Int(portText), (1...65_535).contains(number) else { throw value.refuse(allowed) }
            port = number
        } else {
            port = usual
        }
        host = String(rest)
        usesTLS = isTLS
    }

    static func isHostName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                    || [0x5F, 0x2E, 0x2D].contains($0)
            }
    }

    private static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The start of the SHA-256 of the settings, without the name of the host: hosts with equal settings have equal hashes.
    var hash: String {
        let lines = written.filter { $0.key != "[publish] host" }.sorted { $0.key < $1.key }.map { "\($0) = \($1)\n" }
        return Hex.encode(Array(((try? DigestAlgorithm.sha256.hash(Array(lines.joined().utf8))) ?? []).prefix(8)))
    }

    /// The files that a connection needs, and that a reload may read.
    package var files: [String] {
        [passwordFile, authorityFile, certificateFile, keyFile, siteKeyFile].compactMap(\.self)
    }

    /// The topic of a kind of document or event.
    package func topic(_ kind: String) -> String { "\(prefix)/\(name)/\(kind)" }

    package var clientID: String { "badged-\(name)" }

    package var discoveryTopic: String { "\(homeAssistantPrefix)/device/badged_\(objectID)/config" }

    /// The host name in the characters that Home Assistant allows.
    var objectID: String { String(name.map { $0.isLetter || $0.isNumber || $0 == "-" ? $0 : "_" }) }
}

extension ConfigurationValue {
    /// Levels without wildcards.
    fileprivate func topic() throws(StartError) -> String {
        let levels = text.split(separator: "/", omittingEmptySubsequences: false)
        guard text.utf8.count <= 200, !text.hasPrefix("$"),
            levels.allSatisfy({ !$0.isEmpty && !$0.contains("+") && !$0.contains("#") })
        else { throw refuse("levels such as site/badged, without + # and empty levels") }
        return text
    }

    fileprivate func topicText() throws(StartError) -> String {
        guard text.utf8.count <= 256 else { throw refuse("at most 256 bytes") }
        return text
    }
}
