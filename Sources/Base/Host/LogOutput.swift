// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Synchronization

/// Writes log lines to a descriptor without ever waiting for its reader, and counts the lines that are lost.
///
/// The mode of stderr must not change, because other processes share it. So a pipe or a terminal is opened a second
/// time, with a mode of its own.
final class LogOutput: Sendable {
    private enum Destination {
        /// The stream of the journal, for example.
        case socket(Int32)
        /// A descriptor of this object, which does not block.
        case own(Int32)
        /// A regular file, which never blocks, or a pipe that could not be opened again.
        case shared(Int32)
    }

    private struct State {
        /// Lines that were lost since the last line that arrived.
        var lost = 0
        /// All lines that were lost.
        var sum = 0
        /// Whether the last line is incomplete.
        var isBroken = false
    }

    private let target: Destination
    private let state = Mutex(State())

    init(_ descriptor: Int32) {
        var status = stat()
        let kind = fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : S_IFREG
        switch kind {
        case S_IFSOCK: target = .socket(descriptor)
        case S_IFIFO, S_IFCHR:
            let flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
            let own = clinux_open("/proc/self/fd/\(descriptor)", flags, 0)
            target = own >= 0 ? .own(own) : .shared(descriptor)
        default: target = .shared(descriptor)
        }
    }

    deinit {
        if case .own(let descriptor) = target { close(descriptor) }
    }

    /// The lines that were lost since the start.
    var lostLines: Int { state.withLock { $0.sum } }

    /// Writes a line with its line end. After a loss, the line that `report` makes of the number of lost lines comes
    /// first.
    func write(_ line: String, afterLoss report: (Int) -> String) {
        state.withLock { state in
            if state.lost > 0 {
                guard put((state.isBroken ? "\n" : "") + report(state.lost), &state) else {
                    (state.lost, state.sum) = (state.lost + 1, state.sum + 1)
                    return
                }
                state.lost = 0
            }
            if !put(line, &state) { (state.lost, state.sum) = (state.lost + 1, state.sum + 1) }
        }
    }

    /// Returns whether the whole line was accepted.
    private func put(_ line: String, _ state: inout State) -> Bool {
        var line = line
        return line.withUTF8 { bytes in
            var count = -1
            repeat {
                switch target {
                case .socket(let descriptor):
                    count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
                case .own(let descriptor):
                    count = Glibc.write(descriptor, bytes.baseAddress, bytes.count)
                case .shared(let descriptor):
                    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    guard poll(&ready, 1, 0) == 1 else { return false }
                    count = Glibc.write(descriptor, bytes.baseAddress, bytes.count)
                }
            } while count < 0 && errno == EINTR
            if count > 0 { state.isBroken = count < bytes.count }
            return count == bytes.count
        }
    }
}
