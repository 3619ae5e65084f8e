// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import ISO7816
package import Readers
import Text

/// What badged knows of a driver that is a program: its name, and when it is needed.
@Loop package protocol Driver: AnyObject, Sendable {
    /// Name of the driver in INFO, and of its first check in GET_HEALTH, such as `nfc`.
    nonisolated var name: String { get }
    /// The file of the program.
    nonisolated var program: String { get }
    /// The socket at which systemd starts the program; nil: badged starts it as a child.
    nonisolated var socket: String? { get }
    /// Whether the program is asked while it runs whether it lives, also while no client watches readers.
    nonisolated var isAlwaysAsked: Bool { get }
    /// Whether the program has to run now.
    var isNeeded: Bool { get }
    /// What the program has to look for.
    var sources: [String] { get }

    /// Watches for changes that `client` has to know of, until `stop`.
    func start(_ client: DriverClient)
    func stop()
    /// The program has started; sends what it needs before it looks for readers.
    func began()
    func ended(_ ending: ProgramChannel.Ending)
    /// Handles a message that is not one of `DriverReport`.
    /// - Returns: whether the message was allowed.
    func handle(_ message: [UInt8]) -> Bool
    /// The reader as clients see it; nil if the program, which may be taken over, must not name it so.
    func admitted(_ reader: ReaderDescription) -> ReaderDescription?
}

extension Driver {
    package nonisolated var socket: String? { nil }
    package nonisolated var isAlwaysAsked: Bool { false }
    package var sources: [String] { [] }
    package func began() {}
    package func ended(_ ending: ProgramChannel.Ending) {}
    package func handle(_ message: [UInt8]) -> Bool { false }
    package func admitted(_ reader: ReaderDescription) -> ReaderDescription? { reader }
}

/// The backend for all drivers that are programs. A fault of a program cannot reach the memory of the daemon.
package final class DriverBackend: ReaderBackend {
    package let name: String
    package let client: DriverClient

    /// `heartbeat` has the times of the questions whether the program lives.
    package init(_ driver: some Driver, heartbeat: Heartbeat.Times = Heartbeat.Times()) {
        name = driver.name
        client = DriverClient(driver, heartbeat: heartbeat)
    }

    deinit { Task { @Loop [client] in client.stop() } }

    /// Starts looking for readers; a second stream ends the first.
    package var events: AsyncStream<ReaderEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: ReaderEvent.self)
        Task { @Loop [client] in client.start(continuation) }
        return stream
    }

    package func rescan() {
        Task { @Loop [client] in client.rescan() }
    }

    /// Ends the program, which releases its readers. Takes 0.7 s at most.
    package func close() async { await client.close() }

    /// Connects to the card; waits while another connection to the same card is open.
    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        try await client.session.connect(insertion)
    }

    /// Returns the faults, and what the program checks on demand. The user may have corrected a fault that causes no event;
    /// the result comes as a health event.
    package func currentHealth() async -> [HealthCheck] { await client.currentHealth() }

    package func record(_ reader: String) async throws(CardError) -> [UInt8] {
        try await client.session.record(reader)
    }

    package func watch(_ isOn: Bool) { Task { @Loop [client] in client.isWatched = isOn } }
}
