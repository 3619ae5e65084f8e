// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders

/// A value of a characteristic that a peer has sent.
package struct GATTValue: Sendable, Equatable {
    /// The UUID of the characteristic, in lower case.
    package let characteristic: String
    package let bytes: [UInt8]

    package init(_ characteristic: String, _ bytes: [UInt8]) {
        self.characteristic = characteristic
        self.bytes = bytes
    }
}

/// A connection to one device, whichever side is the GATT server.
@Loop package protocol GATTPeer: AnyObject, Sendable {
    /// The bytes of one value, which are three less than the MTU.
    var capacity: Int { get }

    /// Connects.
    /// - Parameter limit: the time for each step.
    /// - Throws: why there is no connection. `disconnect` must be called nevertheless.
    func establish(within limit: Milliseconds) async throws(LinkFailure)

    /// Returns the next value. Values are queued until they are read. Without a limit it waits until the connection ends.
    func value(within limit: Milliseconds?) async throws(LinkFailure) -> GATTValue

    /// Sends at most `capacity` bytes, and returns when the device or bluetoothd has accepted them.
    func send(_ bytes: [UInt8], on characteristic: String, within limit: Milliseconds) async throws(LinkFailure)

    /// Ends the connection or the attempts to connect, and returns when nothing is connected any more.
    func disconnect() async
}

/// The values of a peer that were not read yet.
struct GATTInbox {
    private var values: ArraySlice<GATTValue> = []
    private let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    var isEmpty: Bool { values.isEmpty }

    /// - Returns: false when too many are waiting.
    mutating func append(_ bytes: [UInt8], of characteristic: String) -> Bool {
        guard values.count < capacity else { return false }
        values.append(GATTValue(characteristic, bytes))
        return true
    }

    mutating func next() -> GATTValue? { values.popFirst() }
}
