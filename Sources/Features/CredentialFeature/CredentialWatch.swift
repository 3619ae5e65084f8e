// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import EID
package import PKOC
import Server

/// The clients that want credentials from tapped cards, and the settings for reading them.
///
/// Without a client that wants them, a card is only recognised: no key is read and nothing is signed.
@Loop package final class CredentialWatch {
    nonisolated let site: PKOCSite
    /// The day for which certificates are checked.
    nonisolated let today: @Sendable () -> CVDate
    /// The sessions that have sent START_CREDENTIALS.
    var watchers: [ObjectIdentifier: Session] = [:]

    var isWanted: Bool { !watchers.isEmpty }

    package nonisolated init(_ site: PKOCSite, today: @escaping @Sendable () -> CVDate) {
        (self.site, self.today) = (site, today)
    }
}
