// SPDX-License-Identifier: Apache-2.0

/// How much of the time the radio listens.
public enum OrigoKeysScanMode: Int, Sendable, CaseIterable {
    /// Nearly all of the time.
    case optimizePerformance = 0
    /// With pauses.
    case optimizePowerConsumption = 1
}

/// The ways to open a reader.
public enum OrigoKeysOpeningType: Int, Sendable, CaseIterable {
    case unknown = 0
    /// Tap: the reader is very near.
    case proximity = 1
    /// Twist and go: near, with a gesture. Here the program calls `unlockGesture()`.
    case motion = 2
    /// Hands free.
    case seamless = 4
    /// The program chooses the reader.
    case applicationSpecific = 8
    case enhancedTap = 0x40

    /// The name in messages of badged; nil for `unknown`.
    var name: String? { self == .unknown ? nil : "\(self)" }

    init(name: String) { self = Self.allCases.first { $0.name == name } ?? .unknown }

    /// Reads an element of an array of the app: the type itself, its raw value, or a number of Foundation.
    init?(element: Any) {
        if let type = element as? Self {
            self = type
        } else if let number = Int("\(element)"), let type = Self(rawValue: number), type != .unknown {
            self = type
        } else {
            return nil
        }
    }
}

/// How an opening has ended.
public enum OrigoKeysOpeningStatusType: Int, Sendable, CaseIterable {
    /// The dialogue was complete. Whether the door opens is another matter.
    case success = 0
    case bluetoothCommunicationFailed = 1
    case timedOut = 2
    case outOfRange = 3
    case busy = 4
    case motionNotSupported = 5
    case tapNotSupported = 6
    case origoKeyNotFound = 7
    case readerAntiPassback = 8
    case readerFailure = 9
    case bluetoothCommunicationFailedWithDeadLock = 10
    case deviceTimedOutEarly = 11
    case deviceTimedOutApdu = 12
    case deviceTimedOutFragment = 13
    case readerTimedOutBle = 14
    case readerTimedOutApdu = 15
    case readerTimedOutFragment = 16
    case openingTypeNotSupported = 17

    /// Reads the name in messages of badged. An unknown name is a failure of the communication.
    init(name: String) {
        self =
            switch name {
            case "keyNotFound": .origoKeyNotFound
            case "communicationFailedWithDeadLock": .bluetoothCommunicationFailedWithDeadLock
            case "deviceTimedOutAPDU": .deviceTimedOutApdu
            case "readerTimedOutAPDU": .readerTimedOutApdu
            case "readerTimedOutBLE": .readerTimedOutBle
            default: Self.allCases.first { "\($0)" == name } ?? .bluetoothCommunicationFailed
            }
    }
}

/// What made the app open a reader. badged does not need it.
public enum OrigoKeysUnlockOpeningType: Int, Sendable, CaseIterable {
    case none = 0
    case widget = 1
    case wearable = 2
    /// Twist and go.
    case TG = 3
}

/// Where keys come from.
public enum OrigoEnvironmentType: Int, Sendable, CaseIterable {
    case prod = 0
    case demo = 1
    case test = 2
    case dev = 3
    /// The endpoint of badged.
    case local = 4
    case staging = 5
    case acceptance = 6
    case unknown = 15
}

/// Where a key can be kept.
public enum OrigoKeysTarget: String, Sendable, CaseIterable {
    /// The store of badged.
    case OrigoSDK
    case OrigoAppleWallet
    case OrigoAppleWalletPreview
}

/// The role of a reader.
public enum OrigoKeysReaderType: Int, Sendable, CaseIterable {
    /// It advertises, and waits for a connection.
    case blePeripheral = 0
    case bleCentral = 1
    case httpRest = 2
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
