// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import HTTP
import Host
import Text

/// `badgectl metrics`: writes what badged has counted, for Prometheus.
enum MetricsCommand {
    static let spec = ShellCommand(
        name: "metrics",
        summary: "show what badged has counted, for Prometheus",
        options: [
            OptionSpec(.openmetrics, "write OpenMetrics 1.0 instead of the text format 0.0.4"),
            OptionSpec(.output, ValueSpec("FILE", .files), "write this file anew, for node_exporter"),
            OptionSpec(.http, "answer one HTTP request on standard input and output"),
            OptionSpec(.hosts, ValueSpec("NAMES"), "with --http, further names of this host, with commas between"),
            OptionSpec(.mqtt, ValueSpec("FILE", .files), "the metrics of badged-mqtt, instead of \(mqttFile)"),
        ],
        details: [
            """
            Ends with 0 whenever it has written a text. When badged does not answer within five seconds, badged_up is 0,
            and all other metrics are left out.
            """,
            "The file is exchanged in one step; its name must end with .prom for node_exporter.",
            "While badged-mqtt runs as a service, its metrics are added.",
            """
            --http answers requests to localhost, loopback addresses, the address of the socket and --hosts only, so that no
            web page can read the metrics under a name of its own; other names are refused with 403.
            """,
        ],
        examples: [
            Example("for node_exporter", "badgectl metrics --output /var/lib/prometheus/node-exporter/badged.prom")
        ],
        run: run
    )

    /// How long badged may take.
    private static let timeout = Duration.seconds(5)

    @Sendable private static func run(_ invocation: Invocation) async throws {
        if invocation.has(.http) { return await serve(invocation) }
        let form: MetricsText.Form = invocation.has(.openmetrics) ? .open : .prometheus
        let text = MetricsText.text(await families(invocation), form)
        guard let file = invocation.value(of: .output) else {
            if !invocation.wantsJSON { Output.write(text, to: STDOUT_FILENO) }
            return
        }
        try write(text, to: file)
    }

    private static let mqttFile = "/run/badged-mqtt/metrics.json"

    /// What badged-mqtt writes while it runs: the message METRICS.
    private static func mqttFamilies(_ invocation: Invocation) -> [MetricFamily] {
        guard case .bytes(let bytes) = PlainFile.read(invocation.value(of: .mqtt) ?? mqttFile, limit: 16_384),
            let event = try? bytes.withUnsafeBytes({ try Event($0) }), let report = event.message as? MetricsReport
        else { return [] }
        return report.families
    }

    private static func families(_ invocation: Invocation) async -> [MetricFamily] {
        await daemonFamilies(invocation) + mqttFamilies(invocation)
    }

    /// The metrics of badged, or that it does not answer.
    private static func daemonFamilies(_ invocation: Invocation) async -> [MetricFamily] {
        await withTaskGroup(of: [MetricFamily]?.self) { group in
            group.addTask {
                guard let badged = try? await invocation.connect(keepsEvents: false),
                    let families = try? await badged.metrics(), let checks = try? await badged.health()
                else { return MetricsText.down }
                return [MetricsText.up(1)] + families + [MetricsText.health(checks)]
            }
            group.addTask {
                try? await Task.sleep(for: timeout)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first ?? MetricsText.down
        }
    }

    private static func serve(_ invocation: Invocation) async {
        let response: String
        var hosts = Set((invocation.value(of: .hosts) ?? "").lowercased().split(separator: ",").map(String.init))
        if let own = MetricsRequest.ownAddress(of: STDIN_FILENO) { hosts.insert(own) }
        switch MetricsRequest.answer(MetricsRequest.read(from: STDIN_FILENO), hosts: hosts) {
        case .refused(let status): response = MetricsRequest.response(status, "text/plain", status.rawValue + "\n")
        case .metrics(let isOpen, let withBody):
            let form: MetricsText.Form = isOpen ? .open : .prometheus
            let text = MetricsText.text(await families(invocation), form)
            response = MetricsRequest.response(.ok, form.contentType, text, withBody: withBody)
        }
        Output.write(response, to: STDOUT_FILENO)
    }

    /// Writes a temporary file in the same folder, and renames it. Its name does not end with `.prom`.
    private static func write(_ text: String, to path: String) throws {
        let temporary = "\(path).\(getpid())"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw failure(path) }
        var isWritten = fchmod(descriptor, 0o644) == 0 && Output.write(text, to: descriptor)
        let code = errno
        isWritten = close(descriptor) == 0 && isWritten
        guard isWritten, rename(temporary, path) == 0 else {
            let reason = isWritten ? errno : code
            unlink(temporary)
            errno = reason
            throw failure(path)
        }
    }

    private static func failure(_ path: String) -> CommandFailure {
        CommandFailure(
            tr("cannot write \(path): \(DaemonWords.text(errorText()))"),
            hint: tr("name a file in a folder that this user can write to")
        )
    }
}
