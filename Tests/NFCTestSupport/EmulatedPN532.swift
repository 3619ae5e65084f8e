// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
package import Glibc
import Readers
import Synchronization

/// A board with a PN532 on a serial line, which is a pseudo-terminal: frames of its high-speed UART outside, a radio
/// field inside. It speaks what libnfc uses of the PN532 user manual (NXP UM0701-02), and has faults to order.
package final class EmulatedPN532: Sendable {
    /// Chips of the family, with what GetFirmwareVersion says before the last byte.
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

    /// What differs from a healthy PN532.
    package struct Nature: Sendable {
        package var model = Model.pn532
        /// Takes InCommunicateThru.
        package var sendsFrames = true
        package var hasTypeB = true
        /// Baud. At any other speed it hears nothing.
        package var speed = speed_t(B115200)
        /// Hears nothing at all.
        package var isDumb = false

        package init() {}
    }

    package struct Broken: Error {}

    /// A link to the terminal, the same after every `plug`.
    package let path: String
    package let field: RadioField
    private let nature: Mutex<Nature>
    private let folder: String
    private let line: Mutex<Line?> = Mutex(nil)

    /// Makes the board and connects it.
    package init(_ nature: Nature = .init(), field: RadioField = RadioField()) throws {
        var template = Array("/tmp/badged-pn532.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Broken() }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        (path, self.field) = (folder + "/pn532", field)
        self.nature = Mutex(nature)
        try plug()
    }

    deinit {
        unplug()
        rmdir(folder)
    }

    /// The connection string for libnfc.
    package var connection: String { "pn532_uart:\(path):115200" }

    /// Other circumstances, from the next `plug` on.
    package func change(_ nature: Nature) { self.nature.withLock { $0 = nature } }

    /// Connects the board again.
    package func plug() throws {
        unplug()
        let new = try Line(Chip(nature.withLock { $0 }, field))
        guard symlink(new.path, path) == 0 else { throw Broken() }
        field.turn(on: false)
        field.notify { [weak new] in new?.wake() }
        line.withLock { $0 = new }
        try new.start()
    }

    /// Pulls the cable: the terminal is gone.
    package func unplug() {
        unlink(path)
        let old = line.withLock { line in
            defer { line = nil }
            return line
        }
        old?.end()
    }

    /// Does the chip look for a card until there is one?
    package var isSearching: Bool { line.withLock { $0?.isSearching ?? false } }

    /// Frames that the chip has taken from the host.
    package var commands: Int { line.withLock { $0?.commands ?? 0 } }
}

/// The terminal and the thread that serves it.
private final class Line: Sendable {
    let path: String
    private let master: Int32
    private let slave: Int32
    private let waker: Int32
    private let chip: Mutex<Chip>
    private let isEnded = Atomic(false)
    private let count = Atomic(0)

    var commands: Int { count.load(ordering: .relaxed) }
    var isSearching: Bool { chip.withLock { $0.isSearching } }

    init(_ chip: consuming sending Chip) throws {
        self.chip = Mutex(chip)
        // The side that programs open is held open here as well: a serial line outlives its users.
        var (master, slave) = (Int32(-1), Int32(-1))
        var name = [CChar](repeating: 0, count: 128)
        guard openpty(&master, &slave, nil, nil, nil) == 0, ttyname_r(slave, &name, name.count) == 0 else {
            throw EmulatedPN532.Broken()
        }
        for end in [master, slave] { clinux_set_cloexec(end) }
        (self.master, self.slave) = (master, slave)
        path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        waker = clinux_eventfd()
        guard waker >= 0 else { throw EmulatedPN532.Broken() }
        var settings = termios()
        tcgetattr(slave, &settings)
        cfmakeraw(&settings)
        tcsetattr(slave, TCSANOW, &settings)
    }

    func start() throws {
        guard startThread("pn532", { [self] in run() }) else { throw EmulatedPN532.Broken() }
    }

    func wake() {
        var one: UInt64 = 1
        _ = write(waker, &one, 8)
    }

    func end() {
        isEnded.store(true, ordering: .relaxed)
        wake()
    }

    private var hears: Bool {
        var settings = termios()
        tcgetattr(slave, &settings)
        return chip.withLock { $0.hears(at: cfgetospeed(&settings)) }
    }

    private func run() {
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
            guard hears else { continue }
            let answers = chip.withLock { $0.feed(buffer[..<received]) }
            count.store(chip.withLock { $0.commands }, ordering: .relaxed)
            send(Array(answers.joined()))
        }
        close(master)
        close(slave)
        close(waker)
    }

    private func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { write(master, $0.baseAddress, $0.count) }
            guard sent > 0 else { return }
            rest = rest.dropFirst(sent)
        }
    }
}
