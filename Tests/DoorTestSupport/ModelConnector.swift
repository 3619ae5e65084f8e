// SPDX-License-Identifier: GPL-3.0-or-later
package import Bluetooth
package import Concurrency
package import DoorOpening
package import DoorReaders
import Text

/// Connects to model readers, without Bluetooth. A wait that would need time ends at once.
@Loop package final class ModelConnector: DoorConnector {
    /// The next reader that is connected.
    package var reader: ModelReader
    package var dialect = PKOCFraming.Dialect.fragments
    /// The MTU of the connections.
    package var mtu = 517
    /// The failure of the next connection.
    package var failure: LinkFailure?
    /// The connection is lost when the reader has received this number of messages.
    package var isLostAfter: Int?
    /// The last piece of the greeting is missing.
    package var cutsGreeting = false
    /// The reader takes no write.
    package var refusesWrites = false
    /// The connection is not complete before `release`.
    package var holds = false
    /// The end of a connection is not complete before `release`, as bluetoothd takes its time.
    package var holdsEnds = false
    package private(set) var connections = 0
    /// The connections that have not ended.
    package private(set) var open = 0
    package private(set) var addresses: [DeviceAddress] = []
    /// The time limits of the connections.
    package private(set) var limits: [Milliseconds] = []
    /// The time limits of the notifications.
    package fileprivate(set) var waits: [Milliseconds] = []
    private let changes = Waiters()

    package init(_ reader: ModelReader) { self.reader = reader }

    package func release() {
        (holds, holdsEnds) = (false, false)
        changes.check()
    }

    /// Returns when this number of connections was asked for.
    package func wait(connections number: Int) async { await changes.wait { self.connections >= number } }

    package func link(to address: DeviceAddress, adapter: Int) throws(LinkFailure) -> any DoorLink {
        addresses.append(address)
        return ModelLink(self)
    }

    fileprivate func begin(within limit: Milliseconds) async throws(LinkFailure) {
        connections += 1
        limits.append(limit)
        changes.check()
        await changes.wait { !self.holds }
        if let failure { throw failure }
        open += 1
    }

    fileprivate func end(wasOpen: Bool) async {
        await changes.wait { !self.holdsEnds }
        if wasOpen { open -= 1 }
        ends += 1
        changes.check()
    }

    private var ends = 0

    /// Returns when a connection has ended.
    package func waitForEnd() async { await changes.wait { self.ends > 0 } }
}

/// One connection to a model reader.
@Loop private final class ModelLink: DoorLink {
    private let connector: ModelConnector
    private var waiting: [[UInt8]] = []
    /// The pieces that the credential has written, and the framing of the reader, which mirrors that of the credential.
    private var input = PKOCFraming()
    private var output = PKOCFraming()
    private var messages = 0
    private var isOpen = false

    init(_ connector: ModelConnector) { self.connector = connector }

    func establish(within limit: Milliseconds) async throws(LinkFailure) {
        try await connector.begin(within: limit)
        isOpen = true
        if let greeting = try? connector.reader.greeting() { notify(greeting) }
        if connector.cutsGreeting { waiting.removeLast() }
    }

    var capacity: Int { connector.mtu - 3 }

    private func notify(_ message: [UInt8]) {
        if connector.dialect == .fragments {
            // One piece fixes the dialect of the framing.
            if output.dialect == nil { _ = try? output.receive([2, 0x0C]) }
            waiting += output.divide(message, capacity: capacity) ?? []
        } else {
            waiting.append(message)
        }
    }

    func notification(within limit: Milliseconds) async throws(LinkFailure) -> [UInt8] {
        connector.waits.append(limit)
        if Task.isCancelled { throw .failed("the opening was cancelled") }
        guard let first = waiting.first else {
            if let number = connector.isLostAfter, messages >= number { throw .failed("the connection was lost") }
            throw .timedOut
        }
        waiting.removeFirst()
        return first
    }

    func write(_ bytes: [UInt8], within limit: Milliseconds) async throws(LinkFailure) {
        guard bytes.count <= capacity else { throw .failed("too long for the MTU") }
        if connector.refusesWrites { throw .timedOut }
        let message: [UInt8]?
        if connector.dialect == .fragments { message = try? input.receive(bytes) } else { message = bytes }
        guard let message else { return }
        messages += 1
        if let number = connector.isLostAfter, messages >= number { return }
        if case .message(let answer) = try? connector.reader.receive(message) { notify(answer) }
    }

    func disconnect() async { await connector.end(wasOpen: isOpen) }
}
