// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// A Kalman filter that estimates the signal strength at one place from single measurements.
///
/// The state has three values: the level, its rate of change, and the shadow that bodies and furniture cast. A
/// measurement is the sum of level, shadow and fading. The constants were fitted to generated walks (Tests/DoorTestSupport);
/// tests and benchmarks use other seeds.
struct LevelFilter: Sendable {
    /// What the filter assumes about a signal.
    struct Model: Sendable {
        /// How much the rate changes, in dB per second, within one second.
        let rateNoise: Double
        /// Seconds in which the rate falls to 37 % when no measurement confirms it, because people stop.
        let rateTime: Double
        /// Standard deviation of shadows in dB, and their time constant in seconds.
        let shadowDeviation: Double
        let shadowTime: Double
        /// Standard deviation of fading in dB.
        let fading: Double
        /// Fading causes deep drops and only small peaks, so a drop counts with at most this many dB per second.
        let largestDrop: Double
        /// Seconds by which the result is extrapolated, to compensate the delay of the filter.
        let lead: Double

        /// Steady: without temporary shadows, for decisions about ranges.
        static let range = Model(
            rateNoise: 1,
            rateTime: 10,
            shadowDeviation: 5,
            shadowTime: 2,
            fading: 4,
            largestDrop: 30,
            lead: 0.1
        )

        /// Fast: follows a person who walks, for comparisons of readers.
        static let comparison = Model(
            rateNoise: 5,
            rateTime: 3,
            shadowDeviation: 0,
            shadowTime: 1,
            fading: 4.5,
            largestDrop: .infinity,
            lead: 0
        )
    }

    /// Standard deviation of the initial rate, in dB per second.
    private static let initialRate = 3.0

    private let model: Model
    private var (level, rate, shadow) = (0.0, 0.0, 0.0)
    /// Covariances of each pair; the matrix is symmetric.
    private var (levelLevel, levelRate, levelShadow) = (0.0, 0.0, 0.0)
    private var (rateRate, rateShadow, shadowShadow) = (0.0, 0.0, 0.0)

    init(_ rssi: Int8, _ model: Model) {
        self.model = model
        level = Double(rssi)
        levelLevel = model.fading * model.fading + model.shadowDeviation * model.shadowDeviation
        rateRate = Self.initialRate * Self.initialRate
        shadowShadow = model.shadowDeviation * model.shadowDeviation
    }

    /// dBm, at this time after the last measurement.
    func value(after milliseconds: Milliseconds = 0) -> Double {
        level + way(Double(milliseconds) / 1000 + model.lead) * rate
    }

    mutating func add(_ rssi: Int8, after milliseconds: Milliseconds) {
        let time = Double(milliseconds) / 1000
        predict(time)
        // Covariances of level, rate and shadow with the measurement.
        let covariances = (levelLevel + levelShadow, levelRate + rateShadow, levelShadow + shadowShadow)
        let variance = covariances.0 + covariances.2 + model.fading * model.fading
        let innovation = max(Double(rssi) - level - shadow, -model.largestDrop * time)
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

    /// By how much the level changes in this time, for each dB per second of the rate, which decays.
    private func way(_ time: Double) -> Double { model.rateTime * (1 - exp(-time / model.rateTime)) }

    private mutating func predict(_ time: Double) {
        let (rateDecay, shadowDecay) = (exp(-time / model.rateTime), exp(-time / model.shadowTime))
        let way = way(time)
        let noise = model.rateNoise * model.rateNoise * model.rateTime / 2 * (1 - rateDecay * rateDecay)
        level += way * rate
        rate *= rateDecay
        shadow *= shadowDecay
        levelLevel += way * (2 * levelRate + way * rateRate) + noise * time * time / 3
        levelRate = rateDecay * (levelRate + way * rateRate) + noise * time / 2
        levelShadow = shadowDecay * (levelShadow + way * rateShadow)
        rateRate = rateDecay * rateDecay * rateRate + noise
        rateShadow *= rateDecay * shadowDecay
        let deviation = model.shadowDeviation * model.shadowDeviation
        shadowShadow = shadowDecay * shadowDecay * shadowShadow + deviation * (1 - shadowDecay * shadowDecay)
    }
}
