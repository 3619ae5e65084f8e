// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import RemoteDevices

@Suite("Connections that come to nothing") struct ConnectionFloodTests {
    private static let flooder = RemoteAddress.Host.four(0xC000_0211)
    private static let phone = RemoteAddress.Host.four(0xC000_0205)

    @Test("a device that is refused each second is no flood")
    func calm() {
        var flood = ConnectionFlood()
        for second in 0..<1000 { flood.add(Self.phone, at: Int64(second) * 1000) }
        #expect(flood.state(at: 1_000_000) == nil)
    }

    @Test("many connections are a flood with their number and main source, until there are few for ten seconds")
    func flood() {
        var flood = ConnectionFlood()
        for number in 1...500 {
            flood.add(number % 10 == 0 ? Self.phone : Self.flooder, at: Int64(number) * 10)
            #expect((flood.state(at: Int64(number) * 10) != nil) == (number >= ConnectionFlood.start))
        }
        #expect(flood.state(at: 5000) == ConnectionFlood.State(connections: 500, source: Self.flooder))
        // A few more belong to it.
        flood.add(Self.phone, at: 10_500)
        #expect(flood.state(at: 10_500)?.connections == 501)
        #expect(flood.state(at: 14_999) != nil)
        #expect(flood.state(at: 15_000) == nil)
        // The next one has a number of its own.
        for number in 1...ConnectionFlood.start { flood.add(Self.phone, at: 100_000 + Int64(number)) }
        let next = ConnectionFlood.State(connections: ConnectionFlood.start, source: Self.phone)
        #expect(flood.state(at: 100_200) == next)
    }

    @Test("a connection that was closed to make room is a flood by itself")
    func room() {
        var flood = ConnectionFlood()
        flood.add(Self.flooder, isFlood: true, at: 0)
        #expect(flood.state(at: 1) == ConnectionFlood.State(connections: 1, source: Self.flooder))
        #expect(flood.state(at: ConnectionFlood.window) == nil)
    }

    @Test("of more sources than are counted, the main one is still known")
    func sources() {
        var flood = ConnectionFlood()
        for number in 0..<100_000 {
            flood.add(number % 2 == 0 ? Self.flooder : .four(UInt32(number)), at: Int64(number / 1000))
        }
        #expect(flood.state(at: 100)?.source == Self.flooder)
    }
}
