// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Splits a byte stream into lines without a copy, and wipes returned lines, because a line may hold a PIN.
package final class LineBuffer {
    package enum Line {
        /// A line without its `\n` or `\r\n`; valid until the next call of the buffer.
        case text(UnsafeRawBufferPointer)
        /// A line longer than the limit, which is reported once and skipped up to the next `\n`.
        case tooLong
    }

    /// The longest line in bytes, without its end. docs/protocol.md, Transport.
    package static let maximumLine = 1 << 20

    private static let smallest = 4096
    private static let largestRead = 65_536
    /// The longest line in bytes that is taken. It may change at any time.
    package var limit: Int
    private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// The first byte that was not returned.
    private var start = 0
    /// The first byte that was not searched for a line end.
    private var searched = 0
    /// All bytes before this offset were returned and are wiped.
    private var wiped = 0
    /// The end of the content.
    private var end = 0
    private var isSkipping = false
    private var wantsMore = false

    package init(limit: Int = maximumLine) { self.limit = limit }

    deinit { release() }

    package var isEmpty: Bool { start == end }

    /// The number of bytes that were read and not returned yet.
    package var count: Int { end - start }

    /// The size of the allocated memory in bytes.
    package var capacity: Int { storage.count }

    /// Lends free space for one read to `body`.
    ///
    /// `body` returns the number of bytes that it wrote, or a negative number for none. This function returns that
    /// number.
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

    /// Returns the next complete line; nil if there is none yet.
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
        wipeReturned()
        return nil
    }

    /// Wipes the returned lines before the next call of the buffer. The last line is no longer valid.
    package func wipeReturned() { if start == end { empty() } else { wipe() } }

    /// Wipes the returned lines. A partial line may keep the buffer in use for long after a PIN.
    private func wipe() {
        guard let base = storage.baseAddress, start > wiped else { return }
        explicit_bzero(base + wiped, start - wiped)
        wiped = start
    }

    private func empty() {
        if storage.count > Self.smallest, !wantsMore || storage.count > Self.largestRead {
            release()
        } else if let base = storage.baseAddress {
            explicit_bzero(base, end)
        }
        start = 0
        searched = 0
        wiped = 0
        end = 0
    }

    private func release() {
        if let base = storage.baseAddress { explicit_bzero(base, storage.count) }
        storage.deallocate()
        storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// Moves the content to the front, and into larger memory if it fills more than half or the last read was full.
    private func makeSpace() {
        let used = end - start
        var wanted = max(Self.smallest, storage.count)
        if wantsMore { wanted = max(wanted, min(storage.count * 2, limit, Self.largestRead)) }
        while used * 2 > wanted { wanted *= 2 }
        // The longest line fits into this size, so a client cannot make the buffer larger.
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
        start = 0
        wiped = 0
        end = used
    }
}
