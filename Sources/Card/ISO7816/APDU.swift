// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// A command APDU. ISO 7816-4, 5.1.
package struct CommandAPDU: Sendable, Equatable {
    package var cla: UInt8
    package var ins: UInt8
    package var p1: UInt8
    package var p2: UInt8
    /// 0 to 65 535 bytes.
    package var data: [UInt8]
    /// The maximum number of bytes of the answer, 1 to 65 536; nil for no answer data.
    package var le: Int?

    /// The maximum number of bytes of command data.
    package static let maximumData = 65_535
    /// The maximum number of bytes of answer data.
    package static let maximumLe = 65_536

    package init(_ cla: UInt8, _ ins: UInt8, _ p1: UInt8, _ p2: UInt8, data: [UInt8] = [], le: Int? = nil) {
        self.cla = cla
        self.ins = ins
        self.p1 = p1
        self.p2 = p2
        self.data = data
        self.le = le
    }

    /// Whether the command needs extended lengths: cases 2E to 4E of ISO 7816-4, 5.1.
    package var isExtended: Bool { data.count > 255 || (le ?? 0) > 256 }

    /// Whether more commands of the chain follow: bit 5 of the class. ISO 7816-4, 5.1.1.1.
    package var isChained: Bool { cla & 0x10 != 0 }

    /// Whether secure messaging protects the command, its header included, on the basic channel: the classes 0C, 1C, 8C
    /// and 9C. In other classes the same bits mean something else. ISO 7816-4, 5.4.1.
    package var isProtected: Bool { [0x0C, 0x1C, 0x8C, 0x9C].contains(cla) }

    /// The encoding, with short lengths when both fit.
    package var bytes: [UInt8] {
        var out: [UInt8] = [cla, ins, p1, p2]
        out.reserveCapacity(data.count + 9)
        if isExtended {
            out.append(0)
            if !data.isEmpty {
                out.append(UInt8(truncatingIfNeeded: data.count >> 8))
                out.append(UInt8(truncatingIfNeeded: data.count))
                out += data
            }
            if let le {
                out.append(UInt8(truncatingIfNeeded: le >> 8))
                out.append(UInt8(truncatingIfNeeded: le))
            }
        } else {
            if !data.isEmpty {
                out.append(UInt8(truncatingIfNeeded: data.count))
                out += data
            }
            if let le { out.append(UInt8(truncatingIfNeeded: le)) }
        }
        return out
    }

    /// Reads an encoding with short or extended lengths; nil when the lengths contradict each other.
    package init?(bytes: some Collection<UInt8>) {
        let raw = Array(bytes)
        guard raw.count >= 4 else { return nil }
        self.init(raw[0], raw[1], raw[2], raw[3])
        let body = raw[4...]
        switch body.count {
        case 0:
            return
        case 1:
            le = raw[4] == 0 ? 256 : Int(raw[4])
        case 3 where raw[4] == 0:
            let value = Int(raw[5]) << 8 | Int(raw[6])
            le = value == 0 ? 65_536 : value
        case _ where raw[4] != 0:
            let lc = Int(raw[4])
            guard body.count == 1 + lc || body.count == 2 + lc else { return nil }
            data = Array(raw[5..<5 + lc])
            if body.count == 2 + lc, let last = raw.last { le = last == 0 ? 256 : Int(last) }
        default:
            guard body.count > 3 else { return nil }
            let lc = Int(raw[5]) << 8 | Int(raw[6])
            guard lc > 0, body.count == 3 + lc || body.count == 5 + lc else { return nil }
            data = Array(raw[7..<7 + lc])
            if body.count == 5 + lc {
                let value = Int(raw[7 + lc]) << 8 | Int(raw[8 + lc])
                le = value == 0 ? 65_536 : value
            }
        }
    }
}

/// The two status bytes of a response. ISO 7816-4, 5.6.
package struct StatusWord: Hashable, Sendable, CustomStringConvertible {
    package let value: UInt16

    package init(_ value: UInt16) { self.value = value }

    package var sw1: UInt8 { UInt8(truncatingIfNeeded: value >> 8) }
    package var sw2: UInt8 { UInt8(truncatingIfNeeded: value) }

    package static let ok = StatusWord(0x9000)

    /// Four upper-case hexadecimal digits.
    package var description: String { Hex.encode(value).uppercased() }
}

/// A response APDU: data and status word. ISO 7816-4, 5.1.
package struct ResponseAPDU: Sendable, Equatable {
    package var data: [UInt8]
    package var status: StatusWord

    package init(data: [UInt8] = [], _ status: StatusWord) {
        self.data = data
        self.status = status
    }

    /// Reads an answer; nil when it is shorter than a status word or longer than 65 538 bytes.
    package init?(bytes: some Collection<UInt8>) {
        let raw = Array(bytes)
        guard raw.count >= 2, raw.count <= CommandAPDU.maximumLe + 2 else { return nil }
        data = Array(raw.dropLast(2))
        status = StatusWord(UInt16(raw[raw.count - 2]) << 8 | UInt16(raw[raw.count - 1]))
    }

    package var bytes: [UInt8] { data + [status.sw1, status.sw2] }
}
