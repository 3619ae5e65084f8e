// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
package import Glibc
package import Readers
import Synchronization

/// An emulated board with a PN532 on a serial line, which is a pseudo-terminal. It implements the commands of the PN532
/// user manual (NXP UM0701-02) that libnfc uses. Its radio field has an emulated card and planned faults.
package final class EmulatedPN532: Sendable {
    /// The chips of the family. `version` is the answer to GetFirmwareVersion without its last byte.
    package enum Model: Sendable {
        case pn531, pn532, pn533

        var version: [UInt8] {
            switch self {
            case .pn531: [0x04, 0x02]
            case .pn532: [0x32, 0x01, 0x06]
            case .pn533: [0x33, 0x02, 0x07]
            }
        }
    }

    /// Properties of the board. The default is a working PN532.
    package struct Options: Sendable {
        package var model = Model.pn532
        /// The chip supports InCommunicateThru.
        package var sendsFrames = true
        package var hasTypeB = true
        /// The board answers only at this speed.
        package var speed = speed_t(B115200)
        /// The board says what was recorded, and has no card of its own.
        package var recording: BoardRecording?
        /// The board does not answer before `startAnswering`.
        package var isSilent = false

        package init() {}
    }

    package struct SetupError: Error {}

    /// A symbolic link to the terminal. It is the same after every `plug`.
    package let path: String
    package let field: RadioField
    private let options: Options
    private let folder: String
    private let line: Mutex<Line?> = Mutex(nil)

    /// Creates the board and connects it.
    package init(_ options: Options = .init(), field: RadioField = RadioField()) throws {
        var template = Array("/tmp/badged-pn532.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SetupError() }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        (path, self.field) = (folder + "/pn532", field)
        self.options = options
        try plug()
    }

    deinit {
        unplug()
        rmdir(folder)
    }

    /// The connection string for libnfc.
    package var connection: String { "pn532_uart:\(path):115200" }

    /// Connects the board again.
    package func plug() throws {
        unplug()
        let new = try Line(Chip(options, field), field)
        guard symlink(new.path, path) == 0 else { throw SetupError() }
        field.turn(on: false)
        field.onChange { [weak new] in new?.wake() }
        line.withLock { $0 = new }
        try new.start()
    }

    /// Disconnects the board: the terminal disappears.
    package func unplug() {
        unlink(path)
        let old = line.withLock { line in
            defer { line = nil }
            return line
        }
        old?.end()
    }

    /// Sends bytes that are no frame, as a disturbed line does. libnfc takes this for a failed device.
    package func disturbLine() { line.withLock { $0?.send([UInt8](repeating: 0x55, count: 16)) } }

    /// Ends the silence of a board.
    package func startAnswering() { line.withLock { $0?.startAnswering() } }

    /// Lets the board fall silent, as without power, while its serial line stays.
    package func stopAnswering() { line.withLock { $0?.stopAnswering() } }

    /// The command whose search is running; nil when the chip does not look for a card.
    package var search: [UInt8]? { line.withLock { $0?.search } }
}

/// The pseudo-terminal and the thread that serves it.
private final class Line: Sendable {
    let path: String
    private let master: Int32
    private let slave: Int32
    private let waker: Int32
    private let chip: Mutex<Chip>
    private let field: RadioField
    private let isEnded = Atomic(false)

    var search: [UInt8]? { chip.withLock { $0.search } }

    init(_ chip: consuming sending Chip, _ field: RadioField) throws {
        self.chip = Mutex(chip)
        self.field = field
        // The slave stays open here, so that the terminal remains when a program closes it.
        var (master, slave) = (Int32(-1), Int32(-1))
        var name = [CChar](repeating: 0, count: 128)
        guard openpty(&master, &slave, nil, nil, nil) == 0, ttyname_r(slave, &name, name.count) == 0 else {
            throw EmulatedPN532.SetupError()
        }
        for end in [master, slave] { clinux_set_cloexec(end) }
        (self.master, self.slave) = (master, slave)
        path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        waker = clinux_eventfd()
        guard waker >= 0 else { throw EmulatedPN532.SetupError() }
        var settings = termios()
        tcgetattr(slave, &settings)
        cfmakeraw(&settings)
        tcsetattr(slave, TCSANOW, &settings)
    }

    func start() throws {
        guard startThread("pn532", { [self] in run() }) else { throw EmulatedPN532.SetupError() }
    }

    func startAnswering() { chip.withLock { $0.isSilent = false } }
    func stopAnswering() { chip.withLock { $0.isSilent = true } }

    func wake() {
        var one: UInt64 = 1
        _ = write(waker, &one, 8)
    }

    func end() {
        isEnded.store(true, ordering: .relaxed)
        wake()
    }

    private var isAtRightSpeed: Bool {
        var settings = termios()
        tcgetattr(slave, &settings)
        return chip.withLock { $0.responds(at: cfgetospeed(&settings)) }
    }

    private func run() {
        // libnfc gives up a chip that acknowledges a command a fraction of a second late. A real chip never does, and the
        // emulated one must not on a busy machine. Only root may raise the priority.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, -20)
        var waiting = [
            pollfd(fd: master, events: Int16(POLLIN), revents: 0), pollfd(fd: waker, events: Int16(POLLIN), revents: 0),
        ]
        var buffer = [UInt8](repeating: 0, count: 4096)
        while !isEnded.load(ordering: .relaxed) {
            guard poll(&waiting, 2, -1) > 0 else { continue }
            if waiting[1].revents != 0 {
                var value: UInt64 = 0
                _ = read(waker, &value, 8)
                if let response = chip.withLock({ $0.fieldChanged() }) { send(Chip.frame(response)) }
            }
            guard waiting[0].revents != 0 else { continue }
            let received = read(master, &buffer, buffer.count)
            guard received > 0 else { continue }
            guard isAtRightSpeed else { continue }
            chip.withLock { $0.feed(buffer[..<received], send) }
            field.wakeWaiters()
        }
        close(master)
        close(slave)
        close(waker)
    }

    func send(_ bytes: [UInt8]) {
        var unsent = bytes[...]
        while !unsent.isEmpty {
            let sent = unsent.withUnsafeBytes { write(master, $0.baseAddress, $0.count) }
            guard sent > 0 else { return }
            unsent = unsent.dropFirst(sent)
        }
    }
}
