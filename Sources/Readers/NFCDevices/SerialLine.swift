// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host

/// The reason why libnfc cannot open a serial line.
enum SerialLineFault: Sendable, Equatable {
    case missing
    case denied
    /// The device controller of the service's cgroup or a mount option forbids it.
    case notPermitted
    case busy
    case noTerminal
    /// The board sent nothing at any speed.
    case silent
    /// The board answers at this speed, in baud.
    case speed(Int)
    /// Bytes came, but no answer of a PN532 at any speed.
    case noise
}

/// A serial line that may have a PN532 at its end.
struct SerialLine: Sendable {
    let path: String
    let speed: Int
    /// The folder of lock files for devices; Filesystem Hierarchy Standard, 5.9.
    var locks = "/run/lock"
    /// Milliseconds to wait for an answer at each speed.
    var answerTimeout: Int32 = 120

    /// The speed that libnfc uses when the connection string has none.
    static let defaultSpeed = 115_200
    static let speeds: [(baud: Int, code: speed_t)] = [
        (115_200, speed_t(B115200)), (9_600, speed_t(B9600)), (19_200, speed_t(B19200)), (38_400, speed_t(B38400)),
        (57_600, speed_t(B57600)), (230_400, speed_t(B230400)), (460_800, speed_t(B460800)),
    ]

    /// Finds out why libnfc failed: asks the board for its version at all speeds. Blocks for up to a second.
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
        var hasReceived = false
        let others = Self.speeds.filter { $0.baud != speed }
        for (baud, code) in Self.speeds.filter({ $0.baud == speed }) + others {
            var settings = before
            cfmakeraw(&settings)
            settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
            cfsetspeed(&settings, code)
            guard tcsetattr(line, TCSANOW, &settings) == 0 else { continue }
            tcflush(line, TCIOFLUSH)
            let answer = queryVersion(line)
            if Self.isAcknowledged(answer) { return .speed(baud) }
            if !answer.isEmpty { hasReceived = true }
        }
        return isLocked ? .busy : hasReceived ? .noise : .silent
    }

    /// Whether a running process has a lock file for the line. Such a lock does not prevent opening, so the check is
    /// made only when no board answers.
    private var isLocked: Bool {
        guard let real = realpath(path, nil) else { return false }
        defer { free(real) }
        let name = String(cString: real).split(separator: "/").last.map(String.init) ?? ""
        // Every user may put something there.
        guard case .bytes(let bytes) = PlainFile.read("\(locks)/LCK..\(name)", limit: 64) else { return false }
        // The file has the process id, right-aligned in ten characters, and a line feed.
        let digits = bytes.drop { $0 == 0x20 }.prefix { (0x30...0x39).contains($0) }
        guard let process = pid_t(String(decoding: digits, as: UTF8.self)), process > 0 else { return false }
        return kill(process, 0) == 0 || errno == EPERM
    }

    /// The wake-up sequence and GetFirmwareVersion. PN532 user manual, 7.2.11 and 7.2.2.
    private static let versionCommand: [UInt8] =
        [0x55, 0x55] + [UInt8](repeating: 0, count: 14) + [0x00, 0x00, 0xFF, 0x02, 0xFE, 0xD4, 0x02, 0x2A, 0x00]

    /// The ACK frame is 00 FF 00 FF between a preamble and a postamble.
    private static func isAcknowledged(_ answer: [UInt8]) -> Bool {
        answer.indices.contains { answer[$0...].starts(with: [0x00, 0xFF, 0x00, 0xFF]) }
    }

    private func queryVersion(_ line: Int32) -> [UInt8] {
        guard write(line, Self.versionCommand, Self.versionCommand.count) == Self.versionCommand.count else {
            return []
        }
        var answer: [UInt8] = []
        var waiting = pollfd(fd: line, events: Int16(POLLIN), revents: 0)
        while answer.count < 64, poll(&waiting, 1, answerTimeout) == 1 {
            var buffer = [UInt8](repeating: 0, count: 64)
            let count = read(line, &buffer, buffer.count)
            guard count > 0 else { break }
            answer += buffer[..<count]
            if Self.isAcknowledged(answer) { break }
        }
        return answer
    }
}
