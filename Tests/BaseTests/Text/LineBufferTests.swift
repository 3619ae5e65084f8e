// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

/// A line as a value.
private enum Taken: Equatable {
    case text(String)
    case tooLong
}

extension LineBuffer {
    /// Appends as many of `bytes` as fit at once and returns their number.
    fileprivate func take(_ bytes: ArraySlice<UInt8>) -> Int {
        fill { space in
            let count = min(space.count, bytes.count)
            space.copyBytes(from: bytes.prefix(count))
            return count
        }
    }

    fileprivate func lines() -> [Taken] {
        var taken: [Taken] = []
        while let line = next() {
            switch line {
            case .text(let text): taken.append(.text(String(decoding: text, as: UTF8.self)))
            case .tooLong: taken.append(.tooLong)
            }
        }
        return taken
    }

    /// Feeds all bytes in pieces of at most `size` and returns the lines.
    fileprivate func feed(_ bytes: [UInt8], by size: Int = .max) -> [Taken] {
        var taken: [Taken] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            rest = rest.dropFirst(take(rest.prefix(size)))
            taken += lines()
        }
        return taken
    }
}

@Suite("Line buffer", .timeLimit(.minutes(5))) struct LineBufferTests {
    private let buffer = LineBuffer()

    @Test("lines do not depend on where the stream is split")
    func everyCut() {
        let stream = Array("one\n\ntwo\r\n\r\n\rthree\r\r\nfour €\n".utf8)
        let expected = ["one", "", "two", "", "\rthree\r", "four €"].map(Taken.text)
        for cut in 0...stream.count {
            let buffer = LineBuffer()
            let first = buffer.feed(Array(stream[..<cut]))
            #expect(first + buffer.feed(Array(stream[cut...])) == expected, "cut at \(cut)")
            #expect(buffer.isEmpty)
        }
        for size in 1...stream.count { #expect(LineBuffer().feed(stream, by: size) == expected) }
    }

    @Test(
        "a line at the limit is accepted, a longer one is not, and the next line is intact",
        arguments: [1, 7, 64, 10_000]
    )
    func limit(size: Int) {
        let buffer = LineBuffer(limit: 64)
        let (longest, longer) = (String(repeating: "x", count: 64), String(repeating: "y", count: 65))
        for end in ["\n", "\r\n"] {
            let stream = Array((longest + end + longer + end + "ok" + end).utf8)
            #expect(buffer.feed(stream, by: size) == [.text(longest), .tooLong, .text("ok")])
        }
    }

    @Test("a line beyond 1 MiB is reported once and skipped, with at most 1 MiB and one read of memory")
    func endless() {
        let chunk = [UInt8](repeating: 0x61, count: 65_536)
        var taken: [Taken] = []
        var largest = 0
        for _ in 0..<64 {
            taken += buffer.feed(chunk)
            largest = max(largest, buffer.capacity)
        }
        #expect(taken == [.tooLong])
        #expect(largest <= LineBuffer.maximumLine + 65_536 + 1)
        #expect(buffer.feed(Array("\nnext\n".utf8)) == [.text("next")])
        _ = buffer.feed(Array("x\n".utf8))
        #expect(buffer.capacity <= 4096)
    }

    @Test("a line of 1 MiB is accepted, and its memory is released")
    func largest() {
        let line = String(repeating: "z", count: LineBuffer.maximumLine)
        #expect(buffer.feed(Array((line + "\n").utf8)) == [.text(line)])
        _ = buffer.feed(Array("x\n".utf8))
        #expect(buffer.capacity <= 4096)
    }

    @Test("10 000 partial reads become one line without a large buffer")
    func halfLines() throws {
        for number in 0..<10_000 { #expect(buffer.feed(Array("\(number % 10)".utf8)).isEmpty) }
        #expect(buffer.capacity <= 32_768)
        guard case .text(let text)? = buffer.feed([0x0A]).first else { throw Unexpected("no line") }
        #expect(text.utf8.count == 10_000)
        #expect(text.hasPrefix("0123456789"))
    }

    @Test("the memory of a line is zeroed after its use, also while a partial line follows it")
    func wiped() throws {
        let (secret, half) = (Array("{\"value\":\"123456\"}\n".utf8), Array("{\"cmd\":".utf8))
        _ = buffer.take((secret + half)[...])
        guard case .text(let given)? = buffer.next() else { throw Unexpected("no line") }
        // The memory belongs to the buffer and stays valid until the next fill.
        let memory = UnsafeRawBufferPointer(start: given.baseAddress, count: secret.count)
        #expect(memory.elementsEqual(secret))
        #expect(buffer.next() == nil)
        #expect(memory.allSatisfy { $0 == 0 })
        #expect(buffer.feed(Array("1}\n".utf8)) == [.text("{\"cmd\":1}")])
    }

    @Test("the memory of the last line is zeroed")
    func wipedWhenEmpty() throws {
        let secret = Array("123456\n".utf8)
        _ = buffer.take(secret[...])
        guard case .text(let given)? = buffer.next() else { throw Unexpected("no line") }
        let memory = UnsafeRawBufferPointer(start: given.baseAddress, count: secret.count)
        #expect(buffer.next() == nil)
        #expect(memory.allSatisfy { $0 == 0 })
    }

    @Test("a read without data changes nothing", arguments: [0, -1])
    func nothing(result: Int) {
        _ = buffer.feed(Array("ab".utf8))
        #expect(buffer.fill { _ in result } == result)
        #expect(buffer.feed(Array("c\n".utf8)) == [.text("abc")])
    }
}
