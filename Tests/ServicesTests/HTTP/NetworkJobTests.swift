// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Glibc
import Host
import Synchronization
import TestSupport
import Testing
import Text
import Transfers

@testable import HTTP

/// What a run of badged-network can do that somebody has taken over. docs/hardening.md, badged-network.
@Suite("badged-network in strange hands", .timeLimit(.minutes(5))) @Loop struct NetworkJobTests {
    nonisolated private static let limits = HTTPLimits(connect: .seconds(240), transfer: .seconds(240))
    nonisolated private static let response = HTTPResponse(status: 200, body: Array("fine".utf8))

    private static var request: HTTPRequest {
        get throws { HTTPRequest(address: try #require(WebAddress("https://service.example/"))) }
    }

    private func session(over job: NetworkJob) -> HTTPSession {
        HTTPSession(job, preSharedKey: nil, isDeveloperMode: false, Self.limits, nil, log: { _ in })
    }

    /// The fault with which a transfer ends.
    private func fault(_ session: HTTPSession, _ request: HTTPRequest? = nil) async throws -> HTTPFault? {
        let request = try request ?? Self.request
        do throws(HTTPFault) {
            _ = try await session.run(request)
            return nil
        } catch {
            return error
        }
    }

    enum Misdeed: CaseIterable {
        case nothing, cut, endless, tooLong, malformed, unknownKind, otherNumber, twoReports, zeros
        /// An answer to a question that was not asked.
        case heartbeat
    }

    @Test("a message that is not allowed ends the run and the transfer, and no other", arguments: Misdeed.allCases)
    func messages(misdeed: Misdeed) async throws {
        let standIn = try StandIn { request in
            guard case .transfer(let transfer) = request else { return [] }
            let good = NetworkReport(number: transfer.number, .success(Self.response)).bytes
            switch misdeed {
            case .nothing: return [.end]
            case .cut: return [.bytes([0, 0, 0, 100, 1, 2, 3]), .end]
            case .endless: return [.bytes([0xFF, 0xFF, 0xFF, 0xFF]), .bytes([UInt8](repeating: 7, count: 1 << 20))]
            case .tooLong: return [.bytes([0x7F, 0, 0, 0])]
            case .malformed: return [StandIn.framed(Array(good.dropLast()))]
            case .unknownKind: return [StandIn.framed([9] + good.dropFirst())]
            case .otherNumber:
                return [StandIn.framed(NetworkReport(number: transfer.number + 1, .success(Self.response)).bytes)]
            case .twoReports: return [StandIn.framed(good), StandIn.framed(good)]
            case .zeros: return [.bytes([0, 0, 0, 0])]
            case .heartbeat: return [StandIn.framed(Heartbeat.message)]
            }
        }
        let session = HTTPSession(standIn.network, .system, Self.limits)
        var found = try await fault(session)
        // The second report of the same transfer ends the run at the latest when the next transfer begins.
        while found == nil, misdeed == .twoReports { found = try await fault(session) }
        let words: Phrase =
            misdeed == .nothing || misdeed == .cut
            ? "badged-network has ended unexpectedly" : "badged-network has sent a message that is not allowed"
        // What the run sent to the server before its end is not known.
        #expect(found == .lost(words) || misdeed == .twoReports && found == .unavailable(words))
        #expect(try await fault(session) == .unavailable(words), "a run that has ended is not started again")
    }

    @Test("an end between two transfers is known at once", .timeLimit(.minutes(1)))
    func endsBetween() async throws {
        let standIn = try StandIn { request in
            guard case .transfer(let transfer) = request else { return [] }
            return [StandIn.framed(NetworkReport(number: transfer.number, .success(Self.response)).bytes), .end]
        }
        let job = NetworkJob(standIn.network)
        let session = session(over: job)
        #expect(try await fault(session) == nil)
        #expect(await job.interruption() == .lost("badged-network has ended unexpectedly"))
    }

    enum Lie: CaseIterable {
        case otherCertificate, shortKey, shortAgreement, noAgreement, notResumed, otherVersion

        var handshake: TLSHandshake {
            TLSHandshake(
                certificate: self == .otherCertificate ? [1] : [0x30, 0],
                key: .init(isElliptic: false, bits: self == .shortKey ? 2048 : 3072),
                ephemeralKey: self == .noAgreement
                    ? nil : .init(isElliptic: true, bits: self == .shortAgreement ? 224 : 256),
                isResumed: false,
                version: self == .otherVersion ? 0x0304 : 0x0303
            )
        }

        var fault: TLSFault {
            switch self {
            case .otherCertificate: .notListed
            case .shortKey: .certificateKeyTooShort(bits: 2048)
            case .shortAgreement: .ephemeralKeyTooShort(bits: 224)
            case .noAgreement: .ephemeralKeyTooShort(bits: 0)
            case .notResumed: .notResumed
            case .otherVersion: .certificate("the connection has not TLS 1.2")
            }
        }
    }

    @Test("an answer over a connection that breaks a rule is refused by badged as well", arguments: Lie.allCases)
    func lies(lie: Lie) async throws {
        let standIn = try StandIn { request in
            guard case .transfer(let transfer) = request else { return [] }
            let report = NetworkReport(
                number: transfer.number,
                .success(Self.response),
                handshakes: [lie.handshake]
            )
            return [StandIn.framed(report.bytes)]
        }
        let session = session(over: NetworkJob(standIn.network))
        session.conditions.requiresResumption = lie == .notResumed
        let hash = try DigestAlgorithm.sha256.hash([0x30, 0])
        session.conditions.listed = TLSConditions.Listed(digest: .sha256, hashes: [hash])
        guard case .tls(let found, _) = try await fault(session) else { throw Unexpected("the answer was taken") }
        #expect(found == lie.fault)
        #expect(session.certificates == [lie.handshake.certificate])
    }

    @Test("an answer that is longer than was asked for, or a document that was not asked for, is refused")
    func answers() async throws {
        let standIn = try StandIn { request in
            guard case .transfer(let transfer) = request else { return [] }
            var response = HTTPResponse(status: 200)
            response.document = .success(XMLElement(name: "a"))
            let result = transfer.request.maximumLength == 3 ? Self.response : response
            return [StandIn.framed(NetworkReport(number: transfer.number, .success(result)).bytes)]
        }
        let session = HTTPSession(standIn.network, .system, Self.limits)
        var short = try Self.request
        short.maximumLength = 3
        #expect(try await fault(session, short) == .tooLarge)
        #expect(try await fault(session) == .tooLarge)
    }

    @Test("CANCEL does not wait for a run that says nothing, and the next transfer goes on")
    func cancel() async throws {
        let (asked, arrival) = AsyncStream.makeStream(of: Bool.self)
        let standIn = try StandIn { request in
            switch request {
            case .open, .listen, .askOwner: return []
            case .stop:
                arrival.yield(false)
                return []
            case .transfer(let transfer):
                guard transfer.number > 1 else {
                    arrival.yield(true)
                    return []
                }
                // The report of the transfer that was given up comes late.
                let old = NetworkReport(number: 1, .failure(.cancelled))
                let new = NetworkReport(number: transfer.number, .success(Self.response))
                return [StandIn.framed(old.bytes), StandIn.framed(new.bytes)]
            }
        }
        let session = HTTPSession(standIn.network, .system, Self.limits)
        let transfer = Task { try await fault(session) }
        var events = asked.makeAsyncIterator()
        #expect(await events.next() == true)
        transfer.cancel()
        #expect(try await transfer.value == .cancelled)
        #expect(await events.next() == false, "badged-network is told to stop")
        #expect(try await session.run(Self.request) == Self.response)
    }

    @Test("a run that says nothing is ended some time after the limits of its transfer")
    func silence() async throws {
        let standIn = try StandIn { (_: NetworkRequest) in [] }
        let short = HTTPLimits(connect: .milliseconds(1), transfer: .milliseconds(1))
        let job = NetworkJob(standIn.network, grace: 1)
        let session = HTTPSession(
            job,
            preSharedKey: nil,
            isDeveloperMode: false,
            short,
            nil,
            log: { _ in }
        )
        #expect(try await fault(session) == .lost("badged-network does not answer"))
    }

    /// Questions follow one another without a pause.
    private static func questions(answer: Int64) -> Heartbeat.Times {
        var times = Heartbeat.Times()
        times.interval = 0
        times.answer = answer
        times.start = answer
        return times
    }

    @Test("a run that hangs in a transfer is ended long before the limits of the transfer")
    func hang() async throws {
        let standIn = try StandIn(lives: { false }, { _ in [] })
        var network = standIn.network
        network.heartbeat = Self.questions(answer: 1)
        let job = NetworkJob(network)
        let session = session(over: job)
        #expect(try await fault(session) == .lost("badged-network does not answer"))
    }

    @Test("badged-network answers before, during and after a transfer, which goes on")
    func answersAlways() async throws {
        #expect(TransferJob.fault == nil)
        let (badged, program) = try UnixSocket.pair()
        let served = OneShot<Void>()
        _ = startThread("badged-network") {
            TransferJob(socket: program).serve()
            close(program)
            served.fill(())
        }
        let (listener, port) = try LoopbackSocket.listen()
        let page = try #require(WebAddress("http://127.0.0.1:\(port)/"))
        let transfer = NetworkRequest.Transfer(
            number: 7,
            session: 1,
            HTTPRequest(address: page),
            proxy: nil,
            connectMilliseconds: 240_000,
            totalMilliseconds: 240_000
        )
        let report: NetworkReport = try await withCheckedThrowingContinuation { continuation in
            _ = startThread("badged") {
                continuation.resume(with: Result { try Self.converse(badged, listener, transfer) })
            }
        }
        #expect(report.number == 7)
        #expect(try report.result.get().body == Array("fine".utf8))
        close(badged)
        close(listener)
        await served.value(whenCancelled: ())
    }

    /// Asks badged-network before a transfer, while its server lets it wait, and after it. Returns the report.
    nonisolated private static func converse(
        _ badged: Int32,
        _ listener: Int32,
        _ transfer: NetworkRequest.Transfer
    ) throws -> NetworkReport {
        func send(_ message: [UInt8]) {
            guard case .bytes(let bytes) = StandIn.framed(message) else { return }
            BlockingSocket.send(bytes, to: badged)
        }
        func receive() throws -> [UInt8] {
            let length = try #require(BlockingSocket.receive(4, from: badged))
            return try #require(BlockingSocket.receive(length.reduce(0) { $0 << 8 | Int($1) }, from: badged))
        }
        func ask() throws {
            send(Heartbeat.message)
            #expect(try receive() == Heartbeat.message)
        }
        try ask()
        send(NetworkRequest.open(session: 1, .system).bytes)
        send(NetworkRequest.transfer(transfer).bytes)
        let server = accept(listener, nil, nil)
        defer { close(server) }
        for _ in 0..<3 { try ask() }
        BlockingSocket.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine".utf8, to: server)
        let report = try #require(NetworkReport(bytes: try receive()))
        try ask()
        return report
    }

    @Test(
        "a dialogue leaves a run for the next one, which starts its own if that run has ended",
        arguments: [true, false]
    )
    func spare(lives: Bool) async throws {
        let (started, start) = AsyncStream.makeStream(of: Int.self)
        let count = Mutex(0)
        let standIn = try StandIn(onStart: { number in
            count.withLock { $0 = number }
            start.yield(number)
            return lives || number != 2
        }) { request in
            guard case .transfer(let transfer) = request else { return [] }
            return [StandIn.framed(NetworkReport(number: transfer.number, .success(Self.response)).bytes)]
        }
        var starts = started.makeAsyncIterator()
        var network = standIn.network
        let spare = SpareRun()
        network.spare = spare
        /// - Returns: how many runs there were when the server had answered.
        func dialogue() async throws -> Int {
            let job = NetworkJob(network)
            let session = HTTPSession(job, preSharedKey: nil, isDeveloperMode: true, Self.limits, nil, log: { _ in })
            defer { job.close() }
            #expect(try await fault(session) == nil)
            return count.withLock { $0 }
        }
        #expect(spare.run == nil, "no run waits before the first dialogue")
        #expect(try await dialogue() == 1)
        #expect(await starts.next() == 1)
        #expect(await starts.next() == 2, "a run waits after it")
        let run = try #require(spare.run)
        if !lives {
            var end = pollfd(fd: run.socket, events: Int16(POLLIN), revents: 0)
            #expect(poll(&end, 1, -1) == 1)
        }
        #expect(try await dialogue() == (lives ? 2 : 3))
        #expect(await starts.next() == 3, lives ? "the next run for a dialogue to come" : "a run instead of that one")
        if !lives { #expect(await starts.next() == 4) }
        #expect(spare.run != nil)
    }

    @Test("a dialogue starts a run of its own if the one that waits hangs, and the hung one gets no request")
    func hungSpare() async throws {
        let (started, start) = AsyncStream.makeStream(of: Int.self)
        let gate = Gate()
        let requests = Mutex(0)
        let opened = Mutex<[UInt8]>([])
        let standIn = try StandIn(onStart: { number in
            start.yield(number)
            if number == 2 { gate.wait() }
            return number != 2
        }) { request in
            if case .open(let session, _) = request { opened.withLock { $0.append(session) } }
            guard case .transfer(let transfer) = request else { return [] }
            requests.withLock { $0 += 1 }
            return [StandIn.framed(NetworkReport(number: transfer.number, .success(Self.response)).bytes)]
        }
        var starts = started.makeAsyncIterator()
        var network = standIn.network
        network.spare = SpareRun()
        network.heartbeat.start = 1
        network.heartbeat.interval = 240_000
        for expected in [1, 2] {
            let job = NetworkJob(network)
            // Two sessions, which the next run has to know as well.
            let sessions = (0..<2).map { _ in
                HTTPSession(job, preSharedKey: nil, isDeveloperMode: true, Self.limits, nil, log: { _ in })
            }
            // Both transfers wait at once.
            async let first = fault(sessions[0])
            async let second = fault(sessions[1])
            #expect(try await first == nil)
            #expect(try await second == nil)
            #expect(requests.withLock { $0 } == 2 * expected)
            job.close()
            // The run of the dialogue, and the one that waits for the next dialogue.
            #expect(await starts.next() == 2 * expected - 1)
            #expect(await starts.next() == 2 * expected)
        }
        #expect(opened.withLock { $0 } == [1, 2, 1, 2])
        gate.open()
    }

    @Test("more certificates than a server can have are refused")
    func manyCertificates() async throws {
        let standIn = try StandIn { request in
            guard case .transfer(let transfer) = request else { return [] }
            let new = TLSHandshake(
                certificate: [UInt8(transfer.number)],
                key: .init(isElliptic: false, bits: 3072),
                ephemeralKey: .init(isElliptic: true, bits: 256),
                isResumed: false,
                version: 0x0303
            )
            let report = NetworkReport(number: transfer.number, .success(Self.response), handshakes: [new])
            return [StandIn.framed(report.bytes)]
        }
        let job = NetworkJob(standIn.network)
        let session = HTTPSession(job, preSharedKey: nil, isDeveloperMode: false, Self.limits, nil, log: { _ in })
        for _ in 0..<64 { #expect(try await fault(session) == nil) }
        #expect(try await fault(session) == .tls(nil, "it has shown more than 64 certificates"))
    }

    enum Listener: CaseIterable { case none, file, elsewhere, otherPort, many }

    @Test(
        "only sockets that listen where badged wants them are taken as the browser port",
        arguments: Listener.allCases
    )
    func listeners(_ kind: Listener) throws {
        let standIn = try StandIn(passing: {
            switch kind {
            case .none: []
            case .file: [open("/dev/null", O_RDONLY | O_CLOEXEC)]
            case .elsewhere: [Self.listener(0)]
            case .otherPort: [Self.listener(0x7F00_0001)]
            case .many: (0..<10).map { _ in Self.listener(0x7F00_0001) }
            }
        })
        #expect(throws: StartError.self) { _ = try standIn.network.listen(port: 24_727) }
    }

    /// A socket that listens at an address, on a port that the kernel chooses.
    nonisolated private static func listener(_ host: UInt32) -> Int32 {
        (try? LoopbackSocket.listen(host: host))?.descriptor ?? -1
    }

    @Test("each user has a share of the runs, and root has its own")
    func shares() async throws {
        let standIn = try StandIn { request in
            guard case .transfer(let transfer) = request else { return [] }
            return [StandIn.framed(NetworkReport(number: transfer.number, .success(Self.response)).bytes)]
        }
        func open(_ uid: UInt32) async throws -> (session: HTTPSession, fault: HTTPFault?) {
            try await Requester.$uid.withValue(uid) {
                let session = HTTPSession(standIn.network, .system, Self.limits)
                return (session, try await fault(session))
            }
        }
        var held: [HTTPSession] = []
        for _ in 0..<64 {
            let (session, fault) = try await open(4_000_000)
            #expect(fault == nil)
            held.append(session)
        }
        let full = HTTPFault.unavailable(
            "too many connections to servers are open: try again when one of them has ended"
        )
        #expect(try await open(4_000_000).fault == full)
        #expect(try await open(4_000_001).fault == nil)
        #expect(try await open(0).fault == nil)
        held.removeLast().close()
        #expect(try await open(4_000_000).fault == nil)
    }

    @Test("reports have a share of the memory for each user, and root has its own")
    func room() async throws {
        let (crowd, other): (UInt32, UInt32) = (4_100_000, 4_100_001)
        var held: [ReportRoom.Share] = []
        while let share = ReportRoom.take(1 << 20, for: crowd) { held.append(share) }
        #expect(ReportRoom.bytes(of: crowd) <= ReportRoom.maximumPerUser && held.count > 1)
        #expect(ReportRoom.take(1 << 20, for: other) != nil)
        #expect(ReportRoom.take(1 << 20, for: 0) != nil)
        held = []
        while ReportRoom.bytes(of: crowd) > 0 { await Task.yield() }
        #expect(ReportRoom.take(64 << 20, for: crowd) != nil, "one report of each user has room always")
    }

    @Test("an answer whose secret was taken has no copy of it")
    func takenSecret() {
        let text = Array("00ff".utf8)
        var response = HTTPResponse(status: 200, body: Array("00ff".utf8))
        let place = response.body.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
        let taken = bytes(response.takeSecret())
        let (left, end) = response.body.withUnsafeBytes { (Array($0), Int(bitPattern: $0.baseAddress)) }
        #expect(taken == text)
        #expect(left == [0, 0, 0, 0] && end == place)
    }

    @Test("reports that have no room now wait, and each arrives")
    func waiting() async throws {
        let body = [UInt8](repeating: 0x61, count: 2 << 20)
        let standIn = try StandIn { request in
            guard case .transfer(let transfer) = request else { return [] }
            let response = HTTPResponse(status: 200, headers: [("a", "b")], body: body)
            return [StandIn.framed(NetworkReport(number: transfer.number, .success(response)).bytes)]
        }
        var request = try Self.request
        request.maximumLength = body.count
        let transfers = Requester.$uid.withValue(4_100_002) {
            (0..<16).map { _ in
                let session = HTTPSession(standIn.network, .system, Self.limits)
                return Task { [request] () async throws -> Int in try await session.run(request).body.count }
            }
        }
        for transfer in transfers {
            let count = try await transfer.value
            #expect(count == body.count)
        }
    }
}
