// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// A Kalman filter that estimates the signal strength without temporary obstacles.
///
/// The state has three values: the level, its rate of change, and the shadow that bodies and furniture cast. A
/// measurement is the sum of level, shadow and fading. The constants were fitted to generated walks (Tests/DoorTestSupport);
/// tests and benchmarks use other seeds.
struct LevelFilter: Sendable {
    /// Process noise: how much the rate changes, in dB per second, within one second.
    private static let rateNoise = 0.5
    /// Standard deviation of shadows in dB, and their time constant in seconds.
    private static let (shadowDeviation, shadowTime) = (5.0, 2.0)
    /// Standard deviation of fading in dB.
    private static let fading = 4.0
    /// Fading causes deep drops and only small peaks, so a drop counts with at most this many dB.
    private static let largestDrop = 5.0
    /// Seconds by which the result is extrapolated, to compensate the delay of the filter.
    private static let lead = 0.1
    /// Standard deviation of the initial rate, in dB per second.
    private static let initialRate = 3.0

    private var (level, rate, shadow) = (0.0, 0.0, 0.0)
    /// Covariances of each pair; the matrix is symmetric.
    private var (levelLevel, levelRate, levelShadow) = (0.0, 0.0, 0.0)
    private var (rateRate, rateShadow, shadowShadow) = (0.0, 0.0, 0.0)

    init(_ rssi: Int8) {
        level = Double(rssi)
        levelLevel = Self.fading * Self.fading + Self.shadowDeviation * Self.shadowDeviation
        rateRate = Self.initialRate * Self.initialRate
        shadowShadow = Self.shadowDeviation * Self.shadowDeviation
    }

    /// dBm.
    var value: Double { level + Self.lead * rate }

    mutating func add(_ rssi: Int8, after milliseconds: Milliseconds) {
        predict(Double(milliseconds) / 1000)
        // Covariances of level, rate and shadow with the measurement.
        let covariances = (levelLevel + levelShadow, levelRate + rateShadow, levelShadow + shadowShadow)
        let variance = covariances.0 + covariances.2 + Self.fading * Self.fading
        let innovation = max(Double(rssi) - level - shadow, -Self.largestDrop)
        let gain = (covariances.0 / variance, covariances.1 / variance, covariances.2 / variance)
        level += gain.0 * innovation
        rate += gain.1 * innovation
        shadow += gain.2 * innovation
        levelLevel -= gain.0 * covariances.0
        levelRate -= gain.0 * covariances.1
        levelShadow -= gain.0 * covariances.2
        rateRate -= gain.1 * covariances.1
        rateShadow -= gain.1 * covariances.2
        shadowShadow -= gain.2 * covariances.2
    }

    private mutating func predict(_ time: Double) {
        let decay = exp(-time / Self.shadowTime)
        let noise = Self.rateNoise * Self.rateNoise * time
        level += time * rate
        shadow *= decay
        levelLevel += time * (2 * levelRate + time * rateRate) + noise * time * time / 3
        levelRate += time * rateRate + noise * time / 2
        levelShadow = decay * (levelShadow + time * rateShadow)
        rateRate += noise
        rateShadow *= decay
        shadowShadow =
            decay * decay * shadowShadow + Self.shadowDeviation * Self.shadowDeviation * (1 - decay * decay)
    }
}
