// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// How strong a sender would be heard if nothing stood in the way for a moment: a Kalman filter of three unknowns, the
/// level, how fast it changes, and the shadow that bodies and furniture cast just now. What is heard is the sum of the
/// first and the third, and the fading of this one advertisement.
///
/// The constants were found on generated walks (Tests/DoorWalks) with other seeds than those of the tests and benchmarks.
struct SteadyLevel: Sendable {
    /// How restless people are: dB per second, gained or lost in a second.
    private static let restlessness = 0.5
    /// Deviation of shadows in dB, and the seconds after which one is forgotten.
    private static let shadow = 5.0
    private static let shadowTime = 2.0
    /// Deviation of fading in dB.
    private static let fading = 4.0
    /// Fading digs deep holes and never builds towers as high: of a fall below what was expected only so many dB count.
    private static let deepestFall = 5.0
    /// Seconds that the filter looks ahead, for it lags behind.
    private static let lead = 0.1
    /// Deviation in dB per second of the speed of somebody of whom nothing is known yet.
    private static let unknownSpeed = 3.0

    private var (level, speed, cast) = (0.0, 0.0, 0.0)
    /// Covariances, named by their pair; the matrix is symmetric.
    private var (levelLevel, levelSpeed, levelCast) = (0.0, 0.0, 0.0)
    private var (speedSpeed, speedCast, castCast) = (0.0, 0.0, 0.0)

    init(_ rssi: Int8) { begin(rssi) }

    /// Starts anew: what was known is too old.
    mutating func begin(_ rssi: Int8) {
        (level, speed, cast) = (Double(rssi), 0, 0)
        levelLevel = Self.fading * Self.fading + Self.shadow * Self.shadow
        speedSpeed = Self.unknownSpeed * Self.unknownSpeed
        castCast = Self.shadow * Self.shadow
        (levelSpeed, levelCast, speedCast) = (0, 0, 0)
    }

    /// dBm.
    var value: Double { level + Self.lead * speed }

    mutating func add(_ rssi: Int8, after milliseconds: Milliseconds) {
        predict(Double(milliseconds) / 1000)
        let covariances = (levelLevel + levelCast, levelSpeed + speedCast, levelCast + castCast)
        let variance = covariances.0 + covariances.2 + Self.fading * Self.fading
        let surprise = max(Double(rssi) - level - cast, -Self.deepestFall)
        let gain = (covariances.0 / variance, covariances.1 / variance, covariances.2 / variance)
        level += gain.0 * surprise
        speed += gain.1 * surprise
        cast += gain.2 * surprise
        levelLevel -= gain.0 * covariances.0
        levelSpeed -= gain.0 * covariances.1
        levelCast -= gain.0 * covariances.2
        speedSpeed -= gain.1 * covariances.1
        speedCast -= gain.1 * covariances.2
        castCast -= gain.2 * covariances.2
    }

    private mutating func predict(_ time: Double) {
        let memory = exp(-time / Self.shadowTime)
        let noise = Self.restlessness * Self.restlessness * time
        level += time * speed
        cast *= memory
        levelLevel += time * (2 * levelSpeed + time * speedSpeed) + noise * time * time / 3
        levelSpeed += time * speedSpeed + noise * time / 2
        levelCast = memory * (levelCast + time * speedCast)
        speedSpeed += noise
        speedCast *= memory
        castCast = memory * memory * castCast + Self.shadow * Self.shadow * (1 - memory * memory)
    }
}
