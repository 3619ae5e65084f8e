// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Dispatch
import Glibc
import Host
import Readers
import Synchronization

/// Finds devices and runs a board for each, for one consumer of events.
///
/// Its thread, `nfc-monitor`, sleeps until udev reports a device or a new look is requested.
final class DeviceMonitor: Sendable {
    private struct State {
        /// Connection strings from the configuration.
        var devices: [String]
        var boards: [Board] = []
        var lastInsertion: UInt64 = 0
        var isStopped = false
        var hasFaults = false
        var reportedChecks: [HealthCheck]?
    }

    private let state: Mutex<State>
    private let events: AsyncStream<ReaderEvent>.Continuation
    private let wake: Int32

    init(devices: [String], events: AsyncStream<ReaderEvent>.Continuation) {
        state = Mutex(State(devices: devices))
        self.events = events
        wake = clinux_eventfd()
        guard wake >= 0, startThread("nfc-monitor", { [self] in run() }) else {
            events.yield(.health([NFCHealth.noLibrary()]))
            events.finish()
            return
        }
    }

    deinit { if wake >= 0 { Glibc.close(wake) } }

    func board(of reader: String) -> Board? { state.withLock { $0.boards.first { $0.reader == reader } } }

    func rescan() { signal() }

    func change(devices: [String]) { state.withLock { $0.devices = devices } }

    /// Looks for devices again if the last look found a fault.
    func retry() { if state.withLock({ $0.hasFaults }) { signal() } }

    /// Ends the thread, the boards and the events. Blocks until the devices are closed.
    func stop() {
        let boards = state.withLock { state -> [Board]? in
            guard !state.isStopped else { return nil }
            state.isStopped = true
            return state.boards
        }
        guard let boards else { return }
        signal()
        let group = DispatchGroup()
        for board in boards {
            group.enter()
            let isStarted = startThread("nfc-stop") {
                board.stop()
                group.leave()
            }
            if !isStarted { group.leave() }
        }
        group.wait()
        events.finish()
    }

    private func signal() {
        var one: UInt64 = 1
        _ = write(wake, &one, 8)
    }

    // MARK: - The thread

    private func run() {
        guard let library = NFCLibrary.shared else {
            report([NFCHealth.noLibrary()])
            return
        }
        let udev = UdevMonitor()
        var descriptors = LowDescriptors()
        while !state.withLock({ $0.isStopped }) {
            scan(library, &descriptors)
            sleep(udev)
        }
    }

    /// Waits until a look is requested or a device is added. After a fault a removed device ends the wait, too.
    private func sleep(_ udev: UdevMonitor?) {
        var descriptors = [pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
        if let udev { descriptors.append(pollfd(fd: udev.descriptor, events: Int16(POLLIN), revents: 0)) }
        while true {
            guard poll(&descriptors, nfds_t(descriptors.count), -1) > 0 else { continue }
            if descriptors[0].revents != 0 {
                var count: UInt64 = 0
                _ = read(wake, &count, 8)
                return
            }
            guard let udev else { continue }
            let change = udev.receive()
            if change == .added || change == .removed && state.withLock({ $0.hasFaults }) { return }
        }
    }

    private func scan(_ library: NFCLibrary, _ descriptors: inout LowDescriptors) {
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
        // Listing opens the device that LIBNFC_DEVICE names.
        let found = descriptors.lend { library.list() } ?? []
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
        // A driver's name is not passed to nfc_open, which would open the first USB device of any kind.
        for (connection, isConfigured) in wanted.map({ ($0, true) }) + others.map({ ($0, drivers.contains($0.driver)) })
        where connection.place != .any {
            let isKnown = state.withLock { state in
                state.isStopped || state.boards.contains { $0.connection.identity == connection.identity }
            }
            if !isKnown, let fault = open(connection, isConfigured: isConfigured, library, &descriptors) {
                faults.append(fault)
            }
        }
        for connection in wanted where connection.place == .any {
            let isThere = state.withLock { state in state.boards.contains { $0.connection.driver == connection.driver }
            }
            if !isThere { faults.append(NFCHealth.noDevice(connection)) }
        }
        faults += usbFaults(onUSB)
        report(faults)
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

    private func report(_ faults: [HealthCheck]) {
        let checks = NFCHealth.checks(faults)
        let isNew = state.withLock { state in
            state.hasFaults = !faults.isEmpty
            defer { state.reportedChecks = checks }
            return state.reportedChecks != checks && !state.isStopped
        }
        if isNew { events.yield(.health(checks)) }
    }

    // MARK: - Boards

    /// Opens a device and starts its board.
    /// - Returns: the fault, if any.
    private func open(
        _ connection: ConnectionString,
        isConfigured: Bool,
        _ library: NFCLibrary,
        _ descriptors: inout LowDescriptors
    ) -> HealthCheck? {
        let device: NFCDevice
        do throws(NFCCode) {
            let opened = try descriptors.lend { () throws(NFCCode) in try NFCDevice(connection, library) }
            guard let opened else { return NFCHealth.noDescriptor(connection) }
            device = opened
        } catch {
            return Self.diagnose(connection)
        }
        let board = state.withLock { state in
            let board = Board(
                device,
                isConfigured: isConfigured,
                reader: Self.name(device.name, among: state.boards.map(\.reader)),
                publish: { [weak self] in self?.publish($0) },
                nextInsertion: { [weak self] in self?.nextInsertion() ?? 0 },
                onEnd: { [weak self] board, reason in self?.ended(board, reason) }
            )
            state.boards.append(board)
            return board
        }
        guard board.start() else {
            state.withLock { $0.boards.removeAll { $0 === board } }
            device.close()
            return nil
        }
        return nil
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

    /// A unique name for a reader. libnfc gives two devices of one kind the same name.
    private static func name(_ name: String, among others: [String]) -> String {
        let name = name.isEmpty ? "NFC" : name
        guard others.contains(name) else { return name }
        let number = (2...).first { !others.contains("\(name) \($0)") } ?? 2
        return "\(name) \(number)"
    }

    private func publish(_ event: ReaderEvent) { events.yield(event) }

    private func nextInsertion() -> UInt64 {
        state.withLock { state in
            state.lastInsertion += 1
            return state.lastInsertion
        }
    }

    /// A board that fails sooner is not opened again at once, because it could fail in a loop.
    private static let minimumUptime = Duration.seconds(2)

    /// Handles the end of a board. A failed device may be usable again at once, so a look follows.
    private func ended(_ board: Board, _ reason: NFCCode?) {
        // The event is sent under the lock, so that another reader of this name cannot be added before.
        state.withLock { state in
            state.boards.removeAll { $0 === board }
            events.yield(.removed(reader: board.reader))
        }
        guard reason != nil else { return }
        if ContinuousClock.now - board.startTime > Self.minimumUptime {
            signal()
        } else {
            report([NFCHealth.unsteady(board.connection)])
        }
    }
}
