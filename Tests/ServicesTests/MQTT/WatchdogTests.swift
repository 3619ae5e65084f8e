// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import TestSupport
import Testing
import Text

@testable import MQTT

@Suite("The signs of life of badged-mqtt", .timeLimit(.minutes(5)))
struct WatchdogTests {
    @Test("systemd gets signs of life as often as it asks for, and none if it does not ask", arguments: [true, false])
    func signs(isWatched: Bool) async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/notify.sock"
        let manager = try UnixSocket.bind(to: path, SOCK_DGRAM)
        defer { close(manager) }
        let variables = ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": isWatched ? "20000" : "0"]
        let service = ServiceNotification { variables[$0] }
        // Nothing listens at this port.
        var configuration = MQTTConfiguration()
        configuration.host = "127.0.0.1"
        configuration.port = 1
        configuration.folder = folder.path
        let settings = configuration
        let mailbox = try EventMailbox()
        let end = OneShot<Publisher.End?>()
        _ = startThread {
            let outbox = (try? EventStore(folder: settings.folder, limit: 100)).map { EventOutbox(settings, $0) }
            end.fill(outbox.map { Publisher(settings, mailbox, $0, service: service).run() })
        }
        let messages = await withCheckedContinuation { continuation in
            _ = startThread {
                var signs = 0
                var others = 0
                // The end of an attempt to connect is a message as well.
                while isWatched ? signs < 5 : others == 0 {
                    guard let bytes = BlockingSocket.receive(from: manager) else { break }
                    if bytes == Array("WATCHDOG=1".utf8) { signs += 1 } else { others += 1 }
                }
                continuation.resume(returning: signs)
            }
        }
        #expect(messages == (isWatched ? 5 : 0))
        mailbox.post(.stop)
        #expect(await end.value(whenCancelled: nil) == .stopped)
    }
}
