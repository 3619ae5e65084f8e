// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Sends log lines with fields to the journal, one datagram each, without ever waiting for it.
///
/// systemd.io/JOURNAL_NATIVE_PROTOCOL. The C function is sd_journal_sendv; libsystemd would only be loaded for it.
final class JournalSocket: Sendable {
    static let standardPath = "/run/systemd/journal/socket"
    /// The most bytes of the value of a field.
    private static let longestValue = 256

    private let descriptor: Int32
    private let address: UnixAddress

    /// nil: the path is too long, or there is no descriptor left.
    init?(path: String = standardPath) {
        let type = Int32(SOCK_DGRAM.rawValue) | closeOnExec | nonBlocking
        guard let address = UnixAddress(path: path), case let descriptor = socket(AF_UNIX, type, 0), descriptor >= 0
        else { return nil }
        self.descriptor = descriptor
        self.address = address
    }

    deinit { close(descriptor) }

    /// Sends a line whose text has no control characters. A journal that is restarted gets the next one.
    /// - Returns: false if the journal does not take it now.
    func send(_ level: Log.Level, _ text: String, _ fields: Log.Fields) -> Bool {
        var entry = "MESSAGE=\(text)\nPRIORITY=\(level.rawValue)\nSYSLOG_IDENTIFIER=badged\n"
        for (name, value) in fields.entries { entry += "\(name)=\(Self.bounded(value))\n" }
        return address.withPointer { address, length in
            entry.withUTF8 { bytes in
                var count = -1
                repeat {
                    count = sendto(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL), address, length)
                } while count < 0 && errno == EINTR
                return count == bytes.count
            }
        }
    }

    /// A value ends at a line end, so it has no control characters.
    private static func bounded(_ value: String) -> String {
        let text = Log.escaped(value)
        return text.utf8.count <= longestValue
            ? text : String(decoding: text.utf8.prefix(longestValue - 3), as: UTF8.self) + "..."
    }
}
