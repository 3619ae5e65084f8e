// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
package import EService

/// How workflows reach services; the program wires it.
package struct OnlineServices: Sendable {
    /// One dialogue with the service behind a TcToken address; in developer mode with the rules of test services.
    package let connect: @Sendable (_ tcTokenURL: String, _ developerMode: Bool) -> any EServiceConnection
    package let today: @Sendable () -> CVDate

    package init(
        today: @escaping @Sendable () -> CVDate,
        connect: @escaping @Sendable (_ tcTokenURL: String, _ developerMode: Bool) -> any EServiceConnection
    ) {
        (self.connect, self.today) = (connect, today)
    }
}
