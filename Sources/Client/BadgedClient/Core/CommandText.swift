// SPDX-License-Identifier: Apache-2.0
import Text

/// Writes commands as lines, in memory that is wiped afterwards.
enum CommandText {
    static func line(_ command: String, _ id: RequestID, _ members: [JSON.Member]) -> Secret {
        Secret(object(command, id, members) + [UInt8(ascii: "\n")])
    }

    private static func object(_ command: String, _ id: RequestID, _ members: [JSON.Member]) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(.object([.init("cmd", .string(command)), .init("request", .string(id.text))] + members))
        return Array(writer.bytes)
    }

    /// Writes a command whose `value` is a PIN, CAN or PUK. The value is in no other buffer.
    static func line(
        _ command: String,
        _ id: RequestID,
        _ members: [JSON.Member],
        value: borrowing Secret
    ) -> Secret {
        let start = object(command, id, members).dropLast() + Array(",\"value\":\"".utf8)
        let end = Array("\"}\n".utf8)
        return value.withBytes { value in
            let length = value.reduce(0) { $0 + width($1) }
            return Secret(count: start.count + length + end.count) { line in
                var position = 0
                func put(_ byte: UInt8) {
                    line[position] = byte
                    position += 1
                }
                start.forEach(put)
                for byte in value {
                    guard width(byte) > 1 else {
                        put(byte)
                        continue
                    }
                    "\\u00".utf8.forEach(put)
                    put(Hex.digit(byte >> 4))
                    put(Hex.digit(byte))
                }
                end.forEach(put)
            }
        }
    }

    /// Returns how many bytes one byte of a string takes. Control characters, `"` and `\` are escaped.
    private static func width(_ byte: UInt8) -> Int {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? 6 : 1
    }
}
