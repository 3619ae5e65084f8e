// SPDX-License-Identifier: GPL-3.0-or-later
import EService
import ISO7816
import Synchronization

/// Where the time of one authentication went, on a clock.
struct AuthenticationTimes: Sendable {
    /// From the command to the result, the client's answers among it.
    var total = Duration.zero
    var service = ServiceTimes()
    /// From commands to the card's answers.
    var card = Duration.zero
    /// The terminal's own part of PACE, TA and CA.
    var cryptography = Duration.zero

    /// One line, in milliseconds: `total=43.100 tls=10.200 ...`. What is in none of the parts is the client, and the ways
    /// between them.
    var text: String {
        let parts = [
            ("total", total), ("tls", service.tls), ("server", service.server), ("xml", service.xml), ("card", card),
            ("cryptography", cryptography + service.checks),
        ]
        return parts.map { "\($0)=\(Self.milliseconds($1))" }.joined(separator: " ")
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let (whole, rest) = Int(duration / .microseconds(1)).quotientAndRemainder(dividingBy: 1000)
        return "\(whole).\(String(1000 + rest).dropFirst())"
    }
}

/// A card whose answers are timed.
final class TimedChannel: CardChannel {
    private let base: any CardChannel
    private let nanoseconds = Atomic<Int64>(0)

    init(_ base: any CardChannel) { self.base = base }

    /// What all commands so far took.
    var time: Duration { .nanoseconds(nanoseconds.load(ordering: .relaxed)) }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        let begin = ContinuousClock.now
        defer {
            let time = begin.duration(to: .now).components
            nanoseconds.add(time.seconds * 1_000_000_000 + time.attoseconds / 1_000_000_000, ordering: .relaxed)
        }
        return try await base.transmit(command)
    }
}
