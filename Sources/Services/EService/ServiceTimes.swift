// SPDX-License-Identifier: GPL-3.0-or-later

/// How long the parts of the web side took; for the log.
package struct ServiceTimes: Sendable {
    /// Connecting and TLS handshakes.
    package var tls = Duration.zero
    /// From each request to the end of its answer.
    package var server = Duration.zero
    /// Reading and writing messages.
    package var xml = Duration.zero
    /// Checks of the certificates and the description of the service.
    package var checks = Duration.zero

    package init() {}
}

/// Adds up the times of one authentication.
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

    /// Adds the time of a transfer; `answer` is the part from the request to the end of the answer.
    func add(transfer: Duration, answer: Duration) {
        times.server += answer
        times.tls += max(transfer - answer, .zero)
    }
}
