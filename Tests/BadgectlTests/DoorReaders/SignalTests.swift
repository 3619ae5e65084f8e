// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Testing

@testable import badgectl

@Suite("badgectl: signals over time", .timeLimit(.minutes(5)))
struct SignalTests {
    @Test("the name of a reader cannot break the image, and the samples are bounded")
    func hostilePlot() {
        var history = SignalHistory()
        let name = "<script>&\u{1B}[2J"
        for index in 0..<50_000 {
            let id = "r\(index % 30)"
            history.add(DoorReader(id: id, profile: "seos", name: name, level: -400, lastRSSI: 127), at: Int64(index))
        }
        #expect(history.tracks.count == 20 && history.tracks.values.allSatisfy { $0.samples.count <= 20_000 })
        let svg = SignalPlot(history).svg ?? ""
        #expect(!svg.contains("<script>") && !svg.contains("\u{1B}") && svg.contains("&lt;script&gt;&amp;"))
        #expect(SignalPlot(SignalHistory()).svg == nil)
    }

    @Test("the line of a reader has a mark for each of the last 30 seconds")
    func line() {
        var history = SignalHistory()
        for (time, level) in [(0, -40.0), (31_000, -100), (45_000, -70), (60_000, -40)] as [(Int64, Double)] {
            history.add(DoorReader(id: "a", profile: "seos", level: level, lastRSSI: Int(level)), at: time)
        }
        let line = Array(history.line(of: "a", at: 60_000))
        #expect(line.count == 30 && line.count { $0 != "·" } == 3)
        #expect(line[29] == "█" && line[14] == "▅" && line[0] == "▁")
        #expect(history.line(of: "b", at: 60_000) == String(repeating: "·", count: 30))
        history.dropOld(at: 60_000)
        #expect(history.tracks["a"]?.samples.count == 3)
    }
}
