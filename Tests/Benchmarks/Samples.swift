// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Nanoseconds of the monotonic clock.
func monotonicNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Microseconds since `start`, a value of `monotonicNow`.
func microseconds(since start: UInt64) -> Double {
    Double(monotonicNow() &- start) / 1000
}

/// Waits, as a quiet client does.
func pause(milliseconds: Int) {
    var time = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
    var rest = timespec()
    while nanosleep(&time, &rest) != 0, errno == EINTR { time = rest }
}

/// Measured values of one kind.
struct Samples {
    private(set) var values: [Double] = []

    var count: Int { values.count }
    var median: Double { percentile(50) }
    var minimum: Double { values.min() ?? .nan }
    var maximum: Double { values.max() ?? .nan }

    /// The smallest and the largest value as text.
    func span(_ digits: Int) -> String { "\(text(minimum, digits))-\(text(maximum, digits))" }

    init(_ values: [Double] = []) { self.values = values }

    mutating func add(_ value: Double) { values.append(value) }

    /// The smallest value that is not exceeded by `percent` of the values. The median of an even number of values is the
    /// mean of the two in the middle.
    func percentile(_ percent: Double) -> Double {
        guard !values.isEmpty else { return .nan }
        let sorted = values.sorted()
        if percent == 50, sorted.count.isMultiple(of: 2) {
            return (sorted[sorted.count / 2 - 1] + sorted[sorted.count / 2]) / 2
        }
        let rank = (percent / 100 * Double(sorted.count)).rounded(.up)
        return sorted[min(max(Int(rank) - 1, 0), sorted.count - 1)]
    }
}

/// A number as text with this many digits after the point.
func text(_ value: Double, _ digits: Int) -> String {
    guard value.isFinite else { return "-" }
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    let rounded = Int((abs(value) * scale).rounded())
    let sign = value < 0 && rounded != 0 ? "-" : ""
    guard digits > 0 else { return "\(sign)\(rounded)" }
    let fraction = String(rounded % Int(scale))
    return "\(sign)\(rounded / Int(scale))." + String(repeating: "0", count: digits - fraction.count) + fraction
}

/// The reason why a measurement failed.
struct BenchError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
    /// A failed call of the system.
    init(call: String) { description = "\(call): \(String(cString: strerror(errno)))" }
}
