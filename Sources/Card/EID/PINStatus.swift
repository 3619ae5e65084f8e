// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// What a card says about its PIN in answer to MSE:Set AT. TR-03110-3 B.11.1, TR-03110-2 3.4.
package struct PINStatus: Sendable, Hashable {
    /// Tries left: 3 and 2 operational, 1 suspended (needs the CAN), 0 blocked (needs the PUK) or deactivated.
    package let retryCounter: Int
    /// The function is switched off; the authority switches it on.
    package let deactivated: Bool

    /// Tries of a PIN that was right the last time.
    package static let initialRetryCounter = 3

    package init(retryCounter: Int, deactivated: Bool = false) {
        (self.retryCounter, self.deactivated) = (retryCounter, deactivated)
    }

    /// nil for a status word that says nothing about the PIN.
    package init?(_ status: StatusWord) {
        switch status.value {
        case 0x9000: self.init(retryCounter: Self.initialRetryCounter)
        case 0x63C2: self.init(retryCounter: 2)
        case 0x63C1: self.init(retryCounter: 1)
        case 0x63C0: self.init(retryCounter: 0)
        case 0x6283: self.init(retryCounter: 0, deactivated: true)
        default: return nil
        }
    }
}
