// SPDX-License-Identifier: Apache-2.0

/// Something that this computer lacks: an element of `healthCheck()`.
public struct OrigoKeysInfo: Sendable, Equatable, CustomStringConvertible {
    public let type: OrigoKeysInfoType
    /// What is wrong and what to do, in English.
    public let description: String

    /// The number of `type`.
    public var intValue: Int { type.rawValue }
}

/// What this computer lacks.
public enum OrigoKeysInfoType: Int, Sendable, CaseIterable {
    case bleNotSupported = 1
    case bleTurnedOff
    case locationServicesNotEnabled
    case locationServicesNotDetermined
    case locationServicesTurnedOff
    case locationMonitoringNotSupported
    case locationMonitoringTurnedOff
    case passcodeWarning
    case bleSharingTurnedOff
    case secureElementPassNotAvailable
    case mainWindowNotAvailable
}

/// What this computer lacks for wallets of phones.
public enum OrigoKeysWalletInfoType: Int, Sendable, CaseIterable {
    case secureElementPassNotAvailable = 0
    case mainWindowNotAvailable
}
