// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// The signal of door readers over time: for the live table and for a plot.
struct SignalHistory {
    /// One report of a reader.
    struct Sample {
        /// Milliseconds on the clock of the caller.
        var time: Int64
        /// dBm of the last advertisement, and smoothed.
        var rssi: Int
        var level: Double
    }

    /// What is known of one reader.
    struct Track {
        var name: String
        /// dBm from which on the reader is in range, by the way of opening.
        var limits: [String: Int]
        var samples: [Sample]
    }

    /// The readers, and the samples of each, that are kept. A plot of more could not be read.
    private static let maximumReaders = 20
    private static let maximumSamples = 20_000
    /// How much of the past the line of a reader shows, in seconds.
    static let lineLength = 30

    /// By the id of the reader.
    private(set) var tracks: [String: Track] = [:]

    mutating func add(_ reader: DoorReader, at time: Int64) {
        let sample = Sample(time: time, rssi: reader.lastRSSI, level: reader.level)
        var track = tracks[reader.id] ?? Track(name: "", limits: [:], samples: [])
        guard tracks[reader.id] != nil || tracks.count < Self.maximumReaders else { return }
        track.name = reader.name ?? reader.id
        track.limits = reader.limits
        if track.samples.count >= Self.maximumSamples { track.samples.removeFirst(Self.maximumSamples / 10) }
        track.samples.append(sample)
        tracks[reader.id] = track
    }

    /// Drops what no line shows any more.
    mutating func dropOld(at now: Int64) {
        let start = now - Int64(Self.lineLength) * 1000
        for (id, track) in tracks {
            let kept = track.samples.filter { $0.time > start }
            if kept.isEmpty { tracks[id] = nil } else { tracks[id]?.samples = kept }
        }
    }

    private static let marks: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// The level in each of the last 30 seconds, the newest at the end; a point where nothing was received.
    func line(of id: String, at now: Int64) -> String {
        var seconds = [Character](repeating: "·", count: Self.lineLength)
        for sample in tracks[id]?.samples ?? [] {
            let age = Int((now - sample.time) / 1000)
            guard seconds.indices.contains(age) else { continue }
            // -100 dBm and less is the lowest mark, -40 dBm and more the highest one.
            let step = Int((sample.level + 100) / 60 * Double(Self.marks.count))
            seconds[Self.lineLength - 1 - age] = Self.marks[min(max(step, 0), Self.marks.count - 1)]
        }
        return String(seconds)
    }
}
