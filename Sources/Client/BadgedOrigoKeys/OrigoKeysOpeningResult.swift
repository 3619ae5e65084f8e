// SPDX-License-Identifier: Apache-2.0
import BadgedClient
public import Foundation

/// How an opening has ended, after a connection.
public final class OrigoKeysOpeningResult: NSObject, Sendable {
    public let status: OrigoKeysOpeningStatusType
    /// What the reader has answered; nil: nothing.
    public let statusPayload: Data?
    /// How long the opening took, in seconds.
    public let connectionDuration: Double
    /// An addition of badged: `granted`, `denied` or `unknown`, as the reader says. Nothing authenticates it.
    public let accessDecision: String

    /// An opening without a result of badged.
    init(_ status: OrigoKeysOpeningStatusType) {
        self.status = status
        statusPayload = nil
        connectionDuration = 0
        accessDecision = "unknown"
    }

    init(_ result: DoorOpeningResult) {
        status = OrigoKeysOpeningStatusType(name: result.status)
        statusPayload = result.payload.isEmpty ? nil : Data(result.payload)
        connectionDuration = result.duration / .seconds(1)
        accessDecision = result.accessDecision
    }
}

/// The time limits of openings, in seconds. badged takes 0.05 to 60.
public final class OrigoKeysTimeoutConfiguration: NSObject {
    public var maxTimeBetweenFragments = 0.3
    public var maxTimeBetweenApdus = 1.2
    public var maxConnectionTime = 3.2

    public override init() {}
}

/// The BER tag of a data object, of one or two bytes. ISO/IEC 7816-4, 5.2.2.1.
public final class OrigoKeysSeosTag: NSObject, Sendable {
    /// The tag as a number, such as 0x5F24. The second of two bytes is 0x1F to 0x7F.
    public let tag: UInt

    public init(tag: UInt) { self.tag = tag }
}
