// SPDX-License-Identifier: GPL-3.0-or-later
import Readers

/// A chip that answers as one did in a recording. A command that was recorded several times gets one answer after the
/// other, and then the last one again.
struct RecordedChip {
    /// The answers to each command, both without D4 and D5.
    private var answers: [[UInt8]: [[UInt8]]] = [:]
    /// The answer to another command with the same code.
    private var byCode: [UInt8: [UInt8]] = [:]

    init(_ recording: BoardRecording) {
        var command: [UInt8]?
        for transfer in recording.transfers {
            for body in BoardRecording.bodies(in: transfer.bytes) {
                let frame = Array(transfer.bytes[body].dropFirst())
                if !transfer.isFromBoard {
                    command = frame
                } else if let asked = command.take(), let code = asked.first {
                    answers[asked, default: []].append(frame)
                    byCode[code] = frame
                }
            }
        }
    }

    /// The answer; nil: the chip does not know the command.
    mutating func answer(to command: [UInt8]) -> [UInt8]? {
        if let known = answers[command], let next = known.first {
            if known.count > 1 { answers[command] = Array(known.dropFirst()) }
            return next
        }
        switch command.first {
        // InListPassiveTarget: no card of this type. InDataExchange, InCommunicateThru: the card is silent.
        case 0x4A: return [0x4B, 0x00]
        case 0x40, 0x42: return command.first.map { [$0 + 1, 0x01] }
        case let code: return code.flatMap { byCode[$0] }
        }
    }
}
