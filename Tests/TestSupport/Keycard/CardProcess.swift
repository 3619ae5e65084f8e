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
        socket = try UnixSocket.connect(to: path)
        input = Mutex([])
    }

    deinit { close(socket) }

    /// Sends a line and returns what follows `ok`.
    @discardableResult
    package func ask(_ line: String) throws -> String {
        let answer = try input.withLock { input in
            BlockingSocket.send((line + "\n").utf8, to: socket)
            while !input.contains(0x0A) {
                guard let part = BlockingSocket.receive(from: socket) else {
                    throw Refused(description: "the card process has ended")
                }
                input += part
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
