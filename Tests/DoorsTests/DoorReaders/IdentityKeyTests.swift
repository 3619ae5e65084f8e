// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import DoorReaders
import Testing
import Text

@Suite("Readers whose address an identity resolving key resolves") struct IdentityKeyTests {
    /// The sample of Bluetooth Core, Vol 3, Part H, appendix D.7.
    private static let bytes = Hex.decode("ec0234a357c8ad05341010a60a397d9b", limit: 16) ?? []
    private static let sample = DeviceAddress("70:81:94:0D:FB:AA", isRandom: true)

    private static func key(_ name: String = "front", _ bytes: [UInt8] = bytes) throws -> IdentityKey {
        let key = IdentityKey(name, Secret(bytes))
        return try #require(key)
    }

    /// The address of a key with this random part, whose two highest bits are 01.
    private static func address(_ random: UInt64, _ bytes: [UInt8] = bytes) throws -> DeviceAddress {
        let random = random & 0x3FFFFF | 0x400000
        let block = [UInt8](repeating: 0, count: 13) + [16, 8, 0].map { UInt8(truncatingIfNeeded: random >> $0) }
        let hash = try AES.encrypt(block, key: Secret(bytes)).suffix(3).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return DeviceAddress(bits: random << 24 | hash, isRandom: true)
    }

    @Test("the sample of the specification is resolved, with the key in both orders")
    func sample() throws {
        let sample = try #require(Self.sample)
        #expect(try Self.key().resolve(sample) == .mostSignificantFirst)
        #expect(try Self.key("x", Self.bytes.reversed()).resolve(sample) == .leastSignificantFirst)
        #expect(try Self.address(0x708194) == sample)
    }

    @Test("other addresses are not resolved", arguments: [0, 1, 2, 24, 25, 30, 46, 47])
    func others(_ bit: Int) throws {
        let sample = try #require(Self.sample)
        #expect(try Self.key().resolve(DeviceAddress(bits: sample.bits ^ 1 << bit, isRandom: true)) == nil)
        #expect(try Self.key().resolve(DeviceAddress(bits: sample.bits, isRandom: false)) == nil)
    }

    @Test("a key has 16 bytes", arguments: [0, 15, 17, 32])
    func length(_ count: Int) {
        let key = IdentityKey("x", Secret([UInt8](repeating: 1, count: count)))
        #expect(key == nil)
    }

    @Test("a reader keeps its identity under each of its addresses, at once, and whatever its name")
    func tracked() throws {
        let tracker = ReaderTracker()
        tracker.use([try Self.key()])
        for (number, time) in [(1, 0), (2, 100), (3, 90_000)] as [(UInt64, Milliseconds)] {
            tracker.receive(Adverts.seos(), from: try Self.address(number), -60, at: time)
        }
        #expect(tracker.readers.map(\.id) == ["seos-irk-front"])
        #expect(tracker.readers.first?.adverts == 3)
        #expect(tracker.readers.first?.address == (try Self.address(3)))
        #expect(tracker.keyOrders == ["front": .mostSignificantFirst])
        // Another reader with a changing address.
        let other = try Self.address(1, [UInt8](repeating: 7, count: 16))
        tracker.receive(Adverts.seos(), from: other, -60, at: 90_100)
        #expect(tracker.readers.count == 2)
    }

    @Test("a reader that is received already gets its identity when the key comes, and loses it with the key")
    func changed() throws {
        let tracker = ReaderTracker()
        var events: [String] = []
        tracker.observer = { change, reader in if change != .updated { events.append("\(change) \(reader.id)") } }
        func receive(at time: Milliseconds) throws {
            tracker.receive(Adverts.seos(), from: try Self.address(1), -60, at: time)
        }
        try receive(at: 0)
        tracker.use([try Self.key()])
        try receive(at: 100)
        // The same keys again change nothing.
        tracker.use([try Self.key()])
        tracker.use([])
        try receive(at: 200)
        #expect(
            events == [
                "appeared seos-passing-1", "lost seos-passing-1", "appeared seos-irk-front", "lost seos-irk-front",
                "appeared seos-passing-3",
            ]
        )
        #expect(tracker.keyOrders.isEmpty)
    }
}
