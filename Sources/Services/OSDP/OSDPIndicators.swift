// SPDX-License-Identifier: GPL-3.0-or-later

/// What lamps and a sounder do at each moment for the first LED and the buzzer of a panel. Times are milliseconds.
package struct OSDPIndicators: Sendable {
    private var light = OSDPDisplay.Light.dark
    private var lightSince: Int64 = 0
    private var beep: OSDPDisplay.Beep?
    private var beepSince: Int64 = 0

    package init() {}

    /// Takes over what the panel shows. A light that stays goes on with its rhythm.
    package mutating func show(_ new: OSDPDisplay.Light, _ newBeep: OSDPDisplay.Beep?, at now: Int64) {
        if new != light {
            light = new
            lightSince = now
        }
        if let newBeep {
            beep = newBeep
            beepSince = now
        }
    }

    /// The lamps that are on: red 1, green 2, blue 4, which together are the number of the colour.
    package func lamps(at now: Int64) -> UInt8 {
        guard light.on > 0 else { return light.color & 7 }
        let phase = (now - lightSince) % Int64(light.on + light.off)
        return (phase < light.on ? light.color : light.otherColor) & 7
    }

    package func isSounding(at now: Int64) -> Bool {
        guard let beep, beep.on > 0 else { return false }
        let (period, passed) = (Int64(beep.on + beep.off), now - beepSince)
        guard beep.count == 0 || passed / period < beep.count else { return false }
        return passed % period < beep.on
    }

    /// When something changes by itself; nil: nothing does.
    package func deadline(after now: Int64) -> Int64? {
        var next: [Int64] = []
        if light.on > 0 { next.append(Self.change(now, lightSince, light.on, light.off)) }
        if let beep, beep.on > 0, beep.count > 0 || beep.off > 0 {
            let period = Int64(beep.on + beep.off)
            if beep.count == 0 || (now - beepSince) / period < beep.count {
                next.append(Self.change(now, beepSince, beep.on, beep.off))
            }
        }
        return next.min()
    }

    /// The next end of one of two times that take turns.
    private static func change(_ now: Int64, _ since: Int64, _ on: Int, _ off: Int) -> Int64 {
        let passed = now - since
        let begun = passed - passed % Int64(on + off)
        return since + begun + Int64(passed - begun < on ? on : on + off)
    }
}
