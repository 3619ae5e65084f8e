// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Dispatch
import Glibc
import Readers
import Synchronization

/// Finds devices and keeps their boards, for one consumer of events.
///
/// One thread, `nfc-scan`, that sleeps until udev tells of a device, or somebody asks for a new look.
final class Scanner: Sendable {
    private struct State {
        /// Connection strings of the configuration.
        var devices: [String]
        var boards: [Board] = []
        var insertions: UInt64 = 0
        var isStopped = false
        var hasFaults = false
        var told: [HealthCheck]?
    }

    private let state: Mutex<State>
    private let events: AsyncStream<ReaderEvent>.Continuation
    private let wake: Int32

    init(devices: [String], events: AsyncStream<ReaderEvent>.Continuation) {
        state = Mutex(State(devices: devices))
        self.events = events
        wake = clinux_eventfd()
        guard wake >= 0, startThread("nfc-scan", { [self] in run() }) else {
            events.yield(.health([NFCHealth.noLibrary()]))
            events.finish()
            return
        }
    }

    deinit { if wake >= 0 { Glibc.close(wake) } }

    func board(of reader: String) -> Board? { state.withLock { $0.boards.first { $0.reader == reader } } }

    func rescan() { signal() }

    func change(devices: [String]) { state.withLock { $0.devices = devices } }

    /// Looks again when something was wrong.
    func retry() { if state.withLock({ $0.hasFaults }) { signal() } }

    /// Ends all: the thread, the boards, the events. Blocks until the devices are given back.
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
            tell([NFCHealth.noLibrary()])
            return
        }
        let udev = UdevMonitor()
        var descriptors = LowDescriptors()
        while !state.withLock({ $0.isStopped }) {
            scan(library, &descriptors)
            sleep(udev)
        }
    }

    /// Until somebody asks or a device comes; or one goes, when something was wrong.
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
            let news = udev.receive()
            if news == .come || news == .gone && state.withLock({ $0.hasFaults }) { return }
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
        // It opens the device that LIBNFC_DEVICE names.
        let found = descriptors.lend { library.list() } ?? []
        // LIBNFC_DEVICE may name a driver alone, too.
        wanted += found.filter { $0.place == .any }
        release(wanted)
        let drivers = Set(wanted.filter { $0.place == .any }.map(\.driver))
        let named = Set(wanted.map(\.identity))
        // A CCID reader is pcscd's, unless it or its driver is named.
        let forPCSC = Set(onUSB.filter(\.isCCID).map { ConnectionString.Place.usb(bus: $0.bus, device: $0.number) })
        let others = found.filter { device in
            device.place != .any && !named.contains(device.identity)
                && (drivers.contains(device.driver) || !forPCSC.contains(device.place))
        }
        // libnfc itself takes the first device of the bus for the name of a driver, whatever it is.
        for (connection, isNamed) in wanted.map({ ($0, true) }) + others.map({ ($0, drivers.contains($0.driver)) })
        where connection.place != .any {
            let isKnown = state.withLock { state in
                state.isStopped || state.boards.contains { $0.connection.identity == connection.identity }
            }
            if !isKnown, let fault = open(connection, isNamed: isNamed, library, &descriptors) { faults.append(fault) }
        }
        for connection in wanted where connection.place == .any {
            let isThere = state.withLock { state in state.boards.contains { $0.connection.driver == connection.driver }
            }
            if !isThere { faults.append(NFCHealth.noDevice(connection)) }
        }
        faults += usbFaults(onUSB)
        tell(faults)
    }

    /// Gives back the boards that were named and are no more, or otherwise.
    private func release(_ wanted: [ConnectionString]) {
        let boards = state.withLock { state in
            let boards = state.boards.filter { board in
                board.isNamed
                    && !wanted.contains { name in
                        name == board.connection || name.place == .any && name.driver == board.connection.driver
                    }
            }
            state.boards.removeAll { board in boards.contains { $0 === board } }
            return boards
        }
        for board in boards { board.stop() }
    }

    /// What is connected to USB and not at work.
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
            // It is just being pulled out.
            guard isOpen || errno != ENOENT else { return nil }
            return NFCHealth.check(device, isDenied: !isOpen)
        }
    }

    private func tell(_ faults: [HealthCheck]) {
        let checks = NFCHealth.checks(faults)
        let isNew = state.withLock { state in
            state.hasFaults = !faults.isEmpty
            defer { state.told = checks }
            return state.told != checks && !state.isStopped
        }
        if isNew { events.yield(.health(checks)) }
    }

    // MARK: - Boards

    /// Opens a device and puts its board to work.
    /// - Returns: what is wrong.
    private func open(
        _ connection: ConnectionString,
        isNamed: Bool,
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
                isNamed: isNamed,
                reader: Self.name(device.name, among: state.boards.map(\.reader)),
                publish: { [weak self] in self?.publish($0) },
                nextInsertion: { [weak self] in self?.nextInsertion() ?? 0 },
                onEnd: { [weak self] board, reason in self?.ended(board, reason) }
            )
            state.boards.append(board)
            return board
        }
        guard board.begin() else {
            state.withLock { $0.boards.removeAll { $0 === board } }
            device.close()
            return nil
        }
        return nil
    }

    private static func diagnose(_ connection: ConnectionString) -> HealthCheck? {
        // Devices on USB are judged by what the kernel says of them.
        guard case .line(let path, let speed) = connection.place else { return nil }
        let line = SerialLine(path: path, speed: speed ?? SerialLine.defaultSpeed)
        return NFCHealth.check(connection, line.diagnose(), group: group(of: path))
    }

    /// The group of a device file by name.
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

    /// Two devices of a kind have the same name in libnfc.
    private static func name(_ name: String, among others: [String]) -> String {
        let name = name.isEmpty ? "NFC" : name
        guard others.contains(name) else { return name }
        let number = (2...).first { !others.contains("\(name) \($0)") } ?? 2
        return "\(name) \(number)"
    }

    private func publish(_ event: ReaderEvent) { events.yield(event) }

    private func nextInsertion() -> UInt64 {
        state.withLock { state in
            state.insertions += 1
            return state.insertions
        }
    }

    /// A board that failed sooner may be failing in a loop.
    private static let shortLife = Duration.seconds(2)

    /// A board has ended; when its device has failed it may be there again at once, or come back by an event.
    private func ended(_ board: Board, _ reason: NFCCode?) {
        // At once, so that a look that comes after the news finds the place free, and no other reader of this name is
        // told before.
        state.withLock { state in
            state.boards.removeAll { $0 === board }
            events.yield(.removed(reader: board.reader))
        }
        guard reason != nil else { return }
        if ContinuousClock.now - board.start > Self.shortLife {
            signal()
        } else {
            tell([NFCHealth.unsteady(board.connection)])
        }
    }
}
