// SPDX-License-Identifier: GPL-3.0-or-later
package import Host
package import ISO7816
package import Text

/// Identifies one card in one reader from its insertion to its removal.
///
/// A card that is removed and inserted again has a new insertion. A password that was typed for one insertion is never
/// used for another.
package struct Insertion: Hashable, Sendable {
    /// Name of the reader, unique among all backends.
    package let reader: String
    /// The number of the insertion, counted over all readers of the backend.
    package let number: UInt64

    package init(reader: String, number: UInt64) {
        self.reader = reader
        self.number = number
    }
}

/// Fixed properties of a reader.
package struct ReaderDescription: Sendable, Equatable {
    package let name: String
    /// Whether the user types PIN, CAN and PUK on the reader, which runs PACE (PC/SC part 10 AMD1, EXECUTE_PACE).
    package var hasKeypad: Bool
    /// Whether the reader is a virtual one, which takes cards with `SET_CARD`.
    package var takesCards: Bool
    /// Whether the reader can transmit extended-length APDUs, which the eID card needs.
    package var hasExtendedLength: Bool
    /// Whether another device lends the reader over the network.
    package var isRemote: Bool

    package init(
        name: String,
        hasKeypad: Bool = false,
        takesCards: Bool = false,
        hasExtendedLength: Bool = true,
        isRemote: Bool = false
    ) {
        self.name = name
        self.hasKeypad = hasKeypad
        self.takesCards = takesCards
        self.hasExtendedLength = hasExtendedLength
        self.isRemote = isRemote
    }
}

/// An event that a backend reports to the registry. Events are reported in the order in which they occur.
package enum ReaderEvent: Sendable {
    case added(ReaderDescription)
    /// The properties of the reader have changed, or another program holds it no more.
    case changed(ReaderDescription)
    case removed(reader: String)
    /// `answerToReset` as ISO 7816-3 or PC/SC part 3 builds it.
    case inserted(Insertion, answerToReset: [UInt8])
    case withdrawn(Insertion)
    /// A connection waits for a card that another program holds. `changed` follows when the wait is over.
    case held(Insertion)
    /// The state of the backend itself changed; replaces its earlier checks.
    case health([HealthCheck])
}

/// A source of readers: PC/SC, libnfc, virtual.
///
/// A new kind of reader needs one target with a backend, and one line in the program that wires the backend.
package protocol ReaderBackend: Sendable {
    /// Name of the driver in INFO and in logs, such as `pcsc`.
    var name: String { get }

    /// All events from the first on, for one consumer. The backend watches readers while the consumer reads the stream.
    var events: AsyncStream<ReaderEvent> { get }

    /// Connects to the card of this insertion only, and holds the card (PC/SC: a transaction) until `disconnect`.
    /// - Throws: `CardError.removed` if the insertion has ended, `.exclusive`, `.accessDenied`, ...
    func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection

    /// Makes the checks for GET_HEALTH that are not sent as events.
    func currentHealth() async -> [HealthCheck]

    /// Records what is said to the device of a reader while it is opened anew: the text of a `BoardRecording`, which is not
    /// checked. The reader is removed, and added again.
    func record(_ reader: String) async throws(CardError) -> [UInt8]

    /// Says whether clients watch readers. Only then a backend asks its program again and again whether it lives.
    func watch(_ isOn: Bool)

    /// Looks for readers that appear without an event. SIGHUP calls this.
    func rescan()

    /// Releases readers that would stay active after the end of the process. Takes 0.7 s at most.
    func close() async
}

extension ReaderBackend {
    package func currentHealth() async -> [HealthCheck] { [] }
    package func record(_ reader: String) async throws(CardError) -> [UInt8] { throw .other(BoardRecording.noBoard) }
    package func watch(_ isOn: Bool) {}
    package func rescan() {}
    package func close() async {}
}

/// A connection that holds a card. Deallocation releases the card, even without `disconnect`.
package protocol CardConnection: CardChannel {
    /// Releases the card. With `reset` the card ends every secure channel.
    func disconnect(reset: Bool) async
    /// Shows the progress of a workflow where the card is, if the reader is another device with a display.
    func show(progress percent: Int)
    /// Runs a part of a dialogue that may have many commands, where they need no change of threads if the connection has
    /// a thread of its own. `fault` is thrown if the card does not answer for some seconds after the task is cancelled.
    func run<Value: Sendable, Fault: Error>(
        orIfGivenUp fault: Fault,
        _ dialogue: @escaping @Sendable () async throws(Fault) -> Value
    ) async throws(Fault) -> Value
}

extension CardConnection {
    package func run<Value: Sendable, Fault: Error>(
        orIfGivenUp fault: Fault,
        _ dialogue: @escaping @Sendable () async throws(Fault) -> Value
    ) async throws(Fault) -> Value {
        try await dialogue()
    }

    package func show(progress percent: Int) {}
}

/// A card in a reader that runs PACE and changes the PIN itself; no secret passes through the host.
package protocol KeypadConnection: CardConnection {
    /// The reader asks its user for the password and runs PACE. PC/SC part 10 AMD1, EstablishPACEChannel.
    func establishPACE(_ request: KeypadPACERequest) async throws(CardError) -> KeypadPACEResult
    /// Ends the PACE channel of the reader. PC/SC part 10 AMD1, DestroyPACEChannel.
    func destroyPACE() async throws(CardError)
    /// The reader asks for the new PIN twice and sends RESET RETRY COUNTER. PC/SC part 10, MODIFY_PIN_DIRECT. The
    /// reader itself can return a status: 6400 timeout, 6401 cancelled, 6402 mismatch, 6403 wrong length.
    func modifyPIN() async throws(CardError) -> StatusWord
}

/// Input of EstablishPACEChannel.
package struct KeypadPACERequest: Sendable, Equatable {
    /// 1 MRZ, 2 CAN, 3 PIN, 4 PUK. TR-03110-3 B.11.1.
    package var passwordID: UInt8
    package var chat: [UInt8]
    package var certificateDescription: [UInt8]

    /// The longest description in bytes: its length has two. PC/SC part 10 AMD1.
    package static let maximumDescription = Int(UInt16.max)

    package init(passwordID: UInt8, chat: [UInt8] = [], certificateDescription: [UInt8] = []) {
        self.passwordID = passwordID
        self.chat = chat
        self.certificateDescription = certificateDescription
    }
}

/// Output of EstablishPACEChannel.
package struct KeypadPACEResult: Sendable, Equatable {
    package enum Outcome: Sendable, Equatable {
        case established
        /// The card refused the password (general authenticate step 4 answered 63xx).
        case wrongPassword
        case cancelled
        case timeout
        case noCard
        /// The reader or card failed; the code of PC/SC part 10 AMD1 for the log.
        case failed(UInt32)
    }
    package var outcome: Outcome
    /// Status word of MSE:Set AT, if the reader reports it.
    package var mseStatus: StatusWord?
    /// The content of EF.CardAccess.
    package var cardAccess: [UInt8] = []
    /// The references of the certification authorities that the card accepts; empty if the reader does not report them.
    package var carCurrent: [UInt8] = []
    package var carPrevious: [UInt8] = []
    /// Comp() of the card's ephemeral key in PACE.
    package var idPICC: [UInt8] = []

    package init(outcome: Outcome, mseStatus: StatusWord? = nil) {
        self.outcome = outcome
        self.mseStatus = mseStatus
    }
}

/// The description of a new virtual card, as the backend has parsed it from SET_CARD.
package protocol CardDescription: Sendable {}

/// A backend whose readers take cards by command: SET_CARD. docs/protocol/readers.md, Virtual reader.
package protocol VirtualReaderBackend: ReaderBackend {
    /// Parses the objects `simulator` and `card` of SET_CARD.
    /// - Throws: `Malformed`, which names the entry and what is wrong with it.
    func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any CardDescription

    /// Inserts the card of `reader`. With a description, a new card replaces it first.
    /// - Returns: false if a card is in the reader already, or the reader is gone; then nothing has changed.
    /// - Throws: `Malformed` if the card cannot be made; then nothing has changed.
    func insert(_ description: (any CardDescription)?, into reader: String) async throws(Malformed) -> Bool

    /// Removes the card from the reader. The card keeps its state for the next insertion.
    func removeCard(from reader: String) async
}
