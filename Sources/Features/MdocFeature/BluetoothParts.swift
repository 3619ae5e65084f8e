// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The parts in which a message goes over Bluetooth: 01 or, for the last one, 00, and bytes of the message. ISO/IEC 18013-5,
/// 8.3.3.1.1.6.
package struct BluetoothParts {
    /// The longest value of a characteristic.
    private static let longestValue = 512
    private static let more: UInt8 = 1
    private static let last: UInt8 = 0

    private var message: [UInt8] = []
    /// Whether a message has begun, whose last part has not come.
    package private(set) var isInside = false

    package init() {}

    /// The bytes of the message that have come.
    package var count: Int { message.count }

    /// Takes the next part.
    /// - Returns: the message, if it is complete.
    package mutating func add(_ part: [UInt8]) throws(MdocTransportError) -> [UInt8]? {
        guard let first = part.first, first == Self.more || first == Self.last else {
            throw .sessionError("a part of a message begins with neither 00 nor 01")
        }
        // Parts without content would allow a message that does not end.
        guard part.count > 1 || first == Self.last else { throw .sessionError("a part of a message is empty") }
        guard message.count + part.count - 1 <= MdocMessage.maximumBytes else { throw .tooLarge }
        message += part.dropFirst()
        isInside = first == Self.more
        guard !isInside else { return nil }
        defer { message = [] }
        return message
    }

    /// Divides a message into values of at most `capacity` bytes.
    package static func divide(_ message: [UInt8], capacity: Int) -> [[UInt8]] {
        let size = max(min(capacity, longestValue) - 1, 1)
        let starts = Array(stride(from: 0, to: max(message.count, 1), by: size))
        return starts.map { start in
            let end = min(start + size, message.count)
            return [end == message.count ? last : more] + message[start..<end]
        }
    }
}
