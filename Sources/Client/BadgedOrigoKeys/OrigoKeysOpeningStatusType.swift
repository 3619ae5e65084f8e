// SPDX-License-Identifier: Apache-2.0

/// How an opening has ended.
public enum OrigoKeysOpeningStatusType: Int, Sendable, CaseIterable {
    /// The dialogue was complete. This does not say whether the door opens.
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
