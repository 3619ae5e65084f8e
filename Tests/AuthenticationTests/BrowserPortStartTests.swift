// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import TestSupport
import Testing
import Text

/// A badged-network that is to open the browser port, and hangs or sends a byte each second.
@Suite("The start with a bad badged-network", .timeLimit(.minutes(5)))
struct BrowserPortStartTests {
    enum Run: CaseIterable { case silent, drip }

    @Test("the start does not wait for it, and browsers are served by the next run", arguments: Run.allCases)
    func start(run: Run) async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/network.sock"
        let listener = try UnixSocket.listen(on: path)
        let program = try #require(ChildProcess.path(of: "badged-network"))
        _ = startThread {
            let bad = accept(listener, nil, nil)
            if run == .drip {
                // The pace is what hangs: faster bytes would be too many at once.
                _ = startThread {
                    while BlockingSocket.send([0x2E], to: bad) { sleep(1) }
                }
            }
            while case let next = accept(listener, nil, nil), next >= 0 {
                startReaped(program, with: next)
                close(next)
            }
        }
        let reserved = try ReservedPort()
        // It serves before it gives the run up.
        let daemon = try await RunningDaemon(
            configuration: "[activation]\nenabled=yes\nport=\(reserved.number)\n[log]\nlevel=info\n",
            environment: ["BADGED_NETWORK_SOCKET": path]
        )
        #expect(await daemon.program.prints("serving \(daemon.path)", on: .error))
        let checks = try await DaemonConnection.connect(to: daemon.path).health()
        #expect(checks.contains { $0.name == "browserPort" }, "a port that is not open yet looks like one that is off")
        #expect(await daemon.program.prints("browsers are not served", on: .error), "the start has waited for the run")
        let request = "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let number = reserved.number
        let text = try await TestBrowserPort.answer {
            // Until the next run listens, connections are refused.
            while true {
                if let text = try? TestBrowserPort.exchange(request, port: number) { return text }
            }
        }
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
    }
}
