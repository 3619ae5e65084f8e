// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Glibc
import Readers
import Synchronization

/// Finds devices and keeps their boards, for one consumer of events.
///
/// One thread, `nfc-scan`, that sleeps until udev tells of a device, or somebody asks for a new look.
final class Scanner: Sendable {
    private struct State {
        var boards: [Board] = []
        var insertions: UInt64 = 0
        var isStopped = false
        var hasFaults = false
        var told: [HealthCheck]?
    }

    private let devices: [String]
    private let state = Mutex(State())
    private let events: AsyncStream<ReaderEvent>.Continuation
    private let wake: Int32

    init(devices: [String], events: AsyncStream<ReaderEvent>.Continuation) {
        (self.devices, self.events) = (devices, events)
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
        while !state.withLock({ $0.isStopped }) {
            scan(library)
            sleep(udev)
        }
    }

    /// Until somebody asks or a device comes.
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
            if let udev, udev.receive() { return }
        }
    }

    private func scan(_ library: NFCLibrary) {
        var faults: [HealthCheck] = []
        var wanted: [ConnectionString] = []
        for text in devices {
            if let connection = ConnectionString(text) {
                wanted.append(connection)
            } else {
                faults.append(NFCHealth.malformed(text))
            }
        }
        let named = Set(wanted.map(\.identity))
        // A CCID reader is pcscd's, unless it is named.
        let onUSB = USBDevice.connected()
        let forPCSC = Set(onUSB.filter(\.isCCID).map { ConnectionString.Place.usb(bus: $0.bus, device: $0.number) })
        let found = library.list().filter { !forPCSC.contains($0.place) && !named.contains($0.identity) }

        for connection in wanted + found {
            let isKnown = state.withLock { state in
                state.isStopped || state.boards.contains { $0.connection.identity == connection.identity }
            }
            if !isKnown, let fault = open(connection, library) { faults.append(fault) }
        }
        faults += usbFaults(onUSB)
        tell(faults)
    }

    /// What is connected to USB and not at work.
    private func usbFaults(_ devices: [USBDevice]) -> [HealthCheck] {
        let boards = state.withLock { $0.boards }
        return devices.compactMap { device in
            let isOurs = boards.contains { board in
                switch board.connection.place {
                case .usb(let bus, let number): bus == device.bus && number == device.number
                case .any: device.driver == "usbfs"
                case .line: false
                }
            }
            return isOurs ? nil : NFCHealth.check(device, isDenied: access(device.node, R_OK | W_OK) != 0)
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

    /// libnfc waits in select(2), which does not know descriptors from here on, and a program that tries is ended by
    /// the C library.
    private static let firstUnusable: Int32 = 1024
    /// What libnfc opens for one device.
    private static let descriptorsForDevice: Int32 = 8

    private static func hasLowDescriptors() -> Bool {
        let lowest = clinux_open("/dev/null", O_RDONLY | O_CLOEXEC, 0)
        guard lowest >= 0 else { return false }
        Glibc.close(lowest)
        return lowest + descriptorsForDevice < firstUnusable
    }

    /// Opens a device and puts its board to work.
    /// - Returns: what is wrong.
    private func open(_ connection: ConnectionString, _ library: NFCLibrary) -> HealthCheck? {
        guard Self.hasLowDescriptors() else { return NFCHealth.noDescriptor(connection) }
        let device: NFCDevice
        do throws(NFCCode) {
            device = try NFCDevice(connection, library)
        } catch {
            return Self.diagnose(connection)
        }
        let board = state.withLock { state in
            let board = Board(
                device,
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
        guard stat(path, &status) == 0, status.st_gid != 0, let group = getgrgid(status.st_gid) else { return nil }
        return String(cString: group.pointee.gr_name)
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
        state.withLock { $0.boards.removeAll { $0 === board } }
        guard reason != nil else { return }
        if ContinuousClock.now - board.start > Self.shortLife {
            signal()
        } else {
            tell([NFCHealth.unsteady(board.connection)])
        }
    }
}
