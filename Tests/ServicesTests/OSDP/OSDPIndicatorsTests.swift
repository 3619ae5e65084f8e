// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import OSDP

@Suite("Lamps and sounders of a panel")
struct OSDPIndicatorsTests {
    /// What happens until `end`, as time and state.
    private static func course(
        _ light: OSDPDisplay.Light,
        _ beep: OSDPDisplay.Beep?,
        until end: Int64
    ) -> [String] {
        var indicators = OSDPIndicators()
        indicators.show(light, beep, at: 1000)
        var now: Int64 = 1000
        var states: [String] = []
        while now <= end {
            states.append("\(now): \(indicators.lamps(at: now))\(indicators.isSounding(at: now) ? " beep" : "")")
            guard let next = indicators.deadline(after: now) else { break }
            #expect(next > now)
            now = next
        }
        return states
    }

    @Test("a light that stays and silence wake nobody up")
    func steady() {
        let amber = OSDPDisplay.Light(color: 3, otherColor: 0, on: 0, off: 0)
        #expect(Self.course(amber, nil, until: 9000) == ["1000: 3"])
    }

    @Test("a blinking light changes at its times")
    func blinking() {
        let light = OSDPDisplay.Light(color: 2, otherColor: 4, on: 300, off: 200)
        #expect(Self.course(light, nil, until: 2000) == ["1000: 2", "1300: 4", "1500: 2", "1800: 4", "2000: 2"])
    }

    @Test("a sound ends after its count, and one without a count goes on")
    func sound() {
        let beep = OSDPDisplay.Beep(on: 200, off: 100, count: 2)
        #expect(
            Self.course(.dark, beep, until: 9000) == ["1000: 0 beep", "1200: 0", "1300: 0 beep", "1500: 0", "1600: 0"]
        )
        #expect(Self.course(.dark, .init(on: 100, off: 0, count: 0), until: 9000) == ["1000: 0 beep"])
        #expect(Self.course(.dark, .init(on: 0, off: 0, count: 1), until: 9000) == ["1000: 0"])
    }

    @Test("the same light again goes on with its rhythm")
    func again() {
        var indicators = OSDPIndicators()
        let light = OSDPDisplay.Light(color: 1, otherColor: 0, on: 300, off: 300)
        indicators.show(light, nil, at: 0)
        indicators.show(light, nil, at: 250)
        #expect(indicators.deadline(after: 250) == 300)
    }
}
