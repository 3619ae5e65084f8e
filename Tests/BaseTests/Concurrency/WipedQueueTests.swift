// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Testing

@Suite("The bytes that wait to be sent")
struct WipedQueueTests {
    @Test("the queue sends every byte once, in any division, while it grows and shrinks")
    func queue() {
        var queue = WipedQueue()
        var (expected, sent): ([UInt8], [UInt8]) = ([], [])
        for number in 0..<400 {
            let line = [UInt8](repeating: UInt8(ascii: "a") + UInt8(number % 26), count: number * 7)
            queue.append(line.prefix(number))
            queue.append(line.dropFirst(number))
            expected += line
            var room = number.isMultiple(of: 50) ? Int.max : number * 6
            queue.drain { bytes in
                let part = bytes.prefix(room)
                room -= part.count
                sent += part
                return part.count
            }
        }
        queue.drain { bytes in
            sent += bytes
            return bytes.count
        }
        #expect(sent == expected)
        let rest = queue.count
        #expect(rest == 0)
    }
}
