// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Why a device cannot be reached. The reasons are for people.
package enum LinkFailure: Error, Sendable, Equatable {
    /// Nothing was received within the time limit.
    case timedOut
    /// There was no connection in time, with the step that has not ended.
    case late(Phrase)
    /// Another program uses the device, with the reason.
    case inUse(Phrase)
    /// The connection was not possible or was lost, with the reason.
    case failed(Phrase)
}
