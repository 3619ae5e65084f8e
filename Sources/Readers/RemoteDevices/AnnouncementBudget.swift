// SPDX-License-Identifier: GPL-3.0-or-later

/// Limits how many datagrams are read and parsed, so that a flood costs little and hides no paired device.
///
/// Time is divided into rounds. In each one a source has a share, strangers have one together, and each paired device
/// has its own. What the kernel drops between two rounds is spread evenly over all senders.
package struct AnnouncementBudget: Sendable {
    /// The length of a round in milliseconds.
    package static let round: Int64 = 50
    private static let datagramsInRound = 256
    private static let strangersInRound = 16
    private static let pairedInRound = 64
    /// Of one source, for strangers or for one paired device.
    private static let shareInRound = 4
    /// The number of datagrams in a second that devices do not reach by themselves: each sends one or two.
    private static let floodStart = 100
    /// Milliseconds after which a flood is no longer reported.
    private static let reportTime: Int64 = 10_000
    private static let maximumSources = 256

    private struct Share: Hashable {
        let source: RemoteAddress.Host
        let device: String?
    }

    /// More datagrams in a second than devices send.
    package struct Flood: Sendable, Equatable {
        /// The datagrams that were read in a second; the kernel may have dropped more.
        package var datagrams = 0
        /// The source of most of them.
        package var source: RemoteAddress.Host
    }

    private var roundStart = Int64.min
    private var (datagrams, strangers, paired) = (0, 0, 0)
    private var shares: [Share: Int] = [:]
    private var secondStart = Int64.min
    private var second = 0
    private var sources: [RemoteAddress.Host: Int] = [:]
    private var last: (flood: Flood, time: Int64)?

    package init() {}

    /// Counts a datagram.
    /// - Returns: whether more may be read in this round.
    package mutating func count(_ source: RemoteAddress.Host, at now: Int64) -> Bool {
        if roundStart == .min || now - roundStart >= Self.round {
            roundStart = now
            datagrams = 0
            strangers = 0
            paired = 0
            shares.removeAll(keepingCapacity: true)
        }
        if secondStart == .min || now - secondStart >= 1000 {
            secondStart = now
            second = 0
            sources.removeAll(keepingCapacity: true)
        }
        datagrams += 1
        second += 1
        if sources[source] != nil || sources.count < Self.maximumSources { sources[source, default: 0] += 1 }
        if second >= Self.floodStart, let most = sources.max(by: { $0.value < $1.value }) {
            last = (Flood(datagrams: second, source: most.key), now)
        }
        return datagrams < Self.datagramsInRound
    }

    /// Whether the datagram that was counted last may be parsed. `device` is the paired device that it names.
    package mutating func admits(_ source: RemoteAddress.Host, paired device: String?) -> Bool {
        let share = Share(source: source, device: device)
        guard shares[share, default: 0] < Self.shareInRound,
            device == nil ? strangers < Self.strangersInRound : paired < Self.pairedInRound
        else { return false }
        shares[share, default: 0] += 1
        if device == nil { strangers += 1 } else { paired += 1 }
        return true
    }

    /// The flood that runs; nil: none.
    package func flood(at now: Int64) -> Flood? {
        guard let last, now - last.time < Self.reportTime else { return nil }
        return last.flood
    }
}
