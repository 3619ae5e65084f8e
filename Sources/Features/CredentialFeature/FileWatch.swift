// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host

/// Tells when a file is renamed onto a path. Only whole files appear in this way. inotify(7)
@Loop final class FileWatch {
    let path: String
    private let descriptor: Int32
    private let changed: @Loop () -> Void
    private var registration: Loop.Registration?

    /// nil if the kernel refuses, which is logged.
    init?(_ path: String, changed: @escaping @Loop () -> Void) {
        self.path = path
        self.changed = changed
        descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let wanted = UInt32(IN_MOVED_TO) | UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF) | UInt32(IN_ONLYDIR)
        do throws(SystemError) {
            guard descriptor >= 0, inotify_add_watch(descriptor, folder, wanted) >= 0 else {
                throw SystemError("inotify")
            }
            registration = try Loop.watch(descriptor, .read) { [unowned self] _ in read() }
        } catch {
            Log.error("\(folder) cannot be watched: \(error.description); hint: send SIGHUP after a change of \(path)")
            if descriptor >= 0 { close(descriptor) }
            return nil
        }
    }

    isolated deinit {
        registration?.cancel()
        close(descriptor)
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 8192)
        let name = Array(path.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.reversed())
        var isChanged = false
        while case let count = Glibc.read(descriptor, &buffer, buffer.count), count > 0 {
            // An event has 16 bytes: watch, mask, cookie and the size of the name, which zeros fill up.
            var offset = 0
            while offset + 16 <= count {
                func word(_ index: Int) -> UInt32 {
                    (0..<4).reduce(0) { $0 | UInt32(buffer[offset + index + $1]) << (8 * UInt32($1)) }
                }
                let (mask, size) = (word(4), Int(word(12)))
                let end = min(offset + 16 + size, count)
                if mask & UInt32(IN_MOVED_TO) != 0 {
                    isChanged = isChanged || buffer[offset + 16..<end].prefix { $0 != 0 }.elementsEqual(name)
                } else if mask & UInt32(IN_Q_OVERFLOW) != 0 {
                    isChanged = true
                } else if mask & (UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF)) != 0 {
                    Log.warning("the folder of \(path) has gone; hint: send SIGHUP when it is there again")
                }
                offset = end
            }
        }
        if isChanged { changed() }
    }
}
