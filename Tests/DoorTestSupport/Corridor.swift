// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Glibc

/// A corridor with three readers in a row, 5 m apart, along which a person walks; generated from a seed.
///
/// The person walks at 0.9 to 1.5 m/s and stands at one of the readers for 5 s. The signal of each reader has -59 dBm at one
/// metre, a log-distance loss, shadows of 4 dB that last 3 s, Rician fading, and 6 dB less while the body of the person is
/// between. One advertisement in five is lost.
package struct Corridor: Sendable {
    package struct Sample: Sendable {
        /// Milliseconds since the start.
        package let time: Int64
        package let reader: Int
        /// dBm.
        package let rssi: Int8
    }

    /// How the corridor and the person differ from others.
    package struct Variant: Sendable {
        /// The exponent of the loss.
        package var exponent = 2.2
        /// The distance of the person from the wall with the readers, in metres.
        package var distance = 1.0
        /// The phone is in front of the person, whose body is between it and the readers that were passed.
        package var hasBody = true

        package init(exponent: Double = 2.2, distance: Double = 1, hasBody: Bool = true) {
            self.exponent = exponent
            self.distance = distance
            self.hasBody = hasBody
        }
    }

    package static let readers = 3
    private static let spacing = 5.0
    private static let standing = 5.0
    /// Where the person starts, in metres before the first reader, and ends, behind the last one.
    private static let approach = 5.0

    package private(set) var samples: [Sample] = []
    /// Milliseconds.
    package let end: Int64
    private let variant: Variant
    private let speed: Double
    private let place: Double

    /// `interval` is in milliseconds.
    package init(every interval: Int64, _ variant: Variant, seed: UInt64) {
        var random = Generator(seed: seed)
        self.variant = variant
        speed = Double.random(in: 0.9...1.5, using: &random)
        place = Self.spacing * Double(Int.random(in: 0..<Self.readers, using: &random))
        let length = Self.spacing * Double(Self.readers - 1) + 2 * Self.approach
        end = Int64(1000 * (length / speed + Self.standing))
        for reader in 0..<Self.readers {
            var shadow = random.gauss() * 4
            var time = Double.random(in: 0..<Double(interval), using: &random)
            while time < Double(end) {
                let rssi = level(reader, Int64(time)) + shadow + random.fading(k: 4)
                if Double.random(in: 0..<1, using: &random) >= 0.2, rssi > -97 {
                    samples.append(Sample(time: Int64(time), reader: reader, rssi: Int8(clamping: Int(rssi.rounded()))))
                }
                let step = Double(interval) + Double.random(in: 0...10, using: &random)
                let memory = exp(-step / 3000)
                shadow = shadow * memory + random.gauss() * 4 * (1 - memory * memory).squareRoot()
                time += step
            }
        }
        samples.sort { $0.time < $1.time }
    }

    /// Where the person is along the wall, in metres.
    private func position(_ time: Int64) -> Double {
        let seconds = Double(time) / 1000
        let arrival = (place + Self.approach) / speed
        return seconds < arrival
            ? seconds * speed - Self.approach : place + max(0, seconds - arrival - Self.standing) * speed
    }

    package func isStanding(_ time: Int64) -> Bool { position(time) == place }

    /// The distance to a reader in metres.
    private func distance(_ reader: Int, _ time: Int64) -> Double {
        let along = position(time) - Self.spacing * Double(reader)
        return (along * along + variant.distance * variant.distance).squareRoot()
    }

    private func level(_ reader: Int, _ time: Int64) -> Double {
        let isBehind = position(time) > Self.spacing * Double(reader)
        return -59 - 10 * variant.exponent * log10(distance(reader, time)) - (variant.hasBody && isBehind ? 6 : 0)
    }

    /// The reader that is clearly the nearest: at most 3.5 m away, and 1.5 m nearer than the next one.
    package func nearest(_ time: Int64) -> Int? {
        let sorted = (0..<Self.readers).map { (distance($0, time), $0) }.sorted { $0.0 < $1.0 }
        return sorted[0].0 <= 3.5 && sorted[1].0 - sorted[0].0 >= 1.5 ? sorted[0].1 : nil
    }
}
