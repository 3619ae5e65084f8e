// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Queues bytes for a socket. They are wiped when they are removed, because they may hold a PIN.
package struct WipedQueue: ~Copyable {
    private var bytes: [UInt8] = []
    /// Offset of the first byte that is still in the queue.
    private var start = 0

    package init() {}

    package var count: Int { bytes.count - start }

    /// The allocated memory in bytes.
    package var capacity: Int { bytes.capacity }

    package mutating func append(_ part: some Collection<UInt8>) {
        makeRoom(for: part.count)
        bytes.append(contentsOf: part)
    }

    package mutating func append(_ part: some Collection<UInt8>, _ transform: (UInt8) -> UInt8) {
        makeRoom(for: part.count)
        for byte in part { bytes.append(transform(byte)) }
    }

    /// Grows the array by hand: an array that grows by itself frees its old memory without wiping.
    private mutating func makeRoom(for number: Int) {
        guard bytes.count + number > bytes.capacity else { return }
        // With room for a line end.
        move(to: max(2 * count, count + number + 16, 1024))
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
    package mutating func send(to socket: Int32) -> Bool {
        var isBroken = false
        drain { bytes in
            let sent = Self.send(bytes, to: socket)
            isBroken = sent < 0 && errno != EAGAIN
            return sent
        }
        return !isBroken
    }

    /// Sends as many messages as the socket accepts, each as one packet. Each was appended behind its length in four bytes.
    /// A message that the socket refuses is dropped.
    package mutating func sendPackets(to socket: Int32) {
        while count >= 4 {
            let size = 4 + bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            let sent = bytes.withUnsafeBytes { bytes in
                Self.send(UnsafeRawBufferPointer(rebasing: bytes[start + 4..<start + size]), to: socket)
            }
            if sent < 0, errno == EAGAIN { return }
            drop(size)
        }
    }

    private static func send(_ bytes: UnsafeRawBufferPointer, to socket: Int32) -> Int {
        while true {
            let sent = Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            if sent >= 0 || errno != EINTR { return sent }
        }
    }

    /// Lends all bytes to `body`, and removes as many of them as it returns; until it returns none or all are removed.
    package mutating func drain(_ body: (UnsafeRawBufferPointer) -> Int) {
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

    /// Drops all bytes.
    package mutating func discard() {
        wipe(0..<bytes.count)
        bytes = []
        start = 0
    }

    deinit {
        // The array has no other owner, so its memory is not shared.
        bytes.withUnsafeBytes { raw in
            if let base = raw.baseAddress { explicit_bzero(UnsafeMutableRawPointer(mutating: base), raw.count) }
        }
    }
}
