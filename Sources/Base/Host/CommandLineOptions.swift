// SPDX-License-Identifier: GPL-3.0-or-later

/// The command line of badged(8). Scripts depend on the options, so no option is ever removed.
package struct CommandLineOptions: Sendable, Equatable {
    package enum Action: Sendable, Equatable { case run, check, show, version, help }

    package var action = Action.run
    package var socketPath: String?
    package var configurationPath: String?
    package var isVirtual = false
    package var isWithoutPCSC = false
    package var isWithoutNFC = false
    package var isWithoutBLE = false
    package var isStrict = false
    package var logLevel: Log.Level?

    package init() {}

    /// Parses the arguments after the program name. Accepts `--name VALUE` and `--name=VALUE`.
    /// - Throws: `StartError` with exit code 2.
    package init(arguments: some Sequence<String>) throws(StartError) {
        var rest = ArraySlice(Array(arguments))
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts.first ?? "")
            let attached = parts.count == 2 ? String(parts[1]) : nil
            switch name {
            case "--socket": socketPath = try Self.value(of: name, attached, &rest)
            case "--config": configurationPath = try Self.value(of: name, attached, &rest)
            case "--check-config":
                if action == .run { action = .check }
                if attached != nil {
                    configurationPath = try Self.value(of: name, attached, &rest)
                } else if let file = Self.file(&rest) {
                    configurationPath = file
                }
            case "--strict": isStrict = try Self.flag(name, attached)
            case "--print-config": if try Self.flag(name, attached), action == .run { action = .show }
            case "--log-level":
                let word = try Self.value(of: name, attached, &rest)
                guard let level = Log.Level(word) else {
                    throw StartError(
                        "unknown log level '\(word)'",
                        hint: "use one of \(Log.Level.words)",
                        exitCode: 2
                    )
                }
                logLevel = level
            case "--virtual": isVirtual = try Self.flag(name, attached)
            case "--no-pcsc": isWithoutPCSC = try Self.flag(name, attached)
            case "--no-nfc": isWithoutNFC = try Self.flag(name, attached)
            case "--no-ble": isWithoutBLE = try Self.flag(name, attached)
            case "--version": if try Self.flag(name, attached), action != .help { action = .version }
            case "--help", "-h": if try Self.flag(name, attached) { action = .help }
            case let name where name.hasPrefix("-"):
                throw StartError("unknown option '\(name)'", hint: "see badged --help", exitCode: 2)
            default:
                throw StartError(
                    "unexpected argument '\(argument)'",
                    hint: "badged takes options only; see badged --help",
                    exitCode: 2
                )
            }
        }
    }

    private static func value(
        of name: String,
        _ attached: String?,
        _ rest: inout ArraySlice<String>
    ) throws(StartError) -> String {
        guard let value = attached ?? rest.popFirst(), !value.isEmpty else {
            throw StartError("option '\(name)' needs a value", hint: "see badged --help", exitCode: 2)
        }
        return value
    }

    /// Takes the file after `--check-config`, which may be missing.
    private static func file(_ rest: inout ArraySlice<String>) -> String? {
        guard let next = rest.first, !next.isEmpty, !next.hasPrefix("-") else { return nil }
        return rest.popFirst()
    }

    private static func flag(_ name: String, _ attached: String?) throws(StartError) -> Bool {
        guard attached == nil else {
            throw StartError("option '\(name)' takes no value", hint: "write just \(name)", exitCode: 2)
        }
        return true
    }

    package static let versionText = "badged \(Version.current)\n"

    package static let helpText = """
        usage: badged [--socket PATH] [--config FILE] [--virtual] [--no-pcsc] [--no-nfc] [--no-ble]
                      [--log-level error|warning|notice|info|debug]
                      [--check-config [FILE] [--strict]] [--print-config] [--version] [--help]

        Serves identity cards to the programs of this computer over a Unix socket.

          --socket PATH      listen here; without it: the socket systemd passes, the configuration's,
                             /run/badged/badged.sock for root and service users,
                             else $XDG_RUNTIME_DIR/badged/badged.sock
          --config FILE      read this instead of /etc/badged/badged.conf
          --virtual          offer the virtual reader 'Simulator' with an eID card
          --no-pcsc          do not use the readers of pcscd
          --no-nfc           do not use the devices of libnfc
          --no-ble           do not use the Bluetooth radio
          --log-level LEVEL  write log lines up to this level: error, warning, notice (the
                             default), info or debug
          --check-config [FILE]
                             print every error and warning of the configuration, and end with 78
                             if there is an error
          --strict           --check-config ends with 78 for a warning, too
          --print-config     print the settings in force, each with its file and line, and end
          --version          print the version and end
          --help             print this help and end

        Manual: badged(8), badged.conf(5). Client: badgectl(1).

        """
}
