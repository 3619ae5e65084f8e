// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
package import EService

/// Connects workflows to services. The program wires an implementation.
package struct OnlineServices: Sendable {
    /// Makes a dialogue with the service of a TcToken address. Developer mode applies the rules of test services.
    package let connect: @Sendable (_ tcTokenURL: String, _ developerMode: Bool) -> any EServiceConnection
    package let today: @Sendable () -> CVDate

    package init(
        today: @escaping @Sendable () -> CVDate,
        connect: @escaping @Sendable (_ tcTokenURL: String, _ developerMode: Bool) -> any EServiceConnection
    ) {
        (self.connect, self.today) = (connect, today)
    }
}
