// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Foundation
import Glibc
import Host
import TestSupport
import Testing
import Text

@testable import OSDP
@testable import badged_osdp

/// The first panel of osdp.conf with these lines.
private func configured(_ lines: String...) throws -> OSDPConfiguration.Panel {
    var configuration = OSDPConfiguration()
    var errors: [StartError] = []
    let text = (["[panel test]"] + lines).joined(separator: "\n") + "\n"
    configuration.read(Array(text.utf8), "osdp.conf", &errors)
    #expect(errors.isEmpty)
    return try #require(configuration.panels.first)
}

/// Waits until a descriptor is readable, and returns whether it is.
private func isReadable(_ descriptor: Int32, within milliseconds: Int32) -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&request, 1, milliseconds) == 1
}

/// A port of badged-osdp, and what it has told.
@Loop private final class ListeningPort {
    let number: UInt16
    var givesWay = false
    private var told: [String] = []
    private let changes = Changes()
    private let reserved: ReservedPort
    private var port: BusPort?

    init() throws {
        reserved = try ReservedPort()
        number = reserved.number
        let bus = try configured("listen = 127.0.0.1:\(number)").bus
        port = BusPort(
            bus,
            try #require(bus.line),
            opened: { [unowned self] in tell("opened") },
            received: { [unowned self] bytes in tell(String(decoding: bytes, as: UTF8.self)) },
            closed: { [unowned self] in tell("closed") },
            givesWay: { [unowned self] in givesWay }
        )
        port?.start()
    }

    private func tell(_ event: String) {
        told.append(event)
        changes.notify()
    }

    /// Waits until exactly this was told, from the beginning.
    func tells(_ events: String...) async {
        await changes.wait { told.count >= events.count }
        #expect(told == events)
    }

    func end() { port?.end() }
}

/// A serial line, whose other end is a panel in the hand of a test.
@Loop private final class SerialPanel {
    private let master: Int32
    private let slave: Int32
    private let folder: TemporaryFolder
    private let bus: PanelBus
    private var reader = OSDPFrameReader(gap: 600_000)
    private var frames: [OSDPFrame] = []

    /// It answers after 100 ms, the longest turn-around.
    init() throws {
        var (master, slave): (Int32, Int32) = (-1, -1)
        var name = [CChar](repeating: 0, count: 64)
        guard openpty(&master, &slave, nil, nil, nil) == 0, ttyname_r(slave, &name, name.count) == 0 else {
            throw Unexpected("no line")
        }
        self.master = master
        // The line stays open while nobody has the device.
        self.slave = slave
        folder = try TemporaryFolder()
        let device = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let panel = try configured("device = \(device)", "security = off", "comset = yes", "turnaround = 100")
        var settings = OSDPPeripheral.Settings()
        settings.security = .off
        settings.acceptsCommunication = true
        bus = PanelBus(panel, settings, KeyFolder(path: folder.path), DaemonLink(socket: nil))
        bus.start()
    }

    func end() {
        bus.end("the test ends")
        close(master)
        close(slave)
    }

    func say(_ code: UInt8, _ data: [UInt8] = [], sequence: UInt8, times: Int = 1) {
        let bytes = OSDPFrame(address: 0, isReply: false, sequence: sequence, code: code, data: data).bytes
        let all = Array(repeatElement(bytes, count: times).joined())
        #expect(write(master, all, all.count) == all.count)
    }

    /// Whether there is something to read, perhaps only after this time.
    func hears(within milliseconds: Int32) async -> Bool {
        await Task.detached { [master] in isReadable(master, within: milliseconds) }.value
    }

    /// The next frame of badged-osdp; nil if none comes for a minute.
    func answer() async -> OSDPFrame? {
        while frames.isEmpty, await hears(within: 60_000) {
            var buffer = [UInt8](repeating: 0, count: 512)
            let count = read(master, &buffer, buffer.count)
            guard count > 0 else { return nil }
            frames += reader.read(buffer.prefix(count), at: 0).map(\.frame)
        }
        return frames.isEmpty ? nil : frames.removeFirst()
    }

    /// What badged-osdp has set.
    var baud: speed_t {
        var settings = termios()
        tcgetattr(master, &settings)
        return cfgetospeed(&settings)
    }
}

@Suite("Lines of badged-osdp", .timeLimit(.minutes(5))) @Loop
struct OSDPBusTests {
    private static let poll: UInt8 = 0x60
    private static let setCommunication: UInt8 = 0x6E

    /// Whether the other side has closed a connection.
    private func isClosed(_ socket: Int32) async -> Bool {
        await Task.detached { BlockingSocket.receive(from: socket) == nil }.value
    }

    @Test("a connection keeps the port while frames come over it, and gives it to the next one after a silence")
    func takeover() async throws {
        let port = try ListeningPort()
        defer { port.end() }
        let sockets = try (0..<3).map { _ in try LoopbackSocket.connect(port: port.number) }
        defer { for socket in sockets { close(socket) } }
        // They were accepted in their order.
        #expect(await isClosed(sockets[1]))
        #expect(await isClosed(sockets[2]))
        await port.tells("opened")
        port.givesWay = true
        let new = try LoopbackSocket.connect(port: port.number)
        defer { close(new) }
        #expect(await isClosed(sockets[0]))
        await port.tells("opened", "closed", "opened")
        BlockingSocket.send(Array("hello".utf8), to: new)
        await port.tells("opened", "closed", "opened", "hello")
    }

    /// The port of one end of a connection. getsockname(2), getpeername(2)
    private static func port(
        _ read: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> UInt16? {
        var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        let isRead = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { read($0, &length) == 0 }
        }
        return isRead && address.sin_family == sa_family_t(AF_INET) ? address.sin_port : nil
    }

    @Test("the kernel asks whether the other side of an accepted connection lives")
    func keepAlive() async throws {
        let port = try ListeningPort()
        defer { port.end() }
        let socket = try LoopbackSocket.connect(port: port.number)
        defer { close(socket) }
        await port.tells("opened")
        let own = try #require(Self.port { getsockname(socket, $0, $1) })
        let numbers = try #require(Folder.names(in: "/proc/self/fd")).compactMap { Int32($0) }
        let found = numbers.first { number in
            Self.port { getpeername(number, $0, $1) } == own
                && Self.port { getsockname(number, $0, $1) } == port.number.bigEndian
        }
        let accepted = try #require(found)
        func option(_ name: Int32, _ level: Int32 = Int32(IPPROTO_TCP)) -> Int32? {
            var (value, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            return getsockopt(accepted, level, name, &value, &length) == 0 ? value : nil
        }
        #expect(option(SO_KEEPALIVE, SOL_SOCKET) == 1)
        #expect(option(TCP_KEEPIDLE) == 10 && option(TCP_KEEPINTVL) == 5 && option(TCP_KEEPCNT) == 3)
        #expect(option(TCP_USER_TIMEOUT) == 25_000)
    }

    @Test("many sounds of a panel leave room for the card of another reader, and the newest is told")
    func sounds() async throws {
        let (isConnected, told) = (OneShot<Bool>(), OneShot<[JSON]>())
        let peer = try ScriptedPeer { peer in
            let reported = #"{"msg":"REPORTED"}"#
            isConnected.fill(peer.answer("REPORT_PANEL", reported) != nil)
            var commands: [JSON] = []
            while commands.last?["cmd"]?.string != "REPORT_TAP", let command = peer.command() {
                commands.append(command)
                peer.send(reported, answering: command)
            }
            told.fill(commands)
        }
        let link = DaemonLink(socket: peer.path)
        let name = JSON.Member("panel", .string("front"))
        link.report("front", [name])
        let watching = Task { @Loop in await link.watch(tapped: { _ in }, watches: { _ in }) }
        #expect(await isConnected.value(whenCancelled: false))
        // Nothing is sent before the next wait.
        for sound in 1...300 { link.report("front", [name, .init("beep", .number(String(sound)))]) }
        link.reportTap("osdp hall", 32, [0, 0, 0, 1], "unspecified", since: 0)
        let commands = await told.value(whenCancelled: [])
        watching.cancel()
        #expect(commands.map { $0["cmd"]?.string } == ["REPORT_PANEL", "REPORT_TAP"])
        #expect(commands.first?["beep"]?.int == 300)
    }

    @Test("a panel that asks again and again within the turn-around gets an answer")
    func frequent() async throws {
        let panel = try SerialPanel()
        defer { panel.end() }
        var isAnswered = false
        for _ in 0..<5000 where !isAnswered {
            panel.say(Self.poll, sequence: 0)
            isAnswered = await panel.hears(within: 2)
        }
        #expect(isAnswered)
    }

    @Test("commands that come within the turn-around get one answer, to the newest")
    func newest() async throws {
        let panel = try SerialPanel()
        defer { panel.end() }
        panel.say(Self.poll, sequence: 0, times: 10)
        #expect(await panel.answer()?.sequence == 0)
        panel.say(Self.poll, sequence: 1)
        #expect(await panel.answer()?.sequence == 1)
    }

    @Test("the answer to COMSET leaves at the old rate, and the line has the new one after it")
    func communication() async throws {
        let panel = try SerialPanel()
        defer { panel.end() }
        panel.say(Self.setCommunication, [0, 0x00, 0x96, 0, 0], sequence: 0)
        // The rate is looked at first: nobody has heard an answer at the new rate.
        while true {
            let baud = panel.baud
            if await panel.hears(within: 1) { break }
            try #require(baud == speed_t(B9600))
        }
        #expect(await panel.answer()?.data == [0, 0x00, 0x96, 0, 0])
        while panel.baud != speed_t(B38400), !Task.isCancelled { _ = await panel.hears(within: 2) }
    }
}
