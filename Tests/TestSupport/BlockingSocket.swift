// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Sends and receives on stream sockets that block.
package enum BlockingSocket {
    /// Sends all bytes; returns false when the peer has closed.
    @discardableResult
    package static func send(_ bytes: some Sequence<UInt8>, to socket: Int32) -> Bool {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Receives what comes next, at most `limit` bytes; nil at the end of the stream.
    package static func receive(upTo limit: Int = 65_536, from socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: limit)
        while true {
            let count = recv(socket, &bytes, limit, 0)
            if count < 0, errno == EINTR { continue }
            return count > 0 ? Array(bytes[..<count]) : nil
        }
    }

    /// Receives exactly `count` bytes; nil when the stream ends before.
    package static func receive(_ count: Int, from socket: Int32) -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < count {
            guard let part = receive(upTo: count - bytes.count, from: socket) else { return nil }
            bytes += part
        }
        return bytes
    }
}
