// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CountryAuthorities
import Document
import EIDServer
import Glibc
import HTTP
import Host
import MdocFeature
import MobileDocument
import Synchronization
import TestSupport
import Testing
import Text

/// What badged fetches ahead of time, with lists that Python has made. Tests/Vectors/mdoc/README.md.
@Suite("Lists of revoked documents that are fetched", .timeLimit(.minutes(5)))
@Loop struct MdocListFetchTests {
    private static let vectors = try? vectorFile("mdoc/verdicts.json")

    private static func blob(_ number: JSON?) throws -> [UInt8] {
        let text = try #require(number?.int.flatMap { vectors?["blobs"]?.array?[$0].string })
        return try #require(Base64.standard.decode(text))
    }

    private static func example(_ name: String) throws -> JSON {
        try #require(vectors?["cases"]?.array?.first { $0["name"]?.string == name })
    }

    /// The lists of a case, then its revocation lists.
    private static func lists(_ name: String) throws -> [[UInt8]] {
        let json = try example(name)
        return try ((json["lists"]?.array ?? []) + (json["crls"]?.array ?? [])).map(blob)
    }

    /// A site that trusts the authorities of a case, at the time of this case, and fetches what is at some addresses.
    @Loop final class Site {
        let temporary: TemporaryFolder
        let clock = TestTime()
        let folder: MdocAnchorFolder
        let lists: PublishedListFolder
        private let addresses: [String]
        /// What the servers answer.
        var answers: [String: Result<HTTPResponse, HTTPFault>] = [:]
        private(set) var requests: [HTTPRequest] = []

        convenience init(_ name: String, at addresses: [String]) throws {
            try self.init(try MdocListFetchTests.example(name), at: addresses)
        }

        /// `json` has the time and the authorities.
        init(_ json: JSON, at addresses: [String]) throws {
            self.addresses = addresses
            temporary = try TemporaryFolder()
            clock.advance(try #require(json["time"]?.int) - clock.now)
            for (number, anchor) in (json["anchors"]?.array ?? []).enumerated() {
                let place = anchor["certificate"]
                let certificate = try place.map(MdocListFetchTests.blob) ?? MdocListFetchTests.bytes(anchor)
                try AnchorWriter(folder: temporary.path + "/mdoc").write(["\(number).cer": certificate])
            }
            lists = PublishedListFolder(temporary.path + "/lists", addresses: addresses)
            folder = MdocAnchorFolder(temporary.path + "/mdoc", lists: lists, warn: { _ in })
        }

        /// A badged that starts; `ask` is what it asks servers with.
        func start(_ ask: MdocListFetch.Ask? = nil) async throws -> MdocListFetch {
            let addresses = try addresses.map { try #require(WebAddress($0)) }
            let fetch = MdocListFetch(addresses, folder, lists, time: { [clock] in clock.now }) {
                [weak self] request throws(HTTPFault) in
                guard let self else { throw .cancelled }
                requests.append(request)
                if let ask { return try await ask(request) }
                return try (answers[request.address.text] ?? .failure(.timeout)).get()
            }
            await fetch.begin()
            return fetch
        }

        /// The lists that count now: how many are there, and their faults.
        func summary() async -> MdocAnchorSummary { await folder.summary(at: clock.now) }
    }

    private static func found(_ bytes: [UInt8]) -> Result<HTTPResponse, HTTPFault> {
        .success(HTTPResponse(status: 200, body: bytes))
    }

    // MARK: When

    @Test("lists are fetched at the start and when they are due, and no document starts a request")
    func due() async throws {
        let bytes = try #require(try Self.lists("status-valid").first)
        let list = try MdocStatusList(bytes)
        let site = try Site("status-valid", at: [list.uri])
        site.answers[list.uri] = Self.found(bytes)
        let fetch = try await site.start()
        #expect(site.requests.map(\.address.text) == [list.uri])
        let header = try #require(site.requests.first?.headers.first { $0.hasPrefix("Accept: ") })
        #expect(header.contains("application/statuslist+cwt") && header.contains("application/identifierlist+cwt"))
        #expect(await site.summary().statusLists == 1)
        // What a reading does, also with a document of another list.
        for _ in 0..<3 { #expect(await site.folder.authorities(at: site.clock.now).listCount == 1) }
        let next = try #require(fetch.nextTime)
        #expect(next <= list.until && next >= site.clock.now + 300)
        site.clock.advance(next - site.clock.now - 1)
        await fetch.fetchDue()
        #expect(site.requests.count == 1)
        site.clock.advance(1)
        await fetch.fetchDue()
        #expect(site.requests.count == 2)
        #expect(fetch.checks().map(\.ok) == [true])
    }

    @Test(
        "a list is asked for again after its ttl or a day, but before its end, and not each moment",
        arguments: [
            (ttl: nil, end: nil, due: 82_800), (ttl: 43_200, end: nil, due: 39_600),
            (ttl: 3600, end: 86_400 * 30, due: 3600), (ttl: 1, end: 86_400 * 30, due: 300),
            (ttl: nil, end: 7200, due: 5400), (ttl: 86_400 * 7, end: 86_400, due: 82_800),
            (ttl: 86_400 * 7, end: Int.max, due: 86_400 * 7), (ttl: nil, end: 10, due: 300),
        ] as [(ttl: Int?, end: Int?, due: Int)]
    )
    func life(ttl: Int?, end: Int?, due: Int) throws {
        let time = 1_795_888_069
        // A server may hand out for days what it has signed once.
        var claims: [(CBORValue, CBORValue)] = [
            (2, "https://utopia.example/list"), (6, .integer(Int64(time - 86_400 * 3))),
        ]
        if let ttl { claims.append((65534, .integer(Int64(ttl)))) }
        if let end { claims.append((4, .integer(Int64(end == .max ? end : time + end)))) }
        claims.append((65533, ["bits": 1, "lst": .bytes([])]))
        let protected = CBORValue.map([(1, -7), (16, "application/statuslist+cwt")]).encoding
        let message: CBORValue = [
            .bytes(protected), .map([]), .bytes(CBORValue.map(claims).encoding),
            .bytes([UInt8](repeating: 1, count: 64)),
        ]
        let list = try PublishedList(message.encoding, from: "https://utopia.example/list", fetched: time)
        #expect(list.due - time == due)
        #expect(list.isCurrent(at: time))
        #expect(list.until == (end.map { $0 == .max ? $0 : time + $0 } ?? time + (ttl ?? 86_400)))
    }

    // MARK: What

    private enum Wrong: String, CaseIterable {
        case unreachable, tls, tooLong, notFound, moved, empty, noList, certificate, otherAddress, otherAuthority
        case wrongSignature, over, older, otherKind
    }

    private static func wrong(_ wrong: Wrong, _ uri: String) throws -> Result<HTTPResponse, HTTPFault> {
        func first(_ name: String) throws -> Result<HTTPResponse, HTTPFault> {
            found(try #require(try lists(name).first))
        }
        return switch wrong {
        case .unreachable: .failure(.unreachable("no route"))
        case .tls: .failure(.tls(nil, "its certificate is that of another"))
        case .tooLong: .failure(.tooLarge)
        case .notFound: .success(HTTPResponse(status: 404))
        case .moved: .success(HTTPResponse(status: 302, headers: [("location", "https://elsewhere.example")]))
        case .empty: found([])
        case .noList: found(Array("{\"status_list\":{}}".utf8))
        case .certificate:
            found(
                try blob(
                    try example("status-list-of-another-authority-that-is-trusted")["anchors"]?.array?.last?[
                        "certificate"
                    ]
                )
            )
        case .otherAddress: try first("status-list-about-another-address")
        case .otherAuthority: try first("status-list-of-another-authority")
        case .wrongSignature: try first("status-list-with-a-wrong-signature")
        case .over: try first("status-list-expired")
        case .older:
            found(
                try #require(
                    try lists("status-list-older-list-says-valid").min {
                        try MdocStatusList($0).issued < MdocStatusList($1).issued
                    }
                )
            )
        case .otherKind: try first("identifier-revoked")
        }
    }

    @Test(
        "what a server must not send leaves the old list, is told, and is tried again later",
        arguments: Wrong.allCases
    )
    private func wrong(wrong: Wrong) async throws {
        let newest = try #require(
            try Self.lists("status-list-older-list-says-valid").max {
                try MdocStatusList($0).issued < MdocStatusList($1).issued
            }
        )
        let list = try MdocStatusList(newest)
        let site = try Site("status-list-older-list-says-valid", at: [list.uri])
        site.answers[list.uri] = Self.found(newest)
        let fetch = try await site.start()
        let before = await site.summary()
        #expect(before.statusLists == 1 && fetch.checks().map(\.ok) == [true], "\(fetch.checks())")
        site.clock.advance(try #require(fetch.nextTime) - site.clock.now)
        site.answers[list.uri] = try Self.wrong(wrong, list.uri)
        for pause in [60, 120, 240] {
            await fetch.fetchDue()
            #expect(fetch.nextTime == site.clock.now + pause)
            let check = try #require(fetch.checks().first)
            #expect(!check.ok && check.cause?.contains("the last one counts until") == true, "\(check)")
            site.clock.advance(pause)
        }
        #expect(await site.summary() == before)
        #expect(try site.lists.list(of: list.uri)?.until == list.until)
        // When the last one is over, nothing is known.
        site.clock.advance(list.until + 1 - site.clock.now)
        #expect(fetch.checks().first?.cause?.contains("are not checked for revocation") == true)
    }

    private nonisolated static let published = try? vectorFile("mdoc/published-lists.json")
    private nonisolated static let numbered = try? vectorFile("mdoc/numbered-lists.json")

    private nonisolated static func bytes(_ json: JSON?) throws -> [UInt8] {
        let text = try #require(json?.string)
        return try #require(Base64.standard.decode(text))
    }

    @Test("all pairs of lists are there")
    func count() {
        #expect(Self.published?["cases"]?.array?.count == 20)
        #expect(Self.numbered?["cases"]?.array?.count == 15)
    }

    @Test(
        "a list takes the place of another only if it says as much: same authority, complete, newer or revoking more",
        arguments: [published, numbered].flatMap { $0?["cases"]?.array ?? [] }.compactMap { $0["name"]?.string }
    )
    func successor(name: String) async throws {
        func find(in vectors: JSON?) -> JSON? { vectors?["cases"]?.array?.first { $0["name"]?.string == name } }
        let vectors = try #require(find(in: Self.published) == nil ? Self.numbered : Self.published)
        let test = try #require(find(in: vectors))
        let (first, second) = (try Self.bytes(test["first"]), try Self.bytes(test["second"]))
        let address = try #require(vectors["address"]?.string)
        let site = try Site(vectors, at: [address])
        site.answers[address] = Self.found(first)
        let fetch = try await site.start()
        #expect(fetch.checks().map(\.ok) == [true], "\(fetch.checks())")
        site.answers[address] = Self.found(second)
        await fetch.retry()
        let isKept = test["isKept"] == .bool(true)
        #expect(fetch.checks().map(\.ok) == [isKept], "\(fetch.checks())")
        #expect(try site.lists.list(of: address)?.bytes == (isKept ? second : first))
    }

    @Test(
        "a list whose signer is revoked after it was fetched counts no more, and this is told",
        arguments: ["imported", "fetched", "fetched before a restart"]
    )
    func revokedSigner(way: String) async throws {
        let vectors = try #require(Self.numbered)
        let address = try #require(vectors["address"]?.string)
        let other = "https://utopia.example/crl"
        let revocations = try Self.bytes(vectors["revokesItsSigner"])
        let site = try Site(vectors, at: [address, other])
        site.answers[address] = Self.found(try Self.bytes(vectors["statusList"]))
        var fetch = try await site.start()
        func health() async -> HealthCheck? {
            await MdocAnchorsFeature(site.folder, fetch: fetch, time: { [clock = site.clock] in clock.now }).health()
                .first { $0.name == "mdocLists" }
        }
        let list = try MdocStatusList(try Self.bytes(vectors["statusList"]))
        let before = await site.folder.authorities(at: site.clock.now)
        #expect(throws: Never.self) { try list.judge(by: before.anchors, at: site.clock.now) }
        #expect(await health()?.facts.contains(.init("current", 1)) == true)
        if way == "imported" {
            try AnchorWriter(folder: site.folder.path).write(["UT.crl": revocations])
        } else {
            site.answers[other] = Self.found(revocations)
            site.clock.advance(60)
            await fetch.fetchDue()
            if way == "fetched before a restart" { fetch = try await site.start() }
        }
        let after = await site.folder.authorities(at: site.clock.now)
        #expect(throws: Malformed.self) { try list.judge(by: after.anchors, at: site.clock.now) }
        let check = try #require(await health())
        #expect(!check.ok && check.cause?.contains("counts until") == false, "\(check)")
        #expect(check.cause?.contains(address) == true, "\(check)")
        #expect(!check.facts.contains(.init("current", 2)), "\(check)")
        let warnings = await site.summary().warnings
        #expect(warnings.contains("\(address): its signer is revoked"), "\(warnings)")
        // The server may have the same list still.
        await fetch.retry()
        #expect(await health()?.ok == false)
    }

    @Test("servers that hang do not keep the others waiting, and until they answer nothing is well")
    func hanging() async throws {
        let bytes = try #require(try Self.lists("status-valid").first)
        let uri = try MdocStatusList(bytes).uri
        let hanging = (1...3).map { "https://hanging.example/\($0)?key=SECRET" }
        let site = try Site("status-valid", at: hanging + [uri])
        let (started, gate) = (Changes(), OneShot<Void>())
        let asked = Mutex(0)
        let begin = Task { @Loop in
            try await site.start { request throws(HTTPFault) in
                if request.address.text == uri { return HTTPResponse(status: 200, body: bytes) }
                asked.withLock { $0 += 1 }
                started.notify()
                if asked.withLock({ $0 }) == 1 { await gate.value(whenCancelled: ()) }
                throw HTTPFault.timeout
            }
        }
        await started.wait { asked.withLock { $0 } == 3 }
        try await until { (try? site.lists.list(of: uri)) != nil }
        gate.fill(())
        let fetch = try await begin.value
        let check = try #require(fetch.checks().first)
        #expect(!check.ok && check.cause?.contains("SECRET") == false, "\(check)")
    }

    @Test("a warning about a list that is kept does not show the query of its address")
    func damaged() async throws {
        let address = "https://utopia.example/list?key=SECRET"
        let site = try Site("status-valid", at: [address])
        try site.lists.save([0xD2, 0x00], of: address, fetched: site.clock.now)
        let warnings = await site.summary().warnings
        #expect(warnings.contains { $0.hasPrefix("https://utopia.example/list?...: ") }, "\(warnings)")
        #expect(!warnings.contains { $0.contains("SECRET") })
    }

    @Test("a list that is over is told, although its server has said nothing wrong")
    func over() async throws {
        let bytes = try #require(try Self.lists("status-valid").first)
        let list = try MdocStatusList(bytes)
        let site = try Site("status-valid", at: [list.uri])
        site.answers[list.uri] = Self.found(bytes)
        let fetch = try await site.start()
        #expect(fetch.checks().map(\.ok) == [true])
        site.clock.advance(list.until + 1 - site.clock.now)
        #expect(fetch.checks().first?.cause?.contains("is over") == true, "\(fetch.checks())")
    }

    @Test("a list from the future is not kept before its time")
    func future() async throws {
        let bytes = try #require(try Self.lists("status-list-from-the-future").first)
        let list = try MdocStatusList(bytes)
        let site = try Site("status-list-from-the-future", at: [list.uri])
        site.answers[list.uri] = Self.found(bytes)
        let fetch = try await site.start()
        #expect(await site.summary().statusLists == 0 && fetch.checks().map(\.ok) == [false])
        site.clock.advance(list.issued - site.clock.now)
        await fetch.fetchDue()
        #expect(await site.summary().statusLists == 1 && fetch.checks().map(\.ok) == [true])
    }

    @Test("a server that answers again ends the fault, and SIGHUP asks at once")
    func again() async throws {
        let bytes = try #require(try Self.lists("good-identifier-list").first)
        let uri = try MdocStatusList(bytes).uri
        let site = try Site("good-identifier-list", at: [uri])
        let fetch = try await site.start()
        #expect(fetch.checks().map(\.ok) == [false] && site.requests.count == 1)
        #expect(await site.summary().statusLists == 0)
        site.answers[uri] = Self.found(bytes)
        await fetch.retry()
        #expect(fetch.checks().map(\.ok) == [true] && site.requests.count == 2)
        #expect(await site.summary().statusLists == 1)
        await fetch.retry()
        #expect(site.requests.count == 3, "an administrator may know of a new list")
    }

    @Test("a restart uses what was kept, and forgets the lists of addresses that are no longer named")
    func restart() async throws {
        let bytes = try #require(try Self.lists("status-valid").first)
        let uri = try MdocStatusList(bytes).uri
        let site = try Site("status-valid", at: [uri])
        site.answers[uri] = Self.found(bytes)
        let due = try await site.start().nextTime
        #expect(try await site.start().nextTime == due && site.requests.count == 1)
        let others = PublishedListFolder(site.temporary.path + "/lists", addresses: ["https://other.example/"])
        others.removeOthers()
        #expect(try site.lists.list(of: uri) == nil)
    }

    @Test("a list whose file has an impossible time is fetched again at once", arguments: [Int.max, .min, -1])
    func impossibleTime(fetched: Int) throws {
        let bytes = try #require(try Self.lists("status-valid").first)
        let uri = try MdocStatusList(bytes).uri
        let list = try PublishedList(bytes, from: uri, fetched: fetched)
        #expect(try list.due == PublishedList(bytes, from: uri, fetched: 0).due)
    }

    @Test("a list that cannot be read now is not replaced, because it may revoke more than the next one")
    func unknownLast() async throws {
        let bytes = try #require(try Self.lists("status-valid").first)
        let uri = try MdocStatusList(bytes).uri
        let site = try Site("status-valid", at: [uri])
        site.answers[uri] = Self.found(bytes)
        _ = try await site.start()
        let name = try #require(Folder.names(in: site.temporary.path + "/lists")?.first)
        let file = "\(site.temporary.path)/lists/\(name)"
        // The kernel answers EIO for the address 0.
        #expect(unlink(file) == 0 && symlink("/proc/self/mem", file) == 0)
        let fetch = try await site.start()
        let cause = fetch.checks().first?.cause?.description
        #expect(cause?.contains("the last list cannot be read") == true, "\(cause ?? "")")
        var status = stat()
        #expect(lstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    @Test("without a folder for its state badged asks nobody, and says why")
    func noFolder() async throws {
        let site = try Site("status-valid", at: [])
        let lists = PublishedListFolder(nil, addresses: ["https://utopia.example/list"])
        let address = try #require(WebAddress("https://utopia.example/list"))
        let fetch = MdocListFetch([address], site.folder, lists, time: { 1_795_888_069 }) { _ throws(HTTPFault) in
            Issue.record("a request")
            throw .timeout
        }
        await fetch.begin()
        #expect(fetch.checks().first?.cause?.contains("STATE_DIRECTORY") == true)
    }

    // MARK: Through badged-network

    @Test("badged-network fetches lists over HTTP and TLS, with the bounds of other fetches")
    func transfer() async throws {
        let crl = try #require(try Self.lists("ds-revoked").last)
        let isOpen = Mutex(true)
        let seen = Mutex<[String]>([])
        let server = try WebServer { request in
            seen.withLock { $0.append("\(request.method) \(request.path) \(request.headers["accept"] ?? "")") }
            guard isOpen.withLock({ $0 }) else {
                return WebServer.Answer(status: 302, headers: [("Location", "/other")])
            }
            return request.path == "/long"
                ? WebServer.Answer([UInt8](repeating: 0x30, count: PublishedList.maximumLength + 1))
                : WebServer.Answer(crl)
        }
        let addresses = [server.address + "/crl", server.address + "/long"]
        let site = try Site("ds-revoked", at: addresses)
        var network = Network()
        network.heartbeat = .patient
        let fetch = try await site.start(MdocListFetch.ask(network))
        #expect(await site.summary().revocationLists == 1)
        let check = try #require(fetch.checks().first)
        #expect(check.cause?.contains("/long") == true && check.cause?.contains("is too long") == true, "\(check)")
        #expect(check.facts.contains(.init("current", 1)))
        isOpen.withLock { $0 = false }
        site.clock.advance(86_400)
        await fetch.fetchDue()
        #expect(fetch.checks().first?.cause?.contains("302") == true, "\(fetch.checks())")
        let paths = seen.withLock { $0 }
        #expect(
            paths.count == 4 && paths.allSatisfy { $0.hasPrefix("GET /") && !$0.hasPrefix("GET /other") },
            "\(paths)"
        )
        #expect(paths.allSatisfy { $0.contains("application/pkix-crl") })
        // Nobody vouches for this server.
        let secure = try WebServer(isSecure: true) { _ in WebServer.Answer(crl) }
        let stranger = try Site("ds-revoked", at: [secure.address + "/crl"])
        let other = try await stranger.start(MdocListFetch.ask(network))
        #expect(other.checks().first?.cause?.contains("cannot be trusted") == true, "\(other.checks())")
        #expect(await stranger.summary().revocationLists == 0)
        withExtendedLifetime((server, secure)) {}
    }

    @Test("the daemon fetches what [mdoc] lists names, tells what is wrong, and asks again after SIGHUP")
    func daemon() async throws {
        let requests = Mutex(0)
        let changes = Changes()
        let server = try WebServer { _ in
            requests.withLock { $0 += 1 }
            changes.notify()
            return WebServer.Answer(status: 404)
        }
        let temporary = try TemporaryFolder()
        let daemon = try await DaemonProcess(
            configuration: "[mdoc]\nanchors = \(temporary.path)\nlists = \(server.address)/list\n",
            environment: ["STATE_DIRECTORY": temporary.path]
        )
        await daemon.wait { $0.log.contains { $0.contains("HTTP status 404") } }
        let client = try daemon.connect()
        let health = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
        let check = try #require(health?["checks"]?.array?.first { $0["name"] == .string("mdocLists") })
        #expect(check["ok"] == .bool(false) && check["lists"] == .number("1"), "\(check)")
        daemon.signal(SIGHUP)
        await changes.wait { requests.withLock { $0 } == 2 }
        withExtendedLifetime((server, client)) {}
    }
}
