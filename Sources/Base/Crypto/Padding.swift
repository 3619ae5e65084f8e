// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The padding of smart cards to full blocks: 80, then zeros. ISO/IEC 9797-1, method 2.
package enum Padding {
    package static func added(to bytes: [UInt8], blockSize: Int = AES.blockSize) -> [UInt8] {
        bytes + [0x80] + [UInt8](repeating: 0, count: blockSize - 1 - bytes.count % blockSize)
    }

    package static func add(to bytes: borrowing Secret, blockSize: Int = AES.blockSize) -> Secret {
        let count = bytes.count
        return bytes.withBytes { source in
            Secret(count: count + blockSize - count % blockSize) { target in
                target.copyMemory(from: source)
                target[count] = 0x80
            }
        }
    }

    /// Returns the bytes before the padding; nil when the padding is wrong.
    package static func remove(from bytes: borrowing Secret, blockSize: Int = AES.blockSize) -> Secret? {
        let end = bytes.withBytes { padded -> Int? in
            guard let end = padded.lastIndex(where: { $0 != 0 }), padded[end] == 0x80,
                end >= padded.count - blockSize
            else { return nil }
            return end
        }
        guard let end else { return nil }
        return bytes.part(0..<end)
    }
}
