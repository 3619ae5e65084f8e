// SPDX-License-Identifier: GPL-3.0-or-later
import EIDServer
import Glibc
import Server
import Text

/// The test eID-Server as a program, for `make demo`, other tests and experiments.
@main struct Program {
    static let usage = """
        usage: badged-eidserver [--out DIR] [--reports]

        An eService with its eID-Server on 127.0.0.1, for tests only. It prints its TcToken URL
        and serves until SIGTERM. docs/testing.md has the parameters of the URL.

          --out DIR    writes cvca.cvcert, the root to trust, cvca-next.cvcert, which chain=late
                       needs too, and tls-ca.pem
          --reports    prints the report of each run at the end, one per line
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
            case "--reports": options[name] = ""
            case "--out":
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
        let server = try EIDServer()
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
