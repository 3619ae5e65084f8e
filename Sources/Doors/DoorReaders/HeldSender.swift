// SPDX-License-Identifier: GPL-3.0-or-later

/// A sender with a changing address that may be a known reader with a new address. The sender is not reported until
/// this is decided.
struct HeldSender {
    struct Sample {
        let rssi: Int8
        let adapter: Int
        let time: Milliseconds
        /// `time` in listening time.
        let heard: Milliseconds
    }

    let profile: ReaderProfile
    let address: DeviceAddress
    let aliroReader: DecodedAdvertisement.AliroAdvertisement?
    var facts = ReaderFacts()
    /// Never empty; the newest one is last.
    private(set) var samples: [Sample]
    /// The known reader with this identity was received after this sender.
    var isDistinct = false
    /// When the first sample was received, in listening time.
    let since: Milliseconds

    init(
        _ profile: ReaderProfile,
        _ address: DeviceAddress,
        _ aliroReader: DecodedAdvertisement.AliroAdvertisement?,
        _ first: Sample
    ) {
        self.profile = profile
        self.address = address
        self.aliroReader = aliroReader
        samples = [first]
        since = first.heard
    }

    mutating func add(_ sample: Sample) {
        if samples.count == SignalTrack.historyLength { samples.removeFirst() }
        samples.append(sample)
    }

    /// Drops the samples of an adapter that was removed.
    /// - Returns: false when no other adapter has received the sender.
    mutating func remove(adapter: Int) -> Bool {
        guard samples.contains(where: { $0.adapter != adapter }) else { return false }
        samples.removeAll { $0.adapter == adapter }
        return true
    }
}
