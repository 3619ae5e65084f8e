// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Queues the lines for the daemon. Bytes are wiped when they are removed, because a line may hold a PIN.
struct LineQueue: ~Copyable {
    private var bytes: [UInt8] = []
    /// Offset of the first byte that is still in the queue.
    private var start = 0

    var count: Int { bytes.count - start }

    /// Appends a part of a WebSocket frame. A line end in the frame becomes a tab, so that the frame stays one line.
    ///
    /// JSON allows a tab between tokens, and neither a tab nor a line end in a string.
    mutating func append(_ frame: UnsafeRawBufferPointer) {
        makeRoom(for: frame.count)
        for byte in frame { bytes.append(byte == 0x0A || byte == 0x0D ? 0x09 : byte) }
    }

    mutating func endLine() {
        makeRoom(for: 1)
        bytes.append(0x0A)
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
        (bytes, start) = (other, 0)
    }

    private mutating func wipe(_ range: Range<Int>) {
        bytes.withUnsafeMutableBytes { raw in
            if let base = raw.baseAddress { explicit_bzero(base + range.lowerBound, range.count) }
        }
    }

    /// Lends all bytes to `body`, and removes as many of them as it returns.
    mutating func drain(_ body: (UnsafeRawBufferPointer) -> Int) {
        let sent = bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        drop(max(0, min(sent, count)))
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
