// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// The command line of badged-virtual-card.
enum ProgramOptions: Equatable {
    /// Where the card comes from.
    enum Card: Equatable {
        case usual
        /// A file with the objects of SET_CARD.
        case described(String)
        /// A file with a recording.
        case recorded(String)

        /// The error for a file that is wrong.
        func wrong(_ reason: String) -> StartError {
            switch self {
            case .usual, .described:
                StartError("the card file is wrong: \(reason)", hint: "see docs/protocol/readers.md, Virtual reader")
            case .recorded(let path):
                StartError("the recording \(path) is wrong: \(reason)", hint: "see docs/recordings.md, The lines")
            }
        }
    }

    case run(host: String, port: String, card: Card, trustPointFile: String?, authorityFile: String?)
    case help
    case version

    static let usage = """
        usage: badged-virtual-card --vpcd HOST:PORT [--card FILE | --replay FILE] [--cvca FILE]
                                   [--iaca FILE] [--help] [--version]

        Puts a card in software into a reader of vsmartcard's vpcd, which pcscd shows to any
        program. The reader listens on HOST:PORT, its first slot on 35963.

          --vpcd HOST:PORT  where vpcd listens; [ADDRESS]:PORT for IPv6
          --card FILE       JSON {"simulator": {...}, "card": {...}}, as SET_CARD takes them;
                            without it a German eID card, PIN 123456, CAN 500540,
                            PUK 9876543210
          --replay FILE     answer as in this recording, which badgectl report has made
          --cvca FILE       the authority that an eID card trusts: a self-signed CV
                            certificate, DER; without it the test authority of badged
          --iaca FILE       write the authority of the documents of a phone to this file, DER;
                            its keys are new at each start
          --version         print the version and end
          --help            print this help and end

        Prints "inserted" and "withdrawn" when the card comes and goes. A card that is removed by
        a fault of its description stays outside until SIGUSR1.

        signals:
          SIGUSR1           takes the card out, puts it back in
          SIGUSR2           prints {"apdus":N,"retryCounter":N,"pukCounter":N,"transport":false,
                            "busyMicroseconds":N}: the commands since the insertion, the
                            counters of the card, the time for all its answers; for a
                            recording the number of commands that are not in it
          SIGTERM, SIGINT   prints the same and ends
        """

    /// Parses the arguments. Accepts `--name VALUE` and `--name=VALUE`.
    init(_ arguments: some Sequence<String>) throws(StartError) {
        var rest = ArraySlice(Array(arguments))
        var address: (String, String)?
        var card = Card.usual
        var trustPointFile: String?
        var authorityFile: String?
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts.first ?? "")
            let attached = parts.count == 2 ? String(parts[1]) : nil
            switch name {
            case "--help", "-h":
                self = .help
                return
            case "--version":
                self = .version
                return
            case "--vpcd": address = try Self.address(try Self.value(name, attached, &rest))
            case "--card", "--replay":
                let file = try Self.value(name, attached, &rest)
                guard card == .usual else { throw Self.wrong("give one of --card and --replay, once") }
                card = name == "--card" ? .described(file) : .recorded(file)
            case "--cvca": trustPointFile = try Self.value(name, attached, &rest)
            case "--iaca": authorityFile = try Self.value(name, attached, &rest)
            default: throw Self.wrong("unknown argument '\(argument)'")
            }
        }
        guard let address else { throw Self.wrong("--vpcd HOST:PORT is missing") }
        self = .run(
            host: address.0,
            port: address.1,
            card: card,
            trustPointFile: trustPointFile,
            authorityFile: authorityFile
        )
    }

    private static func value(
        _ name: String,
        _ attached: String?,
        _ rest: inout ArraySlice<String>
    ) throws(StartError) -> String {
        guard let value = attached ?? rest.popFirst(), !value.isEmpty else { throw wrong("\(name) needs a value") }
        return value
    }

    private static func address(_ text: String) throws(StartError) -> (String, String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0
        else { throw wrong("'\(text)' is not HOST:PORT") }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { throw wrong("'\(text)' has no host") }
        return (String(host), String(port))
    }

    private static func wrong(_ message: String) -> StartError {
        StartError(message, hint: "see badged-virtual-card --help", exitCode: 2)
    }
}
