// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Dispatch
import Glibc
import Host
import TestSupport
import Testing
import Text

@testable import HTTP

/// A program in the place of badged-network, which answers each transfer with bytes of a script.
private final class StandIn: Sendable {
    let network: Network
    private let folder: TemporaryFolder

    enum Answer: Sendable {
        case bytes([UInt8]), end
    }

    /// Answers the transfers with what `script` returns for each. Other requests and their order are in `requests`.
    init(_ script: @escaping @Sendable (NetworkRequest) -> [Answer]) throws {
        folder = try TemporaryFolder()
        let path = "\(folder.path)/network.sock"
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let isBound = UnixAddress(path: path)?.withPointer { bind(listener, $0, $1) == 0 }
        try #require(isBound == true && listen(listener, 16) == 0)
        network = Network(socket: path)
        DispatchQueue(label: "stand-in").async {
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                DispatchQueue(label: "run").async { Self.serve(client, script) }
            }
        }
    }

    private static func serve(_ client: Int32, _ script: (NetworkRequest) -> [Answer]) {
        defer { close(client) }
        while let head = receive(client, 4),
            let bytes = receive(client, head.reduce(0) { $0 << 8 | Int($1) }),
            let request = NetworkRequest(bytes: bytes)
        {
            for answer in script(request) {
                switch answer {
                case .bytes(let bytes): _ = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                case .end: return
                }
            }
        }
    }

    private static func receive(_ client: Int32, _ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return recv(client, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
    }

    static func framed(_ message: [UInt8]) -> Answer {
        .bytes(withUnsafeBytes(of: UInt32(message.count).bigEndian) { Array($0) } + message)
    }
}

/// What a run of badged-network can do that somebody has taken over. docs/hardening.md, badged-network.
@Suite("badged-network in strange hands", .timeLimit(.minutes(5))) @Loop struct NetworkJobTests {
    nonisolated private static let limits = HTTPLimits(connect: .seconds(240), transfer: .seconds(240))
    nonisolated private static let response = HTTPResponse(status: 200, body: Array("fine".utf8))

    private static var request: HTTPRequest {
        get throws { HTTPRequest(address: try #require(WebAddress("https://service.example/"))) }
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
            }
        }
        let session = HTTPSession(standIn.network, .system, Self.limits)
        var found = try await fault(session)
        // The second report of the same transfer ends the run at the latest when the next transfer begins.
        while found == nil, misdeed == .twoReports { found = try await fault(session) }
        guard case .unavailable(let words) = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        #expect(words.contains(misdeed == .nothing || misdeed == .cut ? "has ended unexpectedly" : "not allowed"))
        #expect(try await fault(session) == found, "a run that has ended is not started again")
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
        let session = HTTPSession(
            NetworkJob(standIn.network),
            preSharedKey: nil,
            isDeveloperMode: false,
            Self.limits,
            nil,
            log: { _ in }
        )
        session.conditions.requiresResumption = lie == .notResumed
        let hash = try DigestAlgorithm.sha256.hash([0x30, 0])
        session.conditions.listed = TLSConditions.Listed(digest: .sha256, hashes: [hash])
        guard case .tls(let found, _) = try await fault(session) else {
            Issue.record("the answer was taken")
            return
        }
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
            case .open, .listen: return []
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
        let standIn = try StandIn { _ in [] }
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
        #expect(try await fault(session) == .unavailable("badged-network does not answer"))
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
}
