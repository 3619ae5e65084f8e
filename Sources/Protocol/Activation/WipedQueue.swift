// SPDX-License-Identifier: GPL-3.0-or-later
// Its header has the constants of send(2), too.
import CMicroHTTPD
import Glibc

/// Queues bytes for a socket. They are wiped when they are removed, because a line may hold a PIN.
struct WipedQueue: ~Copyable {
    private var bytes: [UInt8] = []
    /// Offset of the first byte that is still in the queue.
    private var start = 0

    var count: Int { bytes.count - start }

    mutating func append(_ part: some Collection<UInt8>, _ transform: (UInt8) -> UInt8 = { $0 }) {
        makeRoom(for: part.count)
        for byte in part { bytes.append(transform(byte)) }
    }

    /// Grows the array by hand: an array that grows by itself frees its old memory without wiping.
    private mutating func makeRoom(for number: Int) {
        guard bytes.count + number > bytes.capacity else { return }
        move(to: max(2 * count, count + number, 4096))
    }

    /// Moves the bytes to new memory of this size, and wipes the old memory.
    private mutating func move(to capacity: Int) {
        var other: [UInt8] = []
        other.reserveCapacity(capacity)
        other += bytes[start...]
        wipe(0..<bytes.count)
        bytes = other
        start = 0
    }

    private mutating func wipe(_ range: Range<Int>) {
        bytes.withUnsafeMutableBytes { raw in
            if let base = raw.baseAddress { explicit_bzero(base + range.lowerBound, range.count) }
        }
    }

    /// Sends as many bytes as the socket accepts without blocking.
    /// - Returns: false if the socket is broken.
    mutating func send(to socket: Int32) -> Bool {
        var code: Int32 = 0
        drain { bytes in
            let sent = Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            code = sent < 0 ? errno : 0
            return sent
        }
        if code == EINTR { return send(to: socket) }
        return code == 0 || code == EAGAIN || code == EWOULDBLOCK
    }

    /// Lends all bytes to `body`, and removes as many of them as it returns; until it returns none or all are removed.
    mutating func drain(_ body: (UnsafeRawBufferPointer) -> Int) {
        while count > 0 {
            let sent = bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
            guard sent > 0 else { return }
            drop(min(sent, count))
        }
    }

    private mutating func drop(_ number: Int) {
        let end = start + number
        wipe(start..<end)
        start = end
        if start == bytes.count {
            bytes.removeAll(keepingCapacity: bytes.capacity <= 4096)
            start = 0
        } else if start > 65_536 {
            move(to: 2 * count)
        }
    }

    deinit {
        // The array has no other owner, so its memory is not shared.
        bytes.withUnsafeBytes { raw in
            if let base = raw.baseAddress { explicit_bzero(UnsafeMutableRawPointer(mutating: base), raw.count) }
        }
    }
}
