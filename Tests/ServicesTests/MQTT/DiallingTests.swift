// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import TestSupport
import Testing

@testable import MQTT

@Suite("How a broker is reached", .timeLimit(.minutes(5)))
struct DiallingTests {
    @Test("of many addresses the first eight are tried", arguments: [8, 9])
    func addresses(place: Int) throws {
        let (listener, port) = try LoopbackSocket.listen(backlog: 1)
        defer { close(listener) }
        // Nobody listens there.
        let reserved = try ReservedPort()
        let addresses = UnsafeMutableBufferPointer<sockaddr_in>.allocate(capacity: 9)
        let list = UnsafeMutableBufferPointer<addrinfo>.allocate(capacity: 9)
        defer {
            addresses.deallocate()
            list.deallocate()
        }
        let (firstAddress, first) = (try #require(addresses.baseAddress), try #require(list.baseAddress))
        for index in 0..<9 {
            addresses.initializeElement(
                at: index,
                to: LoopbackSocket.address(port: index == place - 1 ? port : reserved.number)
            )
            var entry = addrinfo()
            entry.ai_family = AF_INET
            entry.ai_socktype = Int32(SOCK_STREAM.rawValue)
            entry.ai_addrlen = socklen_t(MemoryLayout<sockaddr_in>.size)
            entry.ai_addr = UnsafeMutableRawPointer(firstAddress + index).assumingMemoryBound(to: sockaddr.self)
            entry.ai_next = index < 8 ? first + index + 1 : nil
            list.initializeElement(at: index, to: entry)
        }
        switch Dialling.connect(first) {
        case .socket(let descriptor):
            close(descriptor)
            #expect(place == 8)
        case .failed(let reason):
            #expect(place == 9 && reason == errorText(ECONNREFUSED))
        }
    }

    @Test("an attempt whose look-up hangs ends, with the reason")
    func hangs() throws {
        var configuration = MQTTConfiguration()
        (configuration.host, configuration.port) = ("127.0.0.1", 1)
        var route = Route(configuration, firstTry: 0)
        try route.dial(1, will: .init(topic: "t", payload: []), try EventMailbox(), at: 1000)
        #expect(route.deadline == 121_000)
        #expect(route.delay(at: 120_999) == nil)
        #expect(route.delay(at: 121_000) == "the look-up of its name, or the connection, takes more than 120 s")
    }
}
