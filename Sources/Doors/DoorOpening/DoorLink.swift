// SPDX-License-Identifier: GPL-3.0-or-later
package import Bluetooth
package import Concurrency
package import DoorReaders

/// The GATT services and characteristics of PKOC readers. UUIDs are in lower case.
package enum PKOCService {
    /// The services under which readers offer PKOC, the current one first.
    package static let services = [
        "0000fff0-0000-1000-8000-00805f9b34fb", "41fb60a1-d4d0-4ae9-8cbb-b62b5ae81810",
    ]
    /// Written by the credential.
    package static let write = "fe278a85-89ae-191f-5dde-841202693835"
    /// Notified by the reader.
    package static let notify = "e5b1b3b5-3cca-3f76-cd86-a884cc239692"
}

/// A connection to a reader.
@Loop package protocol DoorLink: AnyObject {
    /// Connects to the reader and switches its notifications on. Connects again while the time lasts when a connection
    /// fails before that.
    /// - Parameter limit: the time to find the reader, to connect to it, and to read its services, each.
    /// - Throws: why there is no connection. `disconnect` must be called nevertheless.
    func establish(within limit: Milliseconds) async throws(LinkFailure)

    /// The bytes that one write carries, which is three less than the MTU.
    var capacity: Int { get }

    /// Returns the next notification. Notifications are queued until they are read.
    func notification(within limit: Milliseconds) async throws(LinkFailure) -> [UInt8]

    /// Writes at most `capacity` bytes, and returns when the reader or the system has accepted them.
    func write(_ bytes: [UInt8], within limit: Milliseconds) async throws(LinkFailure)

    /// Ends the connection or the attempts to connect, and returns when nothing is connected any more.
    func disconnect() async
}

/// Connects to readers.
@Loop package protocol DoorConnector: AnyObject {
    /// Prepares a connection to a PKOC reader.
    /// - Parameters:
    ///   - address: the current address of the reader.
    ///   - adapter: the number of the adapter, such as 0 for hci0.
    /// - Returns: the connection, which the caller establishes, and ends with `disconnect`.
    /// - Throws: why there can be no connection.
    func link(to address: DeviceAddress, adapter: Int) throws(LinkFailure) -> any DoorLink
}
