// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Testing

@Suite("Fragments of long advertisements") struct FragmentTests {
    /// What is given on, fragments as "-".
    private struct Stage {
        var fragments = FragmentAssembly()
        var whole: [[UInt8]] = []
        var parts = 0

        mutating func receive(
            _ data: [UInt8],
            _ part: AdvertisingReport.Part,
            from number: UInt64 = 1,
            set: UInt8? = 0,
            adapter: Int = 0
        ) {
            let report = AdvertisingReport(address: .door(number), rssi: -60, advertisingSet: set, part: part)
            var (whole, parts) = (whole, parts)
            fragments.add(report, data.span, adapter: adapter) { report, data in
                if report.part == .whole { whole.append(data.indices.map { data[$0] }) } else { parts += 1 }
            }
            (self.whole, self.parts) = (whole, parts)
        }
    }

    private let data = Adverts.seos(7, name: "Lobby")

    @Test("parts become one, also while other senders, sets and adapters send theirs; each counts for strength")
    func joins() {
        var stage = Stage()
        stage.receive(Array(data[..<5]), .more)
        stage.receive(Array(data[..<9]), .more, from: 2)
        stage.receive([1, 2], .more, set: 1)
        stage.receive([3], .more, adapter: 1)
        stage.receive([9, 9], .whole, from: 3)
        // A legacy advertisement of the same sender is one by itself.
        stage.receive([8], .whole, set: nil)
        stage.receive(Array(data[5..<7]), .more)
        stage.receive(Array(data[9...]), .whole, from: 2)
        stage.receive(Array(data[7...]), .whole)
        #expect(stage.whole == [[9, 9], [8], data, data])
        #expect(stage.parts == 5)
        stage.receive([4], .whole)
        #expect(stage.whole.last == [4])
    }

    @Test("where the controller has lost the end, the structures before it count")
    func cut() {
        var stage = Stage()
        // Flags and UUID take 21 bytes.
        stage.receive(Array(data[..<23]), .more)
        stage.receive([], .cut)
        #expect(stage.whole == [Array(data[..<21])])
        stage.receive(data, .cut)
        #expect(stage.whole.last == data)
    }

    @Test("beginnings without ends cost others theirs, oldest first, and no more")
    func bounded() {
        var stage = Stage()
        for number in 0..<UInt64(FragmentAssembly.maximumPending + 1) { stage.receive([1], .more, from: number) }
        stage.receive([2], .whole, from: 0)
        stage.receive([2], .whole, from: 1)
        #expect(stage.whole == [[2], [1, 2]])
    }

    @Test("what is longer than any advertisement is none, and its tail is not read as one")
    func tooLong() {
        var stage = Stage()
        for _ in 0..<7 { stage.receive([UInt8](repeating: 0, count: 229), .more) }
        stage.receive([UInt8](repeating: 0, count: 229), .whole)
        #expect(stage.whole.isEmpty)
        stage.receive([2], .whole)
        #expect(stage.whole == [[2]])
    }
}
