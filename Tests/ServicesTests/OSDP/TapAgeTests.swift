// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Testing

@testable import OSDP

@Suite("The age of a tap, and the lines of the log about taps")
struct TapAgeTests {
    @Test(
        "the larger age of both clocks counts, and a time in the future is none",
        arguments: [
            // time, uptime, and the age at 1,000,000 of the wall and 50,000 of the machine
            (999_990, 49_990, 10), (975_000, 25_000, 25_000),
            // The wall was set back, or forward, in between.
            (1_900_000, 25_000, 25_000), (999_000, 25_000, 25_000), (10, 49_990, 999_990),
            // A badged without `uptime`, and one of another machine.
            (975_000, nil, 25_000), (999_990, 60_000, 10), (nil, 25_000, 25_000),
            (1_000_001, nil, nil), (1_000_001, 50_001, nil), (nil, nil, nil), (-5, -5, nil),
            (Int64.min, Int64.max, nil), (1_000_000, nil, 0),
        ] as [(Int64?, Int64?, Int64?)]
    )
    func age(_ time: Int64?, _ uptime: Int64?, _ expected: Int64?) {
        #expect(TapAge.of(time: time, uptime: uptime, wallClock: 1_000_000, bootClock: 50_000) == expected)
    }

    @Test("of each kind some lines come into the log in a minute, and the log says how many did not")
    func lines() {
        var limit = RepeatLimit(3)
        let flood = (0..<1000).compactMap { limit.addition("front", at: Int64($0) * 10) }
        #expect(flood == ["", "", "; more lines like this are left out for a minute"])
        #expect(limit.addition("yard", at: 10_000) == "")
        #expect(limit.addition("front", at: 59_999) == nil)
        #expect(limit.addition("front", at: 60_000) == " (998 lines like this were left out)")
        #expect(limit.addition("front", at: 60_001) == "")
    }

    @Test("a thousand kinds do not stay in the memory, and do not stop the lines")
    func kinds() {
        var limit = RepeatLimit(3)
        for kind in 0..<5000 { #expect(limit.addition("\(kind)", at: Int64(kind) * 100) == "") }
    }
}
