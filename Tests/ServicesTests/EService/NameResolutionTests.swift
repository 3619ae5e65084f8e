// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Synchronization
import Testing
import Threads

@testable import EService
@testable import HTTP

/// A name service that does not answer until the test ends.
private final class HangingNames: Sendable {
    let hosts = Mutex<[String]>([])
    private let isAsked = OneShot<Bool>()
    private let release = DispatchSemaphore(value: 0)

    /// Looks up `localhost` only.
    var lookUp: @Sendable (String) -> [String] {
        { [self] host in
            hosts.withLock { $0.append(host) }
            if host == "localhost" { return HostAddresses.system(host) }
            isAsked.fill(true)
            release.wait()
            release.signal()
            return []
        }
    }

    func asked() async { _ = await isAsked.value(whenCancelled: false) }

    func end() { release.signal() }
}

@Suite("Name resolution of online authentications", .timeLimit(.minutes(5)))
struct NameResolutionTests {
    private let names = HangingNames()

    private func session(_ url: String, _ limit: Duration = .seconds(600)) throws -> EServiceSession {
        var configuration = try ServiceFixture.configuration()
        configuration.lookUp = names.lookUp
        configuration.limits.connect = limit
        return EServiceSession(tcTokenURL: url, isDeveloperMode: false, configuration)
    }

    @Test("a cancelled authentication does not wait for a name service that hangs")
    func cancellation() async throws {
        defer { names.end() }
        let session = try session("https://hangs.example/token")
        let request = Task { () -> FailureCode? in
            do throws(EServiceFailure) {
                _ = try await session.request()
                return nil
            } catch { return error.reason }
        }
        await names.asked()
        request.cancel()
        #expect(await request.value == .userCancelled)
        #expect(await session.fail(.ok) == nil)
        #expect(await session.refreshAddress(after: .ok).url == nil)
    }

    @Test("the time limit of a connection holds while the name service hangs")
    func limit() async throws {
        defer { names.end() }
        let session = try session("https://hangs.example/token", .milliseconds(1))
        await #expect(throws: EServiceFailure.self) { try await session.request() }
    }

    @Test("after a cancellation a name that is not known yet ends the way back, without waiting for the name service")
    func refreshAddress() async throws {
        defer { names.end() }
        let canceller = HTTPCanceller()
        let addresses = HostAddresses(names.lookUp, canceller)
        #expect(try !addresses.find("localhost", by: .now + .seconds(600)).isEmpty)
        canceller.cancel()
        canceller.reset()
        #expect(throws: HTTPFault.timeout) { try addresses.find("hangs.example", by: .now + .seconds(600)) }
        // The look-up runs on a thread, which may begin after the end of `find`.
        await names.asked()
        // A host that was found before needs no name service.
        #expect(try !addresses.find("localhost", by: .now + .seconds(600)).isEmpty)
        #expect(names.hosts.withLock { $0 } == ["localhost", "hangs.example"])
    }

    @Test("look-ups that hang are bounded, and further ones fail at once")
    func bound() throws {
        defer { names.end() }
        let addresses = HostAddresses(names.lookUp, HTTPCanceller(), slots: HostAddresses.Slots())
        for number in 0..<(2 * HostAddresses.Slots.maximum) { addresses.begin("host-\(number).example") }
        #expect(throws: HTTPFault.self) { try addresses.find("host.example", by: .now + .seconds(600)) }
        #expect(names.hosts.withLock { $0.count } <= HostAddresses.Slots.maximum)
    }

    @Test("the look-ups of some users leave room for those of others, and root always has room")
    func shares() throws {
        defer { names.end() }
        let slots = HostAddresses.Slots()
        func fault(_ uid: UInt32, begin count: Int) throws -> HTTPFault? {
            let addresses = HostAddresses(names.lookUp, HTTPCanceller(), slots: slots)
            return Requester.$uid.withValue(uid) {
                for number in 0..<count { addresses.begin("host-\(number).example") }
                do throws(HTTPFault) {
                    _ = try addresses.find("host.example", by: .now)
                    return nil
                } catch {
                    return error
                }
            }
        }
        let full = HTTPFault.unreachable(
            "too many look-ups of names wait for the name service: try again when it answers"
        )
        for uid in 1001...1003 as ClosedRange<UInt32> {
            // A cancelled workflow leaves its look-up behind.
            #expect(try fault(uid, begin: 70) == full)
            #expect(try fault(uid + 1, begin: 0) == .timeout)
        }
        #expect(try fault(1004, begin: 70) == full)
        #expect(try fault(1005, begin: 0) == full)
        #expect(try fault(0, begin: 0) == .timeout)
    }

    @Test("addresses need no look-up, and an unknown name is an error", arguments: ["127.0.0.1", "::1", "1.2.3.4"])
    func literals(host: String) throws {
        let addresses = HostAddresses({ _ in [] }, HTTPCanceller())
        #expect(try addresses.find(host, by: .now + .seconds(600)).isEmpty)
        #expect(throws: HTTPFault.unreachable("Could not resolve host: a.example")) {
            try addresses.find("a.example", by: .now + .seconds(600))
        }
    }
}
