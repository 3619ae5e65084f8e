// SPDX-License-Identifier: GPL-3.0-or-later
import EService
import ISO7816
import Synchronization

/// Measures the parts of the time of one authentication.
struct AuthenticationTimes: Sendable {
    /// The time from the command to the result, including the client's answers.
    var total = Duration.zero
    var service = ServiceTimes()
    /// The time from commands to the card's answers.
    var card = Duration.zero
    /// The time of the terminal's own part of PACE, TA and CA.
    var cryptography = Duration.zero

    /// One line, in milliseconds: `total=43.100 tls=10.200 ...`. The remaining time is that of the client and of the
    /// transport.
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

/// Measures the time of the answers of a card.
final class TimedChannel: CardChannel {
    private let base: any CardChannel
    private let nanoseconds = Atomic<Int64>(0)

    init(_ base: any CardChannel) { self.base = base }

    /// The time of all commands so far.
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
