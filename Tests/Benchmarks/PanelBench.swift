// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
import OSDP
import Text

/// Eight door panels on eight lines, each of which polls badged-osdp every 50 ms in the secure channel.
enum PanelBench {
    private static let lines = 8
    private static let interval = 50

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let program = settings.badged + "-osdp"
        guard access(program, X_OK) == 0 else { return }
        report.add(.panelFloor, try floor(settings), "eight processes")
        let daemon = try Daemon(settings, ["--virtual", "--no-pcsc"])
        let client = try daemon.client()
        let key = try settings.write("panel.key", [UInt8](0x10...0x1F))
        chmod(key, 0o600)
        var panels: [Panel] = []
        var content = "[server]\nsocket = \(daemon.socket)\nfolder = \(settings.folder)\n[rules]\nrule = raw -> raw\n"
        for number in 0..<lines {
            let panel = try Panel()
            panels.append(panel)
            content += "[panel p\(number)]\ndevice = \(panel.device)\nbaud = 115200\nkey = \(key)\n"
        }
        let configuration = try settings.write("osdp.conf", Array(content.utf8))
        let child = try Child(program, ["--config", configuration], log: settings.folder + "/osdp.log")
        for panel in panels { try panel.connect() }
        let figures = ProcessFigures(pid: child.pid)
        let (cost, switches) = try cost(of: [figures], settings, panels) { panel throws(BenchError) in
            guard try panel.exchange(0x60).code == 0x40 else { throw BenchError("a poll was not answered") }
        }
        report.add(.panelPoll, cost, "\(text(switches, 2)) wake-ups")
        // On a busy machine the polls come later than every 50 ms, so the share is that of polls in time.
        report.add(.panelCPU, cost / 1000 * Double(lines) / Double(interval) * 100, "\(lines) lines")
        report.add(.panelMemory, try figures.memory().proportional / 1024, "")
        var delays = Samples()
        for _ in 0..<settings.count(50) {
            let tap = monotonicNow()
            try client.send(
                #"{"cmd":"REPORT_TAP","reader":"osdp bench","bits":26,"data":"bb032180","format":"wiegand"}"#
            )
            // Polls come one after the other, so there is no pause to subtract.
            while try panels[0].exchange(0x60).code != 0x50 {}
            delays.add(Double(monotonicNow() - tap) / 1e6)
            for panel in panels.dropFirst() { _ = try panel.exchange(0x60) }
        }
        report.add(.panelTap, delays.median, "p99 \(text(delays.percentile(99), 2)), n=\(delays.count)")
    }

    /// The processor time of cat(1), which sends a poll back as it is.
    private static func floor(_ settings: Settings) throws(BenchError) -> Double {
        var panels: [Panel] = []
        var echoes: [Child] = []
        for _ in 0..<lines {
            let panel = try Panel()
            panels.append(panel)
            let log = settings.folder + "/cat.log"
            echoes.append(try Child("/bin/sh", ["-c", #"exec cat <"$0" >"$0""#, panel.device], log: log))
        }
        let figures = echoes.map { ProcessFigures(pid: $0.pid) }
        let found = try cost(of: figures, settings, panels) { panel throws(BenchError) in try panel.echo() }
        // The panels stay open until here, and so do the programs.
        return withExtendedLifetime((panels, echoes)) { found.time }
    }

    /// Polls the panels, each every 50 ms.
    /// - Returns: microseconds of these processes for each poll, and their wake-ups.
    private static func cost(
        of processes: [ProcessFigures],
        _ settings: Settings,
        _ panels: [Panel],
        _ ask: (Panel) throws(BenchError) -> Void
    ) throws(BenchError) -> (time: Double, switches: Double) {
        // Everything was used once.
        try poll(panels, rounds: 20, ask)
        var before: [ProcessFigures.Activity] = []
        for process in processes { before.append(try process.activity()) }
        let rounds = settings.count(200)
        try poll(panels, rounds: rounds, ask)
        var (runtime, switches) = (0, 0)
        for (process, old) in zip(processes, before) {
            let spent = try process.activity().since(old)
            runtime += spent.runtime
            switches += spent.switches
        }
        let polls = Double(rounds * panels.count)
        return (Double(runtime) / 1000 / polls, Double(switches) / polls)
    }

    private static func poll(
        _ panels: [Panel],
        rounds: Int,
        _ ask: (Panel) throws(BenchError) -> Void
    ) throws(BenchError) {
        for _ in 0..<rounds {
            let start = monotonicNow()
            for panel in panels {
                try ask(panel)
                pause(milliseconds: interval / lines - 1)
            }
            let spent = Int((monotonicNow() - start) / 1_000_000)
            pause(milliseconds: max(0, interval - spent))
        }
    }

    /// The other end of a line.
    private final class Panel {
        let device: String
        private let descriptor: Int32
        private let slave: Int32
        private var session: OSDPSession?
        private var sequence: UInt8 = 0
        private var reader = OSDPFrameReader(gap: 1000)

        init() throws(BenchError) {
            var (master, slave): (Int32, Int32) = (-1, -1)
            guard openpty(&master, &slave, nil, nil, nil) == 0, let name = ttyname(slave) else {
                throw BenchError(call: "openpty")
            }
            var raw = termios()
            tcgetattr(slave, &raw)
            cfmakeraw(&raw)
            tcsetattr(slave, TCSANOW, &raw)
            descriptor = master
            // The line stays open while nobody has the device.
            self.slave = slave
            device = String(cString: name)
        }

        deinit {
            close(descriptor)
            close(slave)
        }

        func connect() throws(BenchError) {
            let random = [UInt8](1...8)
            let key = OSDPKey(Secret(0x10...0x1F))
            do {
                let answer = try exchange(0x76, random, block: [0x11, 1])
                guard let key, answer.data.count == 32 else { throw BenchError("no secure channel") }
                let new = try OSDPSession(key, panel: random, peripheral: Array(answer.data[8..<16]))
                guard try exchange(0x77, new.serverCryptogram, block: [0x13, 1]).code == 0x78 else {
                    throw BenchError("no secure channel")
                }
                session = new
            } catch {
                throw BenchError("no secure channel: \(error)")
            }
        }

        /// Sends bytes as long as a poll, and waits until they come back.
        func echo() throws(BenchError) {
            let bytes = [UInt8](repeating: 0x53, count: 15)
            guard write(descriptor, bytes, bytes.count) == bytes.count else { throw BenchError(call: "write") }
            var (missing, buffer) = (bytes.count, [UInt8](repeating: 0, count: bytes.count))
            while missing > 0 {
                let count = read(descriptor, &buffer, missing)
                guard count > 0 else { throw BenchError(call: "read") }
                missing -= count
            }
        }

        /// Sends a command until it is answered: at first badged-osdp has not opened the line yet.
        func exchange(
            _ code: UInt8,
            _ data: [UInt8] = [],
            block: [UInt8] = []
        ) throws(BenchError) -> (code: UInt8, data: [UInt8]) {
            var frame = OSDPFrame(
                address: 0,
                isReply: false,
                sequence: sequence,
                securityBlock: block,
                code: code,
                data: data
            )
            do {
                if let session { frame = try session.seal(frame) }
                sequence = sequence % 3 + 1
                for _ in 0..<300 {
                    _ = write(descriptor, frame.bytes, frame.bytes.count)
                    var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                    while Glibc.poll(&watched, 1, 200) == 1 {
                        var buffer = [UInt8](repeating: 0, count: 512)
                        let count = read(descriptor, &buffer, buffer.count)
                        guard count > 0 else { break }
                        guard let answer = reader.read(buffer.prefix(count), at: 0).first?.frame else { continue }
                        guard let session else { return (answer.code, answer.data) }
                        return (answer.code, try session.open(answer) ?? [])
                    }
                }
            } catch {
                throw BenchError("libcrypto: \(error)")
            }
            throw BenchError("badged-osdp does not answer")
        }
    }
}
