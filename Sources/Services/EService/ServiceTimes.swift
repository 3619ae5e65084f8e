// SPDX-License-Identifier: GPL-3.0-or-later

/// Where the time of the web side went, on a clock: for the log.
package struct ServiceTimes: Sendable {
    /// Connecting and the handshakes, the server's part in them too; libcurl.
    package var tls = Duration.zero
    /// From a request to the end of its answer.
    package var server = Duration.zero
    /// Reading and writing messages.
    package var xml = Duration.zero
    /// Checks of what the service shows of itself: certificates, description.
    package var checks = Duration.zero

    package init() {}
}

/// Belongs to the thread of one authentication.
final class Stopwatch {
    private(set) var times = ServiceTimes()

    func measure<T, E: Error>(
        _ part: WritableKeyPath<ServiceTimes, Duration>,
        _ body: () throws(E) -> T
    ) throws(E) -> T {
        let begin = ContinuousClock.now
        defer { times[keyPath: part] += begin.duration(to: .now) }
        return try body()
    }

    /// A transfer that took this long, of which the answer took so much.
    func add(transfer: Duration, answer: Duration) {
        times.server += answer
        times.tls += max(transfer - answer, .zero)
    }
}
