// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import EIDServer
import Glibc
import Text
import Wire

/// The test eID-Server as a program, for `make demo`, other tests and experiments.
@main struct Program {
    static let usage = """
        usage: badged-eidserver [--port PORT] [--host NAME] [--pki DIR] [--date YYYY-MM-DD] [--out DIR]
                                [--reports]
               badged-eidserver --list-faults

        An eService with its eID-Server on 127.0.0.1, for tests only. It prints its TcToken URL
        and serves until SIGTERM. docs/testing.md has the parameters of the URL.

          --port PORT    the port of the eService; the eID-Server has the next one (free ports)
          --host NAME    the name in URLs and certificates (localhost)
          --pki DIR      the keys of the CV certificates (Tests/PKI of the checkout)
          --date DATE    replaces the current day
          --out DIR      writes cvca.cvcert, the root to trust, cvca-next.cvcert, which chain=late
                         needs too, and tls-ca.pem
          --reports      prints the report of each run at the end, one per line
        """

    struct UsageError: Error {
        let message: String
    }

    static func main() {
        do {
            try run()
        } catch let error as UsageError {
            fail("error: \(error.message)\nhint: see badged-eidserver --help", code: 2)
        } catch {
            fail("error: \(error)", code: 1)
        }
    }

    private static func run() throws {
        var options: [String: String] = [:]
        var arguments = CommandLine.arguments.dropFirst()
        while let name = arguments.popFirst() {
            switch name {
            case "--help": return print(usage + "\n", to: 1)
            case "--list-faults": return print(Fault.table, to: 1)
            case "--reports": options[name] = ""
            case "--port", "--host", "--pki", "--date", "--out":
                guard let value = arguments.popFirst() else { throw UsageError(message: "\(name) needs a value") }
                options[name] = value
            default: throw UsageError(message: "unknown argument '\(name)'")
            }
        }
        // Blocked before the process has a second thread, since threads inherit the mask.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        let server = try EIDServer(
            authority: try CVAuthority(folder: options["--pki"] ?? CVAuthority.folder),
            host: options["--host"] ?? "localhost",
            port: try port(options["--port"]),
            date: try date(options["--date"])
        )
        if let folder = options["--out"] {
            try write(server.authority.root, to: "\(folder)/cvca.cvcert")
            try write(server.authority.nextRoot, to: "\(folder)/cvca-next.cvcert")
            try write(Array(server.tlsAuthority.utf8), to: "\(folder)/tls-ca.pem")
        }
        print(try server.tcTokenURL() + "\n", to: 1)
        var signal: Int32 = 0
        sigwait(&signals, &signal)
        server.stop()
        if options["--reports"] != nil {
            for report in server.reports.array ?? [] {
                print(String(decoding: report.bytes, as: UTF8.self) + "\n", to: 1)
            }
        }
    }

    private static func port(_ text: String?) throws -> UInt16 {
        guard let text else { return 0 }
        guard let port = UInt16(text), port > 0, port < .max else { throw UsageError(message: "'\(text)' is no port") }
        return port
    }

    private static func date(_ text: String?) throws -> CVDate? {
        guard let text else { return nil }
        let numbers = text.split(separator: "-").map { Int($0) }
        guard numbers.count == 3, let year = numbers[0], let month = numbers[1], let day = numbers[2],
            let date = CVDate(year: year, month: month, day: day)
        else { throw UsageError(message: "'\(text)' is no day YYYY-MM-DD") }
        return date
    }

    private static func write(_ bytes: [UInt8], to path: String) throws {
        guard let file = fopen(path, "wb") else { throw UsageError(message: "\(path) cannot be written") }
        let count = fwrite(bytes, 1, bytes.count, file)
        guard fclose(file) == 0, count == bytes.count else { throw UsageError(message: "\(path) cannot be written") }
    }

    private static func fail(_ text: String, code: Int32) -> Never {
        print("badged-eidserver: \(text)\n", to: 2)
        exit(code)
    }

    /// Writes without a buffer, since other programs wait for the line.
    private static func print(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        _ = Glibc.write(descriptor, bytes, bytes.count)
    }
}
