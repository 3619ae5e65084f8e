// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host
import Text

/// What messages say of this host and its clock, and the document `state`.
struct HostFacts: Sendable {
    /// The start of the boot identifier of the kernel.
    let boot: String

    init() {
        var text = ""
        if case .bytes(let bytes) = PlainFile.read("/proc/sys/kernel/random/boot_id", limit: 64) {
            text = String(decoding: bytes.prefix(8), as: UTF8.self)
        }
        boot = text
    }

    private static func clock(_ id: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(id, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    private static func number(_ value: some BinaryInteger) -> JSON { .number(String(value)) }

    private static func text(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }

    /// Milliseconds since 1970.
    var wallTime: JSON { Self.number(Self.clock(CLOCK_REALTIME)) }

    /// Milliseconds since boot, with the time of sleep.
    private var uptime: JSON { Self.number(Self.clock(CLOCK_BOOTTIME)) }

    /// Whether the kernel says that the clock is synchronised; null if it does not say, as in a sandbox without .
    private var isSynchronised: JSON {
        let answer = clinux_clock_is_synchronised()
        return answer < 0 ? .null : .bool(answer > 0)
    }

    /// When an event happened, by all clocks.
    func place(_ time: Int64) -> [JSON.Member] {
        [.init("time", Self.number(time)), .init("uptime", uptime), .init("boot", .string(boot))]
    }

    func offline(_ session: String, _ reason: String, at time: Int64?) -> [UInt8] {
        var members: [JSON.Member] = [
            .init("state", .string("offline")), .init("session", .string(session)), .init("reason", .string(reason)),
        ]
        if let time { members.append(.init("time", Self.number(time))) }
        return JSON.object(members).bytes
    }

    func online(
        _ session: String,
        _ configuration: MQTTConfiguration,
        _ queue: EventStore,
        _ daemon: DaemonState,
        _ limits: BrokerLimits
    ) -> [JSON.Member] {
        let streams = EventStream.allCases.map { stream in
            JSON.Member(
                stream.word,
                .object([
                    .init("epoch", .string(queue.epoch)), .init("last", Self.number(queue.last(stream))),
                    .init("lost", Self.number(queue.lost(stream))),
                ])
            )
        }
        return [
            .init("state", .string("online")), .init("protocol", .number("1")), .init("session", .string(session)),
            .init("time", wallTime), .init("uptime", uptime), .init("boot", .string(boot)),
            .init("clock", isSynchronised), .init("heartbeat", Self.number(configuration.heartbeat)),
            .init("version", .string(Version.current)), .init("badged", .bool(daemon.isConnected)),
            .init("badgedVersion", Self.text(daemon.version)), .init("watching", .bool(daemon.isWatching)),
            .init(
                "settings",
                .object([.init("badged", Self.text(daemon.settings)), .init("mqtt", .string(configuration.hash))])
            ),
            .init("packages", .object(daemon.packages.sorted { $0.key < $1.key }.map { .init($0, .string($1)) })),
            .init("privacy", .string(configuration.credentials.rawValue)),
            .init(
                "queue",
                .object([
                    .init("waiting", Self.number(queue.waiting)), .init("limit", Self.number(queue.limit)),
                    .init("oldest", queue.oldest.map(Self.number) ?? .null), .init("durable", .bool(queue.isDurable)),
                ])
            ), .init("streams", .object(streams)), .init("broker", limits.json(keepAlive: configuration.keepAlive)),
        ]
    }
}
