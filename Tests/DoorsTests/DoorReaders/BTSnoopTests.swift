// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import TestSupport
import Testing
import Text

@Suite("Capture files", .timeLimit(.minutes(5))) struct BTSnoopTests {
    private func events(
        _ file: [UInt8],
        isComplete expected: Bool = true
    ) throws -> [(time: Int64, adapter: Int, event: [UInt8])] {
        var events: [(time: Int64, adapter: Int, event: [UInt8])] = []
        let isComplete = try BTSnoop.forEachEvent(in: file.span) { events.append(($0, $1, Array(file[$2]))) }
        #expect(isComplete == expected)
        return events
    }

    @Test("written records are read again")
    func round() throws {
        let event = HCIEvent.event(AdvertisingReport(address: .door(1), rssi: -60), data: Adverts.seos())
        let file = BTSnoop.header + BTSnoop.record(event: event, microseconds: 1_700_000_000_123_456)
        let read = try events(file + BTSnoop.record(event: [0x0E, 0], microseconds: -1))
        #expect(read.map(\.time) == [1_700_000_000_123_456, -1])
        #expect(read.map(\.event) == [event, [0x0E, 0]])
    }

    @Test("an event in the format of btmon is read, with its adapter and time")
    func monitor() throws {
        let head = Array("btsnoop\0".utf8) + hex("00000001000007d1")
        // Opcode 3 is an event, 2 a command; the adapter is in the upper half.
        let event = "00000004000000040001000300000000" + "00e03ab44a676000" + "3e020200"
        let command = "00000003000000030001000200000000" + "00e03ab44a676000" + "0b2002"
        let read = try events(head + hex(command + event))
        #expect(read.count == 1)
        #expect(read.first?.adapter == 1)
        // The record has the first second of the year 2000.
        #expect(read.first?.time == 946_684_800_000_000)
        #expect(read.first?.event == [0x3E, 2, 2, 0])
    }

    @Test("each fault has an error, and records before a truncated one are read")
    func faults() throws {
        let file = BTSnoop.header + BTSnoop.record(event: [0x3E, 2, 2, 0], microseconds: 0)
        for length in 0..<16 {
            #expect(throws: Malformed("no btsnoop file")) { try events(Array(file[..<length])) }
        }
        for length in 17..<file.count { #expect(try events(Array(file[..<length]), isComplete: false).isEmpty) }
        #expect(try events(file + file[16...].dropLast(), isComplete: false).count == 1)
        #expect(try events(Array(file[..<16])).isEmpty)
        #expect(throws: Malformed("the data link 9 is unknown, not 1001, 1002 or 2001")) {
            try events(Array(file[..<12]) + [0, 0, 0, 9])
        }
        var huge = file
        huge[16 + 4] = 0x7F
        #expect(try events(huge, isComplete: false).isEmpty)
    }
}
