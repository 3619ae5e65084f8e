// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text

/// Bytes on their way, cut into lines where they are taken out; wiped when they are gone, for a line may hold a PIN.
struct LineQueue: ~Copyable {
    private var bytes: [UInt8] = []
    private var start = 0

    var count: Int { bytes.count - start }

    mutating func append(_ more: UnsafeRawBufferPointer) {
        makeRoom(for: more.count)
        bytes.append(contentsOf: more)
    }

    /// A piece of a frame. A line end within it would cut it in two: it becomes another space, which JSON takes between
    /// its words and refuses within a string, as the line end.
    mutating func append(frame: UnsafeRawBufferPointer) {
        makeRoom(for: frame.count)
        for byte in frame { bytes.append(byte == 0x0A || byte == 0x0D ? 0x09 : byte) }
    }

    mutating func endLine() {
        makeRoom(for: 1)
        bytes.append(0x0A)
    }

    /// An array that grows by itself leaves what it held behind.
    private mutating func makeRoom(for number: Int) {
        guard bytes.count + number > bytes.capacity else { return }
        move(to: max(2 * count, count + number, 4096))
    }

    /// To other memory of this size; what was here is wiped.
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

    /// The next whole line, without its end, lent to `body`; nil when there is none.
    mutating func withLine<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T? {
        guard let end = bytes[start...].firstIndex(of: 0x0A) else { return nil }
        let result = bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
        drop(end + 1 - start)
        return result
    }

    var hasLine: Bool { bytes[start...].contains(0x0A) }

    /// Hands over what there is; `body` says how much of it is gone now.
    mutating func drain(_ body: (UnsafeRawBufferPointer) -> Int) {
        let gone = bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        drop(max(0, min(gone, count)))
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
        // The last owner of the array, so its memory is not shared.
        bytes.withUnsafeBytes { raw in
            if let base = raw.baseAddress { explicit_bzero(UnsafeMutableRawPointer(mutating: base), raw.count) }
        }
    }
}
