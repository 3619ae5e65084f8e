// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Testing

@Suite("Fragments of extended advertisements", .timeLimit(.minutes(5))) struct FragmentTests {
    /// Records what the assembly passes on.
    private struct Recorder {
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

    @Test("fragments are joined, apart for each sender, set and adapter, and each one has a signal strength")
    func joins() {
        var recorder = Recorder()
        recorder.receive(Array(data[..<5]), .more)
        recorder.receive(Array(data[..<9]), .more, from: 2)
        recorder.receive([1, 2], .more, set: 1)
        recorder.receive([3], .more, adapter: 1)
        recorder.receive([9, 9], .whole, from: 3)
        // A legacy advertisement of the same sender is passed on as it is.
        recorder.receive([8], .whole, set: nil)
        recorder.receive(Array(data[5..<7]), .more)
        recorder.receive(Array(data[9...]), .whole, from: 2)
        recorder.receive(Array(data[7...]), .whole)
        #expect(recorder.whole == [[9, 9], [8], data, data])
        #expect(recorder.parts == 5)
        recorder.receive([4], .whole)
        #expect(recorder.whole.last == [4])
    }

    @Test("when the controller has lost the end, the complete structures before it are used")
    func cut() {
        var recorder = Recorder()
        // Flags and UUID take 21 bytes.
        recorder.receive(Array(data[..<23]), .more)
        recorder.receive([], .cut)
        #expect(recorder.whole == [Array(data[..<21])])
        recorder.receive(data, .cut)
        #expect(recorder.whole.last == data)
    }

    @Test("when too many advertisements are incomplete, the oldest one is dropped")
    func bounded() {
        var recorder = Recorder()
        for number in 0..<UInt64(FragmentAssembly.maximumPending + 1) { recorder.receive([1], .more, from: number) }
        recorder.receive([2], .whole, from: 0)
        recorder.receive([2], .whole, from: 1)
        #expect(recorder.whole == [[2], [1, 2]])
    }

    @Test("fragments that are longer than any advertisement are dropped")
    func tooLong() {
        var recorder = Recorder()
        for _ in 0..<7 { recorder.receive([UInt8](repeating: 0, count: 229), .more) }
        recorder.receive([UInt8](repeating: 0, count: 229), .whole)
        #expect(recorder.whole.isEmpty)
        recorder.receive([2], .whole)
        #expect(recorder.whole == [[2]])
    }
}
