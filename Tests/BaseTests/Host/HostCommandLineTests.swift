// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import Host

private func refusal(_ arguments: [String]) -> StartError? {
    do {
        _ = try CommandLineOptions(arguments: arguments)
        return nil
    } catch { return error }
}

@Suite("The daemon's command line", .timeLimit(.minutes(5)))
struct CommandLineTests {
    @Test("without options every value is the default")
    func defaults() throws {
        let options = try CommandLineOptions(arguments: [])
        #expect(options == CommandLineOptions())
        #expect(options.action == .run && !options.isVirtual && options.logLevel == nil)
    }

    @Test("all options are accepted in both spellings")
    func all() throws {
        let words = [
            "--socket", "/s", "--config=/c", "--virtual", "--no-pcsc", "--no-nfc", "--no-ble", "--log-level", "debug",
        ]
        let options = try CommandLineOptions(arguments: words)
        #expect(options.socketPath == "/s" && options.configurationPath == "/c")
        #expect(options.isVirtual && options.isWithoutPCSC && options.isWithoutNFC && options.isWithoutBLE)
        #expect(options.logLevel == .debug)
        #expect(try CommandLineOptions(arguments: ["--socket=/a=b"]).socketPath == "/a=b")
    }

    @Test("--help takes precedence over --version in any order")
    func actions() throws {
        #expect(try CommandLineOptions(arguments: ["--version"]).action == .version)
        #expect(try CommandLineOptions(arguments: ["--version", "--help"]).action == .help)
        #expect(try CommandLineOptions(arguments: ["-h", "--version"]).action == .help)
    }

    @Test(
        "--check-config takes a file or none",
        arguments: [
            (["--check-config"], nil), (["--check-config", "/c"], "/c"), (["--check-config=/c"], "/c"),
            (["--config", "/c", "--check-config"], "/c"), (["--check-config", "--config=/c"], "/c"),
        ] as [([String], String?)]
    )
    func check(arguments: [String], file: String?) throws {
        let options = try CommandLineOptions(arguments: arguments)
        #expect(options.action == .check && options.configurationPath == file)
    }

    @Test(
        "an error names the wrong argument and has exit code 2",
        arguments: [
            (["--bogus"], "unknown option '--bogus'"),
            (["--socket"], "option '--socket' needs a value"),
            (["--config="], "option '--config' needs a value"),
            (["--virtual=yes"], "option '--virtual' takes no value"),
            (["--log-level", "loud"], "unknown log level 'loud'"),
            (["--check-config="], "option '--check-config' needs a value"),
            (["--check-config", "/a", "/b"], "unexpected argument '/b'"),
            (["extra"], "unexpected argument 'extra'"),
            ([""], "unexpected argument ''"),
            (["--"], "unknown option '--'"),
        ]
    )
    func refusals(arguments: [String], message: String) {
        let error = refusal(arguments)
        #expect(error?.message == message)
        #expect(error?.exitCode == 2 && error?.hint.isEmpty == false)
    }

    @Test("the help text lists every option")
    func help() {
        for name in [
            "--socket", "--config", "--virtual", "--no-pcsc", "--no-nfc", "--no-ble", "--log-level", "--check-config",
            "--strict", "--print-config", "--version", "--help",
        ] {
            #expect(CommandLineOptions.helpText.split(separator: name).count > 2, "\(name)")
        }
    }

    @Test("an error has two lines, with a priority prefix in the journal")
    func twoLines() {
        let error = StartError("no\nway", hint: "go on")
        #expect(error.text(toJournal: false) == "badged: error: no\\u{a}way\nhint: go on\n")
        #expect(error.text(toJournal: false, program: "badged-mqtt").hasPrefix("badged-mqtt: error: no"))
        #expect(error.text(toJournal: true) == "<3>no\\u{a}way\n<3>hint: go on\n")
    }
}
