// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Cuts a byte stream into lines without copying them; wipes what it has given out, for a line may hold a PIN.
package final class LineBuffer {
    package enum Line {
        /// Without its `\n` or `\r\n`; valid until the buffer is touched again.
        case text(UnsafeRawBufferPointer)
        /// Longer than the limit; reported once, its rest is skipped up to the next `\n`.
        case tooLong
    }

    /// Longest line in bytes, without its end. docs/protocol.md, Transport.
    package static let maximumLine = 1 << 20

    private static let smallest = 4096
    private static let largestRead = 65_536
    private let limit: Int
    private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// First byte not given out, first byte not searched for a line end, end of the content.
    private var start = 0
    private var searched = 0
    /// What lies before was given out and is wiped.
    private var wiped = 0
    private var end = 0
    private var isSkipping = false
    private var wantsMore = false

    package init(limit: Int = maximumLine) { self.limit = limit }

    deinit { release() }

    package var isEmpty: Bool { start == end }

    /// Bytes that were read and not returned yet.
    package var count: Int { end - start }

    /// Bytes of memory it holds now.
    package var capacity: Int { storage.count }

    /// Lends free space for one read; `body` gives the number of bytes that it wrote there, or a negative number for
    /// none. That number is passed on.
    package func fill(_ body: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        makeSpace()
        let space = UnsafeMutableRawBufferPointer(rebasing: storage[end...])
        let count = body(space)
        if count > 0 {
            end += min(count, space.count)
            wantsMore = count == space.count
        }
        return count
    }

    /// The next complete line, nil when there is none yet.
    package func next() -> Line? {
        while searched < end {
            let rest = UnsafeRawBufferPointer(rebasing: storage[searched..<end])
            guard let base = rest.baseAddress, let found = memchr(base, 0x0A, rest.count) else {
                searched = end
                break
            }
            let lineEnd = searched + UnsafeRawPointer(base).distance(to: UnsafeRawPointer(found))
            let lineStart = start
            start = lineEnd + 1
            searched = start
            if isSkipping {
                isSkipping = false
                continue
            }
            var length = lineEnd - lineStart
            if length > 0, storage[lineEnd - 1] == 0x0D { length -= 1 }
            if length > limit { return .tooLong }
            return .text(UnsafeRawBufferPointer(rebasing: storage[lineStart..<lineStart + length]))
        }
        if isSkipping {
            start = end
        } else if end - start > limit + 1 {
            isSkipping = true
            start = end
            searched = end
            return .tooLong
        }
        if start == end { empty() } else { wipe() }
        return nil
    }

    /// A half line after a PIN may stay for long, and so must not the PIN.
    private func wipe() {
        guard let base = storage.baseAddress, start > wiped else { return }
        explicit_bzero(base + wiped, start - wiped)
        wiped = start
    }

    private func empty() {
        if storage.count > Self.smallest, !wantsMore {
            release()
        } else if let base = storage.baseAddress {
            explicit_bzero(base, end)
        }
        (start, searched, wiped, end) = (0, 0, 0, 0)
    }

    private func release() {
        if let base = storage.baseAddress { explicit_bzero(base, storage.count) }
        storage.deallocate()
        storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// Moves the content to the front, into larger memory when it fills more than half or the last read was full.
    private func makeSpace() {
        let used = end - start
        var wanted = max(Self.smallest, storage.count)
        if wantsMore { wanted = max(wanted, min(storage.count * 2, Self.largestRead)) }
        while used * 2 > wanted { wanted *= 2 }
        // No line needs more, so no client gets more.
        wanted = max(storage.count, min(wanted, max(used, limit) + Self.largestRead))
        guard start > 0 || wanted > storage.count || end == storage.count else { return }
        if wanted > storage.count {
            let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: wanted, alignment: 16)
            if used > 0 { larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[start..<end])) }
            release()
            storage = larger
        } else if let base = storage.baseAddress {
            if used > 0 { memmove(base, base + start, used) }
            explicit_bzero(base + used, end - used)
        }
        searched -= start
        (start, wiped, end) = (0, 0, used)
    }
}
