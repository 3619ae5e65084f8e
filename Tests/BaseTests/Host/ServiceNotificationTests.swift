// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Testing

@testable import Host

/// The receiver of sd_notify messages in a service manager.
private final class Manager {
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    let name: String
    private let file: String?

    init(isAbstract: Bool) throws {
        let id = "badged-" + String(UUID().uuidString.prefix(8))
        name = isAbstract ? "@" + id : NSTemporaryDirectory() + id
        file = isAbstract ? nil : name
        let address = try #require(UnixAddress(notifySocket: name))
        let code = address.withPointer { Glibc.bind(descriptor, $0, $1) }
        try #require(code == 0)
    }

    func next() -> [String] {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    deinit {
        close(descriptor)
        if let file { unlink(file) }
    }
}

@Suite("Notification of the service manager", .timeLimit(.minutes(5)))
struct ServiceNotificationTests {
    @Test("every state is received, through a path and through an abstract socket name", arguments: [false, true])
    func states(isAbstract: Bool) throws {
        let manager = try Manager(isAbstract: isAbstract)
        let name = manager.name
        let service = ServiceNotification { $0 == "NOTIFY_SOCKET" ? name : nil }
        service.ready(status: "2 readers\nSTOPPING=1")
        #expect(manager.next() == ["READY=1", "STATUS=2 readers\\u{a}STOPPING=1"])
        service.status("3 readers")
        #expect(manager.next() == ["STATUS=3 readers"])
        service.watchdog()
        #expect(manager.next() == ["WATCHDOG=1"])
        service.reloading()
        let reload = manager.next()
        #expect(reload.first == "RELOADING=1")
        let time = try #require(reload.last?.split(separator: "=").last.flatMap { Int64($0) })
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        #expect(abs(Int64(now.tv_sec) * 1_000_000 - time) < 60_000_000)
        service.stopping()
        #expect(manager.next() == ["STOPPING=1"])
    }

    @Test(
        "without a reachable service manager a notification is ignored",
        arguments: [nil, "", "/nowhere", "vsock:2:1"]
    )
    func noManager(name: String?) {
        let service = ServiceNotification { $0 == "NOTIFY_SOCKET" ? name : nil }
        service.ready(status: "")
        service.stopping()
        #expect(service.watchdogInterval == nil)
    }

    @Test(
        "the watchdog interval is half its timeout when the watchdog is meant for this process",
        arguments: [
            ("20000000", nil, Duration.seconds(10)), ("20000000", "own", .seconds(10)), ("20000000", "1", nil),
            ("x", nil, nil), ("0", nil, nil), ("-5", nil, nil), (nil, nil, nil),
        ] as [(String?, String?, Duration?)]
    )
    func interval(time: String?, pid: String?, expected: Duration?) {
        let service = ServiceNotification { name in
            switch name {
            case "WATCHDOG_USEC": time
            case "WATCHDOG_PID": pid == "own" ? String(getpid()) : pid
            default: nil
            }
        }
        #expect(service.watchdogInterval == expected)
    }
}
