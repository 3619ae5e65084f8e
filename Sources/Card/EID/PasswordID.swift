// SPDX-License-Identifier: GPL-3.0-or-later

/// The kind of password that PACE proves: the value of data object 83. TR-03110-3 B.14.1.
package enum PasswordID: UInt8, Sendable, CaseIterable {
    /// Document number, date of birth and date of expiry, each with its check digit.
    case mrz = 1
    case can = 2
    case pin = 3
    case puk = 4
}
