// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Glibc
import Synchronization
package import Text

/// A process with the applet of a vendor, which a test controls by lines of text. docs/testing.md, The Keycard applet.
///
/// The answer to a line begins with `ok` or `error`. The process has one card, so tests with it run in sequence.
package final class CardProcess: Sendable {
    package struct Refused: Error, CustomStringConvertible {
        package let description: String
    }

    /// The socket of the process; nil where no applet is given.
    package static let path = ProcessInfo.processInfo.environment["BADGED_CARD_PROCESS"]

    private let socket: Int32
    private let input: Mutex<[UInt8]>

    /// Connects to the process at `path`.
    package init() throws {
        guard let path = Self.path else { throw Refused(description: "BADGED_CARD_PROCESS is not set") }
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        self.socket = socket
        input = Mutex([])
        guard code == 0 else { throw Refused(description: "no card process at \(path)") }
    }

    deinit { close(socket) }

    /// Sends a line and returns what follows `ok`.
    @discardableResult
    package func ask(_ line: String) throws -> String {
        let answer = try input.withLock { input in
            let bytes = Array((line + "\n").utf8)
            guard send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
                throw Refused(description: "the card process has ended")
            }
            while !input.contains(0x0A) {
                var part = [UInt8](repeating: 0, count: 65_536)
                let count = recv(socket, &part, part.count, 0)
                guard count > 0 else { throw Refused(description: "the card process has ended") }
                input += part.prefix(count)
            }
            let end = input.firstIndex(of: 0x0A) ?? input.endIndex
            defer { input.removeSubrange(...end) }
            return String(decoding: input[..<end], as: UTF8.self)
        }
        guard answer.hasPrefix("ok") else { throw Refused(description: "\(line): \(answer)") }
        return String(answer.dropFirst(3))
    }

    /// The internal state of the card, read without a command to the card.
    package func peek() throws -> JSON { try JSON(try ask("peek").utf8) }
}
