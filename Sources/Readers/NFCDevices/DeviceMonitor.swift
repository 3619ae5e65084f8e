// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
package import Drivers
import Glibc
import Host
package import ISO7816
package import Readers
import ReadersNFC
import Synchronization
import Text

/// Finds devices and runs a board for each.
///
/// Its thread, `nfc-monitor`, sleeps until `scan` is called, or until the next attempt to open a failed device is due.
package final class DeviceMonitor: Sendable {
    private struct Recording {
        let reader: String
        let completion: @Sendable (Result<CardAnswer, CardError>) -> Void
    }

    private struct State {
        /// Connection strings from the configuration.
        var devices: [String] = []
        var boards: [Board] = []
        var lastInsertion: UInt64 = 0
        var isStopped = false
        /// `scan` was called.
        var isRequested = false
        /// The boards to record.
        var recordings: [Recording] = []
        /// Devices that have failed, by the identity of their connection.
        var failures: [String: DeviceFailure] = [:]
    }

    private let state = Mutex(State())
    private let publish: @Sendable (ReaderEvent) -> Void
    private let wake = DispatchSemaphore(value: 0)

    /// - Parameter publish: called by several threads. The events of one reader come in their order.
    package init(publish: @escaping @Sendable (ReaderEvent) -> Void) {
        self.publish = publish
        if !startThread("nfc-monitor", { [self] in run() }) { publish(.health([NFCHealth.noResources()])) }
    }

    /// Looks for devices. Opens new ones and closes those that are no longer configured.
    /// - Parameter devices: connection strings from the configuration.
    package func scan(_ devices: [String]) {
        state.withLock { ($0.devices, $0.isRequested) = (devices, true) }
        wake.signal()
    }

    /// Does something with the card of an insertion. `completion` runs on the device's thread.
    package func perform(
        _ request: CardRequest,
        _ insertion: UInt64,
        completion: @escaping @Sendable (Result<CardAnswer, CardError>) -> Void
    ) {
        guard let session = session(insertion) else { return completion(.failure(.removed)) }
        switch request {
        case .connect: completion(.success(.done))
        case .transmit(let command):
            session.perform { card in
                completion(card?.transmitOrFail(command).map { .response($0) } ?? .failure(.removed))
            }
        case .release(let reset):
            session.perform { card in
                card?.release(reset: reset)
                completion(.success(.done))
            }
        case .establishPACE, .destroyPACE, .modifyPIN: completion(.failure(.other("the reader has no keypad")))
        }
    }

    /// Opens the board of a reader anew, and records its frames. The reader is away meanwhile, and so is its card.
    /// `completion` runs on the thread of the monitor.
    package func record(_ reader: String, completion: @escaping @Sendable (Result<CardAnswer, CardError>) -> Void) {
        state.withLock { $0.recordings.append(Recording(reader: reader, completion: completion)) }
        wake.signal()
    }

    /// Whether the threads of all devices go on. For a question of badged whether this program lives: it also makes each
    /// device that waits for cards prove that it still answers.
    package func answers() -> Bool {
        let boards = state.withLock { $0.boards }
        return boards.allSatisfy { $0.isAlive() }
    }

    private func session(_ insertion: UInt64) -> NFCCardSession? {
        let boards = state.withLock { $0.boards }
        return boards.lazy.compactMap { $0.session(insertion) }.first
    }

    /// Ends the thread and the boards. Blocks until the devices are closed, for 4 s at most.
    package func stop() {
        let boards = state.withLock { state in
            state.isStopped = true
            return state.boards
        }
        wake.signal()
        let group = DispatchGroup()
        for board in boards {
            group.enter()
            let stop = { @Sendable in
                // badged has ended: a field that stays on is worse than a late end.
                board.stop(within: .seconds(4))
                group.leave()
            }
            if !startThread("nfc-stop", stop) { stop() }
        }
        group.wait()
    }

    // MARK: - The thread

    private func run() {
        guard let library = NFCLibrary.shared else { return publish(.health([NFCHealth.noResources()])) }
        while true {
            waitForLook()
            // One look is enough for all requests so far.
            while wake.wait(timeout: .now()) == .success {}
            let (isStopped, isRequested, isDue, recordings) = state.withLock { state in
                defer {
                    state.isRequested = false
                    state.recordings = []
                }
                let isDue = state.failures.values.contains { $0.isDue(at: .now) }
                return (state.isStopped, state.isRequested, isDue, state.recordings)
            }
            if isStopped { return }
            let results = recordings.map { ($0, record($0.reader, library)) }
            let isWanted = isRequested || !recordings.isEmpty
            if isWanted || isDue { look(library, isRequested: isWanted) }
            for (recording, result) in results { recording.completion(result) }
        }
    }

    /// Waits for a request, or until a failed device is to be opened again.
    private func waitForLook() {
        guard let next = state.withLock({ $0.failures.values.compactMap(\.nextAttempt).min() }) else {
            return wake.wait()
        }
        let pause = ContinuousClock.now.duration(to: next) / .milliseconds(1)
        _ = wake.wait(timeout: .now() + .milliseconds(max(Int(pause.rounded(.up)), 0)))
    }

    /// Looks for devices. Without a request, a device that has failed is opened again only when its attempt is due.
    private func look(_ library: NFCLibrary, isRequested: Bool) {
        var faults: [HealthCheck] = []
        var wanted: [ConnectionString] = []
        for text in state.withLock({ $0.devices }) {
            if let connection = ConnectionString(text) {
                wanted.append(connection)
            } else {
                faults.append(NFCHealth.malformed(text))
            }
        }
        let onUSB = USBDevice.connected()
        let found = library.list()
        // LIBNFC_DEVICE may name only a driver.
        wanted += found.filter { $0.place == .any }
        closeUnwanted(wanted)
        let drivers = Set(wanted.filter { $0.place == .any }.map(\.driver))
        let configured = Set(wanted.map(\.identity))
        // pcscd uses a CCID reader, unless the reader or its driver is configured here.
        let forPCSC = Set(onUSB.filter(\.isCCID).map { ConnectionString.Place.usb(bus: $0.bus, device: $0.number) })
        let others = found.filter { device in
            device.place != .any && !configured.contains(device.identity)
                && (drivers.contains(device.driver) || !forPCSC.contains(device.place))
        }
        // Given only the name of a driver, nfc_open opens the first USB device of any kind. Such entries are skipped.
        for (connection, isConfigured) in wanted.map({ ($0, true) }) + others.map({ ($0, drivers.contains($0.driver)) })
        where connection.place != .any {
            let (isKnown, failure) = state.withLock { state in
                (
                    state.isStopped || state.boards.contains { $0.connection.identity == connection.identity },
                    state.failures[connection.identity]
                )
            }
            guard !isKnown else { continue }
            let isDue = isRequested || failure.map { $0.isDue(at: .now) } ?? true
            let fault = isDue ? open(connection, isConfigured: isConfigured, library) : failure?.check
            if let fault { faults.append(fault) }
        }
        for connection in wanted where connection.place == .any {
            let isOpen = state.withLock { state in state.boards.contains { $0.connection.driver == connection.driver } }
            if !isOpen { faults.append(NFCHealth.noDevice(connection)) }
        }
        forgetFailures(except: Set((wanted + others).map(\.identity)))
        faults += usbFaults(onUSB)
        publish(.health(NFCHealth.checks(faults)))
    }

    /// Closes boards whose connection string is no longer configured.
    private func closeUnwanted(_ wanted: [ConnectionString]) {
        let boards = state.withLock { state in
            let boards = state.boards.filter { board in
                board.isConfigured
                    && !wanted.contains { name in
                        name == board.connection || name.place == .any && name.driver == board.connection.driver
                    }
            }
            state.boards.removeAll { board in boards.contains { $0 === board } }
            return boards
        }
        for board in boards { board.stop() }
    }

    /// Checks for USB devices that are connected and not in use.
    private func usbFaults(_ devices: [USBDevice]) -> [HealthCheck] {
        let boards = state.withLock { $0.boards }
        return devices.compactMap { device in
            let isOurs = boards.contains { board in
                switch board.connection.place {
                case .usb(let bus, let number): bus == device.bus && number == device.number
                case .any, .line: false
                }
            }
            guard !isOurs else { return nil }
            let isOpen = access(device.node, R_OK | W_OK) == 0
            // The device has just been removed.
            guard isOpen || errno != ENOENT else { return nil }
            return NFCHealth.check(device, isDenied: !isOpen)
        }
    }

    // MARK: - Boards

    /// How long a board may take to end its search. A silent one needs some seconds, more on a busy machine.
    private static let stopTime = DispatchTimeInterval.seconds(60)

    private func record(_ reader: String, _ library: NFCLibrary) -> Result<CardAnswer, CardError> {
        guard let board = state.withLock({ state in state.boards.first { $0.reader == reader } }) else {
            return .failure(.serviceUnavailable)
        }
        guard board.stop(within: Self.stopTime) else { return .failure(.other("the board does not answer")) }
        var recorder = BoardRecorder(board.connection, library)
        return Result { () throws(CardError) in .frames(Array(try recorder.record().text.utf8)) }
    }

    /// Opens a device and starts its board.
    /// - Returns: the fault, if any.
    private func open(_ connection: ConnectionString, isConfigured: Bool, _ library: NFCLibrary) -> HealthCheck? {
        let device: NFCDevice
        do throws(NFCCode) {
            device = try NFCDevice(connection, library)
        } catch {
            return failed(connection)
        }
        let board = state.withLock { state in
            if state.failures[connection.identity]?.isUnsteady == true {
                state.failures[connection.identity]?.open()
            } else {
                state.failures[connection.identity] = nil
            }
            let board = Board(
                device,
                isConfigured: isConfigured,
                reader: Self.name(device.name, among: state.boards.map(\.reader)),
                publish: publish,
                nextInsertion: { [weak self] in self?.nextInsertion() ?? 0 },
                onEnd: { [weak self] board, reason in self?.ended(board, reason) }
            )
            state.boards.append(board)
            return board
        }
        guard board.start() else {
            state.withLock { $0.boards.removeAll { $0 === board } }
            device.close()
            return NFCHealth.noResources()
        }
        return nil
    }

    /// The device could not be opened.
    /// - Returns: the fault.
    private func failed(_ connection: ConnectionString) -> HealthCheck? {
        let known = state.withLock { $0.failures[connection.identity] }
        // After the last attempt, a request starts the count of failures from zero.
        let current = known?.phase == .givenUp ? nil : known
        var failure = current ?? DeviceFailure(wasOpen: false, at: .now)
        failure.add(at: .now)
        let isMissing = if case .line(let path, _) = connection.place { access(path, F_OK) != 0 } else { false }
        if isMissing || failure.needsDiagnosis, let found = Self.diagnose(connection) {
            failure.check = HealthCheck(found.name, ok: false, advice: found.advice, reader: failure.check?.reader)
        }
        // No attempts are needed while the line is missing, because udev reports its return.
        if isMissing { failure.giveUp() }
        state.withLock { $0.failures[connection.identity] = failure }
        return failure.check
    }

    /// Forgets the failures of devices that were removed or are no longer configured.
    private func forgetFailures(except present: Set<String>) {
        state.withLock { state in state.failures = state.failures.filter { present.contains($0.key) } }
    }

    private static func diagnose(_ connection: ConnectionString) -> HealthCheck? {
        // `usbFaults` reports devices on USB.
        guard case .line(let path, let speed) = connection.place else { return nil }
        let line = SerialLine(path: path, speed: speed ?? SerialLine.defaultSpeed)
        return NFCHealth.check(connection, line.diagnose(), group: group(of: path))
    }

    /// The name of the group that owns a device file.
    private static func group(of path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_gid != 0 else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            var (entry, found) = (Glibc.group(), UnsafeMutablePointer<Glibc.group>?.none)
            guard let start = buffer.baseAddress,
                getgrgid_r(status.st_gid, &entry, start, buffer.count, &found) == 0
            else { return nil }
            return found.map { String(cString: $0.pointee.gr_name) }
        }
    }

    /// A unique name for a reader. libnfc names two devices of one kind alike.
    private static func name(_ name: String, among others: [String]) -> String {
        let name = name.isEmpty ? "NFC" : name
        guard others.contains(name) else { return name }
        let number = (2...).first { !others.contains("\(name) \($0)") } ?? 2
        return "\(name) \(number)"
    }

    private func nextInsertion() -> UInt64 {
        state.withLock { state in
            state.lastInsertion += 1
            return state.lastInsertion
        }
    }

    /// A board that fails sooner is opened again after a pause, because it could fail in a loop.
    private static let minimumUptime = Duration.seconds(2)

    /// Handles the end of a board. A failed device may be usable again at once, so the thread looks for devices.
    private func ended(_ board: Board, _ reason: NFCCode?) {
        // The events are sent under the lock, so that another reader of this name cannot be added before.
        state.withLock { state in
            state.boards.removeAll { $0 === board }
            if reason != nil, !state.isStopped {
                let check = NFCHealth.unsteady(board.connection, reader: board.reader)
                let new = DeviceFailure(wasOpen: true, check: check, at: .now)
                if ContinuousClock.now - board.startTime > Self.minimumUptime {
                    state.failures[board.connection.identity] = new
                } else {
                    state.failures[board.connection.identity, default: new].add(at: .now)
                }
                publish(.health(state.failures.values.filter { $0.phase != .open }.compactMap(\.check)))
            }
            publish(.removed(reader: board.reader))
        }
        // The thread takes the time of the next attempt into account.
        wake.signal()
    }
}
