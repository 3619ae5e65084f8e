// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Glibc
import Host
import Server
import Text

/// Reports the process and its configuration in GET_METRICS.
@Loop final class DaemonState: Feature {
    let commands: [CommandSpec] = []
    private let startTime = Double(Loop.wallClock) / 1000
    private var reloads = LabelledCounter("badged_reloads_total", "Reloads of the configuration.", by: "result")
    /// Whether the last reload was not refused.
    private var isRight = true
    private var configuration: Configuration
    /// The settings that apply after a restart.
    private var waiting = 0

    init(_ configuration: Configuration) { self.configuration = configuration }

    /// `isRight`: whether no later reload was refused meanwhile.
    func reloaded(_ configuration: Configuration, waiting: Int, isRight: Bool) {
        reloads.add("success")
        self.isRight = isRight
        self.configuration = configuration
        self.waiting = waiting
    }

    func refused() {
        reloads.add("failure")
        isRight = false
    }

    /// The start of the SHA-256 of the settings in force. Hosts with equal settings have equal hashes. It is computed
    /// when it is asked for: libcrypto takes 2.3 MB of memory from its first use on.
    private var hash: String {
        let text = configuration.effectiveLines.map { $0.text + "\n" }.joined()
        return Hex.encode(Array(((try? DigestAlgorithm.sha256.hash(Array(text.utf8))) ?? []).prefix(8)))
    }

    func metrics() -> [Metric] {
        func info(_ name: String, _ help: String, _ labels: [Metric.Label]) -> Metric {
            Metric(name, .gauge, help, [.init(.whole(1), labels)])
        }
        var metrics = [
            info(
                "badged_build_info",
                "The version of badged.",
                [.init("version", Version.current), .init("protocol", String(ServerInfo.protocolVersion))]
            ),
            info("badged_configuration_info", "The hash of the settings in force.", [.init("hash", hash)]),
            .gauge("badged_configuration_ok", "0 after a reload that was refused.", isRight ? 1 : 0),
            .gauge("badged_configuration_waiting", "Changed settings that apply after a restart.", waiting),
            Metric(
                "badged_start_time_seconds",
                .gauge,
                "When badged was started, in seconds since 1970.",
                [.init(.real(startTime))]
            ),
            reloads.metric,
            .counter("badged_log_lines_lost_total", "Log lines that were lost.", Log.lostLines),
        ]
        var usage = rusage()
        if getrusage(RUSAGE_SELF.rawValue, &usage) == 0 {
            func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }
            let time = seconds(usage.ru_utime) + seconds(usage.ru_stime)
            metrics.append(
                Metric(
                    "badged_process_cpu_seconds_total",
                    .counter,
                    "Processor time of the process badged.",
                    [.init(.real(time))]
                )
            )
        }
        if let pages = Self.residentPages {
            metrics.append(
                .gauge(
                    "badged_process_resident_memory_bytes",
                    "Resident memory of the process badged.",
                    pages * Int(sysconf(Int32(_SC_PAGESIZE)))
                )
            )
        }
        if let count = Self.openDescriptors {
            metrics.append(.gauge("badged_process_open_fds", "Open descriptors of the process badged.", count))
        }
        return metrics
    }

    /// The second number of /proc/self/statm. proc(5).
    private static var residentPages: Int? {
        guard case .bytes(let bytes) = PlainFile.read("/proc/self/statm", limit: 256) else { return nil }
        let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        return fields.count > 1 ? Int(fields[1]) : nil
    }

    private static var openDescriptors: Int? {
        // Without the descriptor of the folder.
        Folder.names(in: "/proc/self/fd").map { $0.count - 1 }
    }
}
