// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// What a panel shows at one of its readers: LEDs, text and outputs. Times are milliseconds.
package struct OSDPDisplay: Sendable {
    /// A colour, or two that take turns.
    package struct Light: Sendable, Equatable {
        package var color: UInt8
        package var otherColor: UInt8
        /// 0 for both: the colour stays.
        package var on: Int
        package var off: Int

        /// The words of the colours, by their numbers. IEC 60839-11-5, osdp_LED.
        package static let words = ["black", "red", "green", "amber", "blue", "magenta", "cyan", "white"]

        package static func word(_ color: UInt8) -> String { Int(color) < words.count ? words[Int(color)] : "black" }

        package static let dark = Light(color: 0, otherColor: 0, on: 0, off: 0)
        /// A tap that is not passed on.
        static let refusal = Light(color: 1, otherColor: 0, on: 100, off: 100)
        /// The panel is silent.
        static let silence = Light(color: 3, otherColor: 0, on: 200, off: 1800)
    }

    /// A sound. `count` 0: until the next command.
    package struct Beep: Sendable, Equatable {
        package let on: Int
        package let off: Int
        package let count: Int
    }

    /// What is shown while the panel is silent. Outputs stay as they are: with some strikes, off is open.
    package enum Silence: String, Sendable, CaseIterable {
        /// What the panel has said last.
        case keep
        /// No light and no sound; the text is that of the settings.
        case dark
        /// The same, and the lights blink.
        case blink
    }

    private struct Timed<Value: Sendable>: Sendable {
        var value: Value
        let until: Int64
    }

    private struct Output: Sendable {
        var isOn = false
        /// When the output changes by itself.
        var until: Int64?
    }

    private var permanentLights: [Light]
    private var temporaryLights: [Timed<Light>?]
    private var refusal: Timed<Light>?
    private let silence: Silence
    private let silenceText: [UInt8]
    /// Whether the panel is silent, and what it has said is not shown.
    private var isSilent: Bool
    private var permanentText: [[UInt8]]
    private var temporaryText: Timed<[[UInt8]]>?
    private var outputStates: [Output]
    /// The sound that was ordered and is not told yet.
    private var beep: Beep?

    package static let mostColumns = 32

    init(leds: Int, rows: Int, outputs: Int, silence: Silence = .keep, silenceText: String = "") {
        self.silence = silence
        self.silenceText = Array(silenceText.utf8.prefix(Self.mostColumns))
        // Nothing was heard yet.
        isSilent = silence != .keep
        permanentLights = Array(repeating: .dark, count: leds)
        temporaryLights = Array(repeating: nil, count: leds)
        permanentText = Array(repeating: [], count: rows)
        outputStates = Array(repeating: Output(), count: outputs)
    }

    /// What each LED shows now.
    package var lights: [Light] {
        let silent: Light? = isSilent ? (silence == .blink ? .silence : .dark) : nil
        return permanentLights.indices.map {
            refusal?.value ?? silent ?? temporaryLights[$0]?.value ?? permanentLights[$0]
        }
    }

    /// The lines that are shown now, without spaces at their ends.
    package var text: [String] {
        let silent = isSilent ? permanentText.indices.map { $0 == 0 ? silenceText : [] } : nil
        return (silent ?? temporaryText?.value ?? permanentText).map { line in
            String(decoding: line.prefix(line.lastIndex { $0 != 0x20 }.map { $0 + 1 } ?? 0), as: UTF8.self)
        }
    }

    package var outputs: [Bool] { outputStates.map(\.isOn) }

    /// The panel has fallen silent, or speaks again.
    mutating func setSilent(_ isSilent: Bool) {
        guard silence != .keep, isSilent != self.isSilent else { return }
        self.isSilent = isSilent
        // A sound without an end has nobody who ends it.
        if isSilent { beep = Beep(on: 0, off: 0, count: 1) }
    }

    /// Takes the sound that is not told yet.
    mutating func takeBeep() -> Beep? {
        defer { beep = nil }
        return beep
    }

    /// When something changes by itself; nil: nothing does.
    var deadline: Int64? {
        let ends = [
            temporaryLights.lazy.compactMap { $0?.until }.min(), outputStates.lazy.compactMap(\.until).min(),
            refusal?.until, temporaryText?.until,
        ]
        return ends.lazy.compactMap(\.self).min()
    }

    /// Ends what has a limit before `now`; false: nothing has changed.
    mutating func expire(at now: Int64) -> Bool {
        guard let deadline, deadline <= now else { return false }
        for index in temporaryLights.indices where temporaryLights[index].map({ $0.until <= now }) ?? false {
            temporaryLights[index] = nil
        }
        for index in outputStates.indices where outputStates[index].until.map({ $0 <= now }) ?? false {
            outputStates[index] = Output(isOn: !outputStates[index].isOn)
        }
        if refusal.map({ $0.until <= now }) ?? false { refusal = nil }
        if temporaryText.map({ $0.until <= now }) ?? false { temporaryText = nil }
        return true
    }

    /// Blinks for a tap that is not passed on.
    mutating func refuse(at now: Int64) { refusal = Timed(value: .refusal, until: now + 1000) }

    // MARK: Commands

    /// osdp_LED: 14 bytes for each LED; false: there is no such LED.
    mutating func setLights(_ data: [UInt8], at now: Int64) -> Bool {
        var changed = self
        for start in stride(from: 0, to: data.count, by: 14) {
            let part = Array(data[start..<start + 14])
            let number = Int(part[1])
            guard part[0] == 0, changed.permanentLights.indices.contains(number) else { return false }
            func light(_ from: Int) -> Light {
                let (on, off) = (Int(part[from]) * 100, Int(part[from + 1]) * 100)
                return Light(
                    color: on == 0 && off > 0 ? part[from + 3] : part[from + 2],
                    otherColor: part[from + 3],
                    on: on == 0 || off == 0 ? 0 : on,
                    off: on == 0 || off == 0 ? 0 : off
                )
            }
            if part[2] == 1 { changed.temporaryLights[number] = nil }
            if part[2] == 2 {
                let time = Int64(part[7]) | Int64(part[8]) << 8
                changed.temporaryLights[number] = Timed(value: light(3), until: now + time * 100)
            }
            if part[9] == 1 { changed.permanentLights[number] = light(10) }
        }
        self = changed
        return true
    }

    /// osdp_BUZ: 5 bytes; false: there is no such buzzer.
    mutating func setBuzzer(_ data: [UInt8]) -> Bool {
        guard data[0] == 0 else { return false }
        // 1 is silence.
        beep =
            data[1] == 2
            ? Beep(on: Int(data[2]) * 100, off: Int(data[3]) * 100, count: Int(data[4]))
            : Beep(on: 0, off: 0, count: 1)
        return true
    }

    /// osdp_TEXT: 6 bytes and the characters; false: there is no such place.
    mutating func setText(_ data: [UInt8], at now: Int64) -> Bool {
        let (control, seconds) = (data[1], Int64(data[2]))
        var (row, column) = (Int(data[3]) - 1, Int(data[4]) - 1)
        guard data[0] == 0, (1...4).contains(control), permanentText.indices.contains(row),
            (0..<Self.mostColumns).contains(column)
        else { return false }
        let wraps = control == 2 || control == 4
        var lines = control > 2 ? temporaryText?.value ?? permanentText : permanentText
        for byte in data[6...] {
            if column == Self.mostColumns {
                guard wraps, row + 1 < lines.count else { break }
                row += 1
                column = 0
            }
            let missing = max(0, column + 1 - lines[row].count)
            lines[row] += [UInt8](repeating: 0x20, count: missing)
            lines[row][column] = (0x20..<0x7F).contains(byte) ? byte : 0x3F
            column += 1
        }
        if control > 2 {
            temporaryText = Timed(value: lines, until: now + seconds * 1000)
        } else {
            permanentText = lines
            temporaryText = nil
        }
        return true
    }

    /// osdp_OUT: 4 bytes for each output; false: there is no such output, or no such control.
    mutating func setOutputs(_ data: [UInt8], at now: Int64) -> Bool {
        var changed = outputStates
        for start in stride(from: 0, to: data.count, by: 4) {
            let number = Int(data[start])
            guard changed.indices.contains(number) else { return false }
            let time = Int64(data[start + 2]) | Int64(data[start + 3]) << 8
            switch data[start + 1] {
            case 0: break
            case 1: changed[number] = Output(isOn: false)
            case 2: changed[number] = Output(isOn: true)
            // A timed state is completed first: it ends in the state that is ordered.
            case 3 where changed[number].until == nil || !changed[number].isOn: changed[number] = Output(isOn: false)
            case 4 where changed[number].until == nil || changed[number].isOn: changed[number] = Output(isOn: true)
            case 3, 4: break
            case 5: changed[number] = Output(isOn: true, until: time == 0 ? nil : now + time * 100)
            case 6: changed[number] = Output(isOn: false, until: time == 0 ? nil : now + time * 100)
            default: return false
            }
        }
        outputStates = changed
        return true
    }
}
