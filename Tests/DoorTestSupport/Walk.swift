// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport

/// The signal of a reader while a person walks past doors, generated from a seed.
///
/// The model has a log-distance loss with exponent 2.2. Shadows of bodies and furniture are a first-order process with 3.5 dB
/// and 1.5 s. Rician fading is independent for each advertisement, because advertisements alternate between three channels. One
/// advertisement in six is lost. Values are whole dB, at least -97 dBm. The reader advertises every 100 to 300 ms with up to
/// 10 ms of jitter, with -59 dBm at one metre. At the end the person walks away for 40 s, until nothing is received.
package struct Walk: Sendable {
    package struct Sample: Sendable {
        /// Milliseconds since the start.
        package var time: Int64
        /// dBm.
        package var rssi: Int8
        /// dBm without shadows and fading.
        package var truth: Double
    }

    package var samples: [Sample] = []
    /// Milliseconds since the start.
    package private(set) var end: Int64 = 0

    /// The course of the person.
    package enum Course: Int, CaseIterable, Sendable {
        /// Walks past at a distance of 0.7 m.
        case past
        /// Comes, stands in front of the door for 6 s, and leaves.
        case visit
        /// Stands where the signal is 2 dB above the limit, for 20 s.
        case hover
        /// Passes at 12 m all the time.
        case far
    }

    package init(_ course: Course, limit: Double, seed: UInt64) {
        var random = Generator(seed: seed)
        let interval = Double.random(in: 100...300, using: &random)
        var time = 0.0
        var shadow = random.gauss() * 3.5
        // The distance at which the mean is 2 dB above the limit.
        let edge = pow(10, (-59 - limit - 2) / 22)
        while true {
            let step = interval + Double.random(in: 0...10, using: &random)
            time += step
            guard let distance = Self.distance(course, seconds: time / 1000, edge: edge) else { break }
            end = Int64(time)
            let memory = exp(-step / 1500)
            shadow = shadow * memory + random.gauss() * 3.5 * (1 - memory * memory).squareRoot()
            let truth = -59 - 22 * log10(max(distance, 0.3))
            let rssi = (truth + shadow + random.fading(k: distance < 2 ? 6 : 2.5)).rounded()
            guard Double.random(in: 0..<1, using: &random) > 1.0 / 6, rssi >= -97 else { continue }
            samples.append(Sample(time: Int64(time), rssi: Int8(clamping: Int(rssi)), truth: truth))
        }
    }

    /// Seconds from leaving the door to the end of the walk.
    private static let away = 40.0

    /// The distance to the door in metres; nil at the end of the walk. The person walks at 1.3 m/s.
    private static func distance(_ course: Course, seconds: Double, edge: Double) -> Double? {
        func line(_ x: Double, _ side: Double) -> Double { (x * x + side * side).squareRoot() }
        switch course {
        case .past: return seconds < 12 + away ? line((seconds - 12) * 1.3, 0.7) : nil
        case .visit:
            if seconds < 12 { return line((12 - seconds) * 1.3, 0.5) }
            if seconds < 18 { return 0.5 }
            return seconds < 18 + away ? line((seconds - 18) * 1.3, 0.5) : nil
        case .hover:
            if seconds < 10 { return max(edge, edge + (10 - seconds) * 1.3) }
            if seconds < 30 { return edge }
            return seconds < 30 + away ? edge + (seconds - 30) * 1.3 : nil
        case .far: return seconds < 24 ? line((seconds - 12) * 1.3, 12) : nil
        }
    }
}

/// SplitMix64, with the distributions of the model.
package struct Generator: RandomNumberGenerator {
    private var numbers: SplitMix64

    package init(seed: UInt64) { numbers = SplitMix64(seed: seed) }

    package mutating func next() -> UInt64 { numbers.next() }

    /// Normal distribution with mean 0 and deviation 1.
    package mutating func gauss() -> Double {
        (-2 * log(Double.random(in: 1e-12..<1, using: &self))).squareRoot()
            * cos(2 * .pi * Double.random(in: 0..<1, using: &self))
    }

    /// Rician fading in dB with a mean power of 0 dB; `k` is the ratio of the direct path to all other paths.
    package mutating func fading(k: Double) -> Double {
        let spread = (1 / (2 * (k + 1))).squareRoot()
        let (x, y) = ((k / (k + 1)).squareRoot() + gauss() * spread, gauss() * spread)
        return 10 * log10(max(x * x + y * y, 1e-6))
    }
}
