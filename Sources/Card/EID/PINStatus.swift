// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// The state of the PIN in the answer to MSE:Set AT. TR-03110-3 B.11.1, TR-03110-2 3.4.
package struct PINStatus: Sendable, Hashable {
    /// The remaining tries. 1: the PIN is suspended and needs the CAN. 0: it is blocked and needs the PUK, or deactivated.
    package let retryCounter: Int
    /// Whether the online function is switched off. Only an authority can switch it on.
    package let deactivated: Bool

    /// The tries after a correct PIN.
    package static let initialRetryCounter = 3

    package init(retryCounter: Int, deactivated: Bool = false) {
        self.retryCounter = retryCounter
        self.deactivated = deactivated
    }

    /// Reads a status word; nil when it contains no state of the PIN.
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
