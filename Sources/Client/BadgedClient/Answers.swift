// SPDX-License-Identifier: Apache-2.0

/// Who serves: INFO.
public struct DaemonInfo: Sendable, Equatable {
    /// `badged`, or the product of another server of the same protocol.
    public var name: String
    public var version: String
    /// Version of badged's additions to the SDK's protocol; nil when the server is no badged.
    public var protocolVersion: Int?
    /// Card reader drivers that run, such as `pcsc` and `virtual`.
    public var drivers: [String]
    /// Door reader scanners that run.
    public var scanners: [String]

    public init(
        name: String,
        version: String,
        protocolVersion: Int? = nil,
        drivers: [String] = [],
        scanners: [String] = []
    ) {
        (self.name, self.version, self.protocolVersion) = (name, version, protocolVersion)
        (self.drivers, self.scanners) = (drivers, scanners)
    }
}

/// A card in a reader.
public enum Card: Sendable, Equatable {
    /// Not an eID card. Below API level 3 such a card is not seen at all.
    case unknown
    /// - retryCounter: PIN tries left, 3 to 0; at 1 the card wants the CAN first, at 0 the PUK.
    /// - deactivated: the online function is switched off.
    /// - inoperative: the PUK is used up.
    case eid(retryCounter: Int, deactivated: Bool, inoperative: Bool)
}

/// A card reader: READER, an entry of READER_LIST, `reader` of the ENTER messages.
public struct Reader: Sendable, Equatable {
    public var name: String
    /// false: there is no such reader, or not any more; then nothing else is known.
    public var isAttached: Bool
    /// `setCard` can put a card in: a virtual reader whose card is on the shelf.
    public var isInsertable: Bool
    /// PIN, CAN and PUK are typed on the reader: send them without a value.
    public var hasKeypad: Bool
    /// Another client's workflow holds it.
    public var isBusy: Bool
    public var card: Card?

    public init(
        name: String,
        isAttached: Bool = true,
        isInsertable: Bool = false,
        hasKeypad: Bool = false,
        isBusy: Bool = false,
        card: Card? = nil
    ) {
        (self.name, self.isAttached, self.isInsertable) = (name, isAttached, isInsertable)
        (self.hasKeypad, self.isBusy, self.card) = (hasKeypad, isBusy, card)
    }
}

/// What this connection's workflow is doing: STATUS.
public struct WorkflowStatus: Sendable, Equatable {
    /// `CHANGE_PIN`, `AUTH`; nil when none runs.
    public var workflow: String?
    /// Percent.
    public var progress: Int?
    /// The message whose answer it waits for, such as `ENTER_PIN`.
    public var state: String?

    public init(workflow: String? = nil, progress: Int? = nil, state: String? = nil) {
        (self.workflow, self.progress, self.state) = (workflow, progress, state)
    }
}

/// One line of HEALTH.
public struct HealthCheck: Sendable, Equatable {
    public var name: String
    public var isOK: Bool
    /// What to do when it is not.
    public var advice: String?
    /// Since when, where badged has been watching: for the radio while somebody scans.
    public var errorAge: Duration?

    public init(name: String, isOK: Bool, advice: String? = nil, errorAge: Duration? = nil) {
        (self.name, self.isOK, self.advice, self.errorAge) = (name, isOK, advice, errorAge)
    }
}

/// API_LEVEL.
public struct APILevels: Sendable, Equatable {
    public var current: Int
    /// Empty when the answer does not tell.
    public var available: [Int]

    public init(current: Int, available: [Int] = []) {
        (self.current, self.available) = (current, available)
    }
}

/// What a workflow asks the person for.
public enum SecretKind: String, Sendable, CaseIterable {
    case pin = "PIN"
    case can = "CAN"
    case newPIN = "NEW_PIN"
    case puk = "PUK"

    /// `ENTER_PIN` ...
    public var question: String { "ENTER_\(rawValue)" }
    /// `SET_PIN` ...
    public var command: String { "SET_\(rawValue)" }
}
