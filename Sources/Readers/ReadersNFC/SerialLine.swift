// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CNFC
import Glibc

/// Why libnfc cannot open a serial line, found out by looking at it.
enum SerialLineFault: Sendable, Equatable {
    case missing
    case denied
    /// The device controller of the service's cgroup, or a mount option.
    case notPermitted
    case busy
    case noTerminal
    /// Nothing came back.
    case silent
    /// It answers at another speed.
    case speed(Int)
    /// Something came back at no speed that makes sense.
    case noise
}

/// A serial line with, perhaps, a PN532 at its end.
struct SerialLine: Sendable {
    let path: String
    let speed: Int
    /// Where programs say that they have a line for themselves; Filesystem Hierarchy Standard, 5.9.
    var locks = "/run/lock"

    /// What libnfc takes when none is named.
    static let defaultSpeed = 115_200
    static let speeds: [(baud: Int, code: speed_t)] = [
        (115_200, speed_t(B115200)), (9_600, speed_t(B9600)), (19_200, speed_t(B19200)), (38_400, speed_t(B38400)),
        (57_600, speed_t(B57600)), (230_400, speed_t(B230400)), (460_800, speed_t(B460800)),
    ]

    /// Looks for the reason after libnfc has failed; asks the board for its version at all speeds. Blocks for a second.
    func diagnose() -> SerialLineFault {
        let line = clinux_open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0)
        guard line >= 0 else {
            switch errno {
            case EACCES: return .denied
            case EPERM: return .notPermitted
            case EBUSY: return .busy
            default: return .missing
            }
        }
        defer { close(line) }
        var before = termios()
        guard tcgetattr(line, &before) == 0 else { return .noTerminal }
        defer { tcsetattr(line, TCSANOW, &before) }
        var hasHeard = false
        let others = Self.speeds.filter { $0.baud != speed }
        for (baud, code) in Self.speeds.filter({ $0.baud == speed }) + others {
            var settings = before
            cfmakeraw(&settings)
            settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
            cfsetspeed(&settings, code)
            guard tcsetattr(line, TCSANOW, &settings) == 0 else { continue }
            tcflush(line, TCIOFLUSH)
            let answer = ask(line)
            if Self.isAcknowledged(answer) { return .speed(baud) }
            if !answer.isEmpty { hasHeard = true }
        }
        return isLocked ? .busy : hasHeard ? .noise : .silent
    }

    /// Is there a lock of a process that lives? It keeps nobody from the line, so it counts only when there is no answer.
    private var isLocked: Bool {
        guard let real = realpath(path, nil) else { return false }
        defer { free(real) }
        let name = String(cString: real).split(separator: "/").last.map(String.init) ?? ""
        guard let file = fopen("\(locks)/LCK..\(name)", "re") else { return false }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 11)
        let count = fread(&buffer, 1, buffer.count, file)
        // Ten characters, right-aligned, and a line feed.
        let digits = buffer.prefix(count).drop { $0 == 0x20 }.prefix { (0x30...0x39).contains($0) }
        guard let process = pid_t(String(decoding: digits, as: UTF8.self)), process > 0 else { return false }
        return kill(process, 0) == 0 || errno == EPERM
    }

    /// Wake-up, and GetFirmwareVersion. PN532 user manual, 7.2.11 and 7.2.2.
    private static let question: [UInt8] =
        [0x55, 0x55] + [UInt8](repeating: 0, count: 14) + [0x00, 0x00, 0xFF, 0x02, 0xFE, 0xD4, 0x02, 0x2A, 0x00]

    /// ACK is 00 FF 00 FF between a preamble and a postamble.
    private static func isAcknowledged(_ answer: [UInt8]) -> Bool {
        answer.indices.contains { answer[$0...].starts(with: [0x00, 0xFF, 0x00, 0xFF]) }
    }

    private func ask(_ line: Int32) -> [UInt8] {
        guard write(line, Self.question, Self.question.count) == Self.question.count else { return [] }
        var answer: [UInt8] = []
        var waiting = pollfd(fd: line, events: Int16(POLLIN), revents: 0)
        while answer.count < 64, poll(&waiting, 1, 120) == 1 {
            var buffer = [UInt8](repeating: 0, count: 64)
            let count = read(line, &buffer, buffer.count)
            guard count > 0 else { break }
            answer += buffer[..<count]
            if Self.isAcknowledged(answer) { break }
        }
        return answer
    }
}
