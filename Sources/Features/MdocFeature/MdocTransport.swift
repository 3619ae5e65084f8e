// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import Scanners
package import Text

/// The way on which messages go to a phone and back, in the words of MDOC `transport`.
package enum MdocWay: String, CaseIterable, Sendable {
    /// The phone connects to badged, which advertises (mdoc central client mode).
    case bleCentral
    /// badged connects to the phone, which advertises (mdoc peripheral server mode).
    case blePeripheral
    /// The phone lies on an NFC reader.
    case nfc
}

/// Why a transport has ended early.
package enum MdocTransportError: Error, Sendable, Equatable {
    /// No connection was made. The words are for people.
    case connectionFailed(Phrase)
    /// The connection has ended before the answer. The words are for people.
    case connectionLost(Phrase)
    /// The phone refuses to go on, as wallets do that ask their holder between two taps. The words are for people.
    case notNow(Phrase)
    /// The phone has left an NFC reader. It may be put back.
    case phoneLeft
    /// A message is longer than `MdocMessage.maximumBytes`.
    case tooLarge
    /// What frames a message breaks its form.
    case malformed(Phrase)
    /// The fragments of a message break their form, so that the session cannot go on.
    case sessionError(Phrase)
    /// The phone has ended the session without an answer.
    case ended
    /// CANCEL, or the end of the time for the phone.
    case cancelled
}

/// A message between a phone and a reader: SessionEstablishment or SessionData.
package enum MdocMessage {
    /// The most bytes of a message.
    package static let maximumBytes = 2 << 20
}

/// Carries messages to a phone and back. ISO/IEC 18013-5, 8.3.3.1.
///
/// Calls do not overlap. A cancelled task makes a call return at once with `.cancelled`; `close` then still runs, and
/// frees the adapter or reader within 0.5 s.
@Loop package protocol MdocTransport: AnyObject, Sendable {
    var way: MdocWay { get }

    /// What may have spoilt a message that cannot be read, for people; nil: nothing that is known.
    var caution: String? { get }

    /// Sends a message of the reader. Over NFC its last part is sent by `receive`.
    func send(_ message: [UInt8]) async throws(MdocTransportError)

    /// Waits for the next message of the phone, without a time limit for the first byte, since its holder decides.
    /// `progress` gets the number of bytes that have come, from any thread.
    func receive(_ progress: @escaping @Sendable (Int) -> Void) async throws(MdocTransportError) -> [UInt8]

    /// Ends the connection: sends a last message, such as status 20, if there is one, and waits for no answer.
    func close(_ last: [UInt8]?) async
}

/// What a phone offers over Bluetooth. At least one of both modes is there.
package struct MdocBluetoothOffer: Sendable, Equatable {
    /// The UUID that badged advertises: 16 bytes in network order; nil: the phone does not offer central client mode.
    package var central: [UInt8]?
    /// The UUID that the phone advertises; nil: it does not offer peripheral server mode.
    package var peripheral: [UInt8]?
    /// The address of the phone, 6 bytes in network order, if it says so.
    package var address: [UInt8]?
    /// What the characteristic Ident returns: 16 bytes.
    package var ident: [UInt8]
    /// Somebody who was not the phone has connected first, so only central client mode is tried, for a short time.
    package var isAgain = false

    package init(central: [UInt8]?, peripheral: [UInt8]?, address: [UInt8]? = nil, ident: [UInt8]) {
        self.central = central
        self.peripheral = peripheral
        self.address = address
        self.ident = ident
    }
}

/// The Bluetooth adapter, as a reading of a phone needs it.
@Loop package protocol MdocBluetooth: AnyObject, Sendable {
    /// The modes that work on this host now; none without an adapter that is switched on. It is asked before each handover, so
    /// it answers fast.
    func ways() async -> Set<MdocWay>

    /// Why this host lacks a mode.
    func fault() async -> ScannerFault

    /// Connects in one of the modes that the phone offers, whichever is better here. It has its own time limits.
    func open(_ offer: MdocBluetoothOffer) async throws(MdocTransportError) -> any MdocTransport

    /// The check `mdoc` of GET_HEALTH; none without an adapter.
    func checks() async -> [HealthCheck]
}
