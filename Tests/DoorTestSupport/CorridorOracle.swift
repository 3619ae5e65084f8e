// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The best answer to the question which reader of a corridor is the nearest, from all that was received.
///
/// It knows what no program can know: the loss, the shadows and the fading of `Corridor`, the body of the person, the distance
/// from the wall, the range of the speed, and that the person goes straight on and stands once for 5 s. It does not know where
/// the readers are. It compares all courses of the person and all places of each reader (Bayes), with a Kalman filter for the
/// shadow in each case. Finer grids change its results by half a percent.
package struct CorridorOracle {
    /// A course: the speed in m/s, and the second in which the person begins to stand.
    private let courses: [(speed: Double, stop: Double)]
    /// Where a reader may be, in metres from the place where the person was first.
    private static let places = (-3...32).map(Double.init)
    private let variant: Corridor.Variant
    /// For each reader, course and place: the logarithm of the probability of the samples, and the estimated shadow.
    private var likelihoods: [[Double]]
    private var shadows: [[Double]]
    /// For each reader: the variance of the shadow, and the second of the last sample.
    private var variances = [Double](repeating: 16, count: Corridor.readers)
    private var seconds = [Double?](repeating: nil, count: Corridor.readers)

    /// Mean and variance of Rician fading in dB with k = 4.
    private static let (fadingMean, fadingVariance) = (-0.96, 10.7)

    package init(_ variant: Corridor.Variant) {
        self.variant = variant
        courses = [0.9, 1.2, 1.5].flatMap { speed in (0..<26).map { (speed, Double($0)) } }
        let none = [Double](repeating: 0, count: courses.count * Self.places.count)
        likelihoods = [[Double]](repeating: none, count: Corridor.readers)
        shadows = likelihoods
    }

    /// How far the person has come.
    private func way(_ course: (speed: Double, stop: Double), _ time: Double) -> Double {
        (min(time, course.stop) + max(0, time - course.stop - 5)) * course.speed
    }

    package mutating func receive(_ sample: Corridor.Sample) {
        let (reader, time) = (sample.reader, Double(sample.time) / 1000)
        let memory = seconds[reader].map { exp(-(time - $0) / 3) } ?? 1
        seconds[reader] = time
        variances[reader] = variances[reader] * memory * memory + 16 * (1 - memory * memory)
        let variance = variances[reader] + Self.fadingVariance
        let gain = variances[reader] / variance
        variances[reader] *= 1 - gain
        var index = 0
        for course in courses {
            let way = way(course, time)
            for place in Self.places {
                let along = way - place
                let distance = (along * along + variant.distance * variant.distance).squareRoot()
                let body = variant.hasBody && along > 0 ? 6.0 : 0
                let level = -59 - 10 * variant.exponent * log10(distance) - body + Self.fadingMean
                let shadow = shadows[reader][index] * memory
                let error = Double(sample.rssi) - level - shadow
                likelihoods[reader][index] -= error * error / variance / 2
                shadows[reader][index] = shadow + gain * error
                index += 1
            }
        }
    }

    /// The reader that is most probably the nearest at this time in milliseconds; nil before the first sample.
    package func nearest(_ time: Int64) -> Int? {
        guard seconds.contains(where: { $0 != nil }) else { return nil }
        let count = Self.places.count
        var best = -Double.infinity
        // For each course: the logarithm of its probability, and the probability of each reader to be the nearest.
        var results: [(weight: Double, nearest: [Double])] = []
        for (number, course) in courses.enumerated() {
            let way = way(course, Double(time) / 1000)
            let order = Self.places.indices.sorted { abs(way - Self.places[$0]) < abs(way - Self.places[$1]) }
            var weight = 0.0
            let chances = likelihoods.map { likelihoods -> [Double] in
                let own = likelihoods[number * count..<(number + 1) * count]
                let largest = own.max() ?? 0
                let chances = order.map { exp(own[number * count + $0] - largest) }
                let sum = chances.reduce(0, +)
                weight += log(sum) + largest
                return chances.map { $0 / sum }
            }
            best = max(best, weight)
            results.append((weight, Self.nearest(chances)))
        }
        var sums = [Double](repeating: 0, count: Corridor.readers)
        for result in results {
            for reader in sums.indices { sums[reader] += exp(result.weight - best) * result.nearest[reader] }
        }
        return sums.indices.max { sums[$0] < sums[$1] }
    }

    /// The probability of each reader to be the nearest, from those of its distances in ascending order.
    private static func nearest(_ chances: [[Double]]) -> [Double] {
        var result = [Double](repeating: 0, count: chances.count)
        // The probability of each reader to be farther away than the distance.
        var farther = [Double](repeating: 1, count: chances.count)
        for index in chances[0].indices {
            let halves = chances.indices.map { max(0, farther[$0] - chances[$0][index] / 2) }
            for reader in chances.indices {
                let others = halves.indices.filter { $0 != reader }.map { halves[$0] }.reduce(1, *)
                result[reader] += chances[reader][index] * others
                farther[reader] -= chances[reader][index]
            }
        }
        return result
    }
}
