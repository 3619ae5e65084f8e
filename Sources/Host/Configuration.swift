// SPDX-License-Identifier: GPL-3.0-or-later

/// What badged.conf(5) says. Every line is optional.
package struct Configuration: Sendable, Equatable {
    package static let defaultPath = "/etc/badged/badged.conf"

    /// `[server] socket`
    package var socketPath: String?
    /// `[server] max_clients`: connections at a time, 1 to 100 000.
    package var maximumClients = 1000
    /// `[virtual] enabled`
    package var isVirtualEnabled = false
    /// `[virtual] readers`: 1 to 64.
    package var virtualReaders = 1
    /// `[pcsc] enabled`
    package var isPCSCEnabled = true
    /// `[log] level`
    package var logLevel = Log.Level.notice
    /// `[access]`
    package var access: [AccessRule] = []
    /// What was not understood and is passed over; for the log, one line each.
    package var warnings: [String] = []

    package init() {}

    /// Reads the file of `--config`, which must be there, or the default one, which need not.
    /// - Throws: `StartError` that names file and line and says what is allowed.
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

    /// `file` is its name, for messages.
    /// - Throws: `StartError` that names file and line and says what is allowed.
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
            case ("server", "max_clients"): maximumClients = try value.number(in: 1...100_000)
            case ("virtual", "enabled"): isVirtualEnabled = try value.bool()
            case ("virtual", "readers"): virtualReaders = try value.number(in: 1...64)
            case ("pcsc", "enabled"): isPCSCEnabled = try value.bool()
            case ("log", "level"): logLevel = try value.logLevel()
            case ("access", let key):
                let rule = AccessRule(try value.subject(key), try value.permissions())
                access.removeAll { $0.subject == rule.subject }
                access.append(rule)
            case ("server", _), ("virtual", _), ("pcsc", _), ("log", _):
                warnings.append("\(place): unknown key '\(entry.key)' in [\(entry.section)]")
            default:
                warnings.append("\(place): unknown section [\(entry.section)]")
            }
        }
    }

    /// A value and the place it stands at.
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

        func absolutePath() throws(StartError) -> String {
            guard text.hasPrefix("/") else { throw refuse("a path that begins with /") }
            return text
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

/// Command line over configuration: what the daemon does now.
package struct Settings: Sendable, Equatable {
    package var maximumClients: Int
    /// Number of virtual readers, 0 when off.
    package var virtualReaders: Int
    package var isPCSCEnabled: Bool
    package var logLevel: Log.Level

    package init(_ options: CommandLineOptions, _ configuration: Configuration) {
        maximumClients = configuration.maximumClients
        virtualReaders = options.isVirtual || configuration.isVirtualEnabled ? configuration.virtualReaders : 0
        isPCSCEnabled = configuration.isPCSCEnabled && !options.isWithoutPCSC
        logLevel = options.logLevel ?? configuration.logLevel
    }
}
