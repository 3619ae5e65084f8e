// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EIDServer
import Host
import Synchronization
import TestSupport
import Testing
import Text

@testable import EService
@testable import HTTP

/// Authentications through an HTTP proxy.
@Suite(.timeLimit(.minutes(5))) struct ProxyTests {
    private static func credentials(_ line: String) throws -> Proxy.Credentials {
        try #require(Array(line.utf8).withUnsafeBytes { Proxy.Credentials(line: $0) })
    }

    private static func settings(_ proxy: TestProxy, _ credentials: String? = nil) throws -> ProxySettings {
        let credentials = try credentials.map(Self.credentials)
        return ProxySettings(try #require(Proxy("http://127.0.0.1:\(proxy.port)", credentials)))
    }

    private static func answer(_ text: String) -> TestProxy.Behaviour { .answers(Array(text.utf8)) }

    @Test(
        "every connection goes through the proxy by CONNECT: service, PSK, attached, and the refresh address",
        arguments: [[:], ["mode": "attached"], ["mode": "attached", "keepalive": "0"], ["keepalive": "0"]]
            as [[String: String]],
        [nil, "name:pass word:%"] as [String?]
    )
    func everything(parameters: [String: String], credentials: String?) async throws {
        // base64 of "name:pass word:%"
        let proxy = try TestProxy(.opens(credentials: credentials.map { _ in "bmFtZTpwYXNzIHdvcmQ6JQ==" }))
        let session = try ServiceFixture.session(parameters) {
            $0.network.proxies = try? Self.settings(proxy, credentials)
        }
        _ = try await session.request()
        let outcome = await session.refreshAddress(after: .ok)
        #expect(outcome.failure == nil && outcome.url?.hasSuffix("?ResultMajor=ok") == true)
        let server = try #require(ServiceFixture.server)
        let psk = try #require(server.origin(.psk).split(separator: ":").last)
        let requests = proxy.requests
        #expect(requests.allSatisfy { $0.hasPrefix("CONNECT localhost:") })
        #expect(requests.contains { $0.hasPrefix("CONNECT localhost:\(psk) ") } == (parameters["mode"] == nil))
        // The proxy receives only the address.
        #expect(requests.allSatisfy { !$0.contains("tcToken") && !$0.contains("User-Agent") && !$0.contains("PAOS") })
    }

    @Test(
        "a proxy that opens no tunnel has a failure of its own, and the service is not contacted",
        arguments: [
            ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", .proxyRefused),
            ("HTTP/1.1 404 Not Found\r\n\r\n", .proxyRefused), ("HTTP/1.1 429 Too Many\r\n\r\n", .proxyRefused),
            ("HTTP/1.1 502 Bad Gateway\r\n\r\n", .proxyGateway), ("HTTP/1.1 504 Late\r\n\r\n", .proxyGateway),
            ("HTTP/1.1 405 No\r\n\r\n", .proxyWithoutTunnels), ("HTTP/1.0 501 No\r\n\r\n", .proxyWithoutTunnels),
            ("HTTP/1.1 511 Log in\r\n\r\n", .proxyPage), ("HTTP/1.1 401 Unauthorized\r\n\r\n", .proxyLogin),
            ("HTTP/1.0 302 Found\r\nLocation: https://a.example/\r\n\r\n", .proxyPage),
            (
                "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
                .proxyLogin
            ),
            ("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", .proxyLogin),
            ("HTTP/1.1 407 No\r\nProxy-Authenticate: Digest realm=\"x\", nonce=\"y\"\r\n\r\n", .proxyLogin),
            ("HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n", .proxyMethod),
            (
                "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\nProxy-Authenticate: Negotiate\r\n\r\n",
                .proxyMethod
            ),
            ("SSH-2.0-OpenSSH_9.2\r\n", .proxyUnreachable), ("", .proxyUnreachable),
            ("HTTP/1.1 200", .proxyUnreachable), ("\0\0\0\r\n\r\n", .proxyUnreachable),
            ("HTTP/1.1 200 OK\r\n" + String(repeating: "X-Header: y\r\n", count: 3000), .proxyUnreachable),
        ] as [(String, FailureStatus)],
        [nil, "name:password"] as [String?]
    )
    func refused(expectation: (answer: String, status: FailureStatus), credentials: String?) async throws {
        let (answer, wanted) = expectation
        let status = wanted == .proxyLogin && credentials != nil ? .proxyCredentials : wanted
        let proxy = try TestProxy(Self.answer(answer))
        let lines = Mutex<[String]>([])
        let session = try ServiceFixture.session { configuration in
            configuration.network.proxies = try? Self.settings(proxy, credentials)
            configuration.log = { line in lines.withLock { $0.append(line) } }
        }
        let failure = try await #require(throws: EServiceFailure.self) { try await session.request() }
        #expect(failure.reason == .getTcTokenNetworkError && failure.status == status, "\(failure)")
        #expect(!failure.detail.contains("password") && !"\(lines.withLock { $0 })".contains("password"))
    }

    @Test(
        "a fault at the proxy does not name it",
        arguments: ["http://proxy.invalid:3128", "http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"]
    )
    @Loop func nameless(address: String) async throws {
        let proxies = ProxySettings(try #require(Proxy(address, nil)))
        let session = HTTPSession(.patient(proxies: proxies), .system, HTTPLimits())
        let target = try #require(WebAddress("https://service.example/"))
        let fault = try await #require(throws: HTTPFault.self) {
            try await session.run(HTTPRequest(address: target, maximumLength: 100))
        }
        let host = try #require(WebAddress(address)).origin.host
        #expect(!fault.text("the server").contains(host) && !"\(fault)".contains(host), "\(fault)")
        #expect(fault.text("the server").hasPrefix("the proxy cannot be reached: "), "\(fault)")
        session.close()
    }

    @Test(
        "a request ends at its limit when the proxy sends nothing or never ends its answer",
        arguments: ["", "HTTP/1.1 200 OK\r\n"]
    )
    func hanging(answer: String) async throws {
        let proxy = try TestProxy(.keepsOpen(Array(answer.utf8)))
        let session = try ServiceFixture.session { configuration in
            configuration.network.proxies = try? Self.settings(proxy)
            configuration.limits.connect = .milliseconds(300)
        }
        await #expect(throws: EServiceFailure(.getTcTokenNetworkError, .proxyUnreachable)) {
            try await session.request()
        }
    }

    @Test("a cancellation ends the wait for a proxy")
    func cancelled() async throws {
        let proxy = try TestProxy(.keepsOpen([]))
        let session = try ServiceFixture.session { $0.network.proxies = try? Self.settings(proxy) }
        let task = Task { () -> EServiceFailure? in
            do throws(EServiceFailure) {
                _ = try await session.request()
                return nil
            } catch {
                return error
            }
        }
        while proxy.requests.isEmpty { await Task.yield() }
        task.cancel()
        #expect(await task.value == .cancelled)
    }

    @Test("no proxy at the address means a failure, not a direct connection")
    func missing() async throws {
        let proxy = try #require(Proxy("http://127.0.0.1:1"))
        let session = try ServiceFixture.session { $0.network.proxies = ProxySettings(proxy) }
        await #expect(throws: EServiceFailure(.getTcTokenNetworkError, .proxyUnreachable)) {
            try await session.request()
        }
    }

    @Test("a proxy that refuses PAOS or the refresh address has the reason of this step")
    func laterSteps() async throws {
        let paos = try TestProxy(.opensFirst(1))
        let session = try ServiceFixture.session { $0.network.proxies = try? Self.settings(paos) }
        await #expect(throws: EServiceFailure(.genericSendReceiveNetworkError, .proxyRefused)) {
            try await session.request()
        }
        let refresh = try TestProxy(.opensFirst(2))
        let other = try ServiceFixture.session(["fault": "refresh-other-origin"]) {
            $0.network.proxies = try? Self.settings(refresh)
        }
        _ = try await other.request()
        let outcome = await other.refreshAddress(after: .ok)
        #expect(outcome.failure?.reason == .checkRefreshAddressProxyError)
    }

    @Test("a fault of the server behind the proxy keeps its reason")
    func serverFault() async throws {
        let proxy = try TestProxy()
        let session = try ServiceFixture.session(on: .webWeak) { $0.network.proxies = try? Self.settings(proxy) }
        let failure = try await #require(throws: EServiceFailure.self) { try await session.request() }
        #expect(failure.reason == .getTcTokenInvalidCertificateKeyLength)
        let plain = try ServiceFixture.session(on: .plain) { $0.network.proxies = try? Self.settings(proxy) }
        let other = try await #require(throws: EServiceFailure.self) { try await plain.request() }
        #expect(other.status == .tls)
    }

    // MARK: Settings

    @Test(
        "only http://HOST:PORT is an address of a proxy",
        arguments: [
            ("http://proxy.example:3128", true), ("http://10.0.0.1:8080/", true), ("http://[::1]:3128", true),
            ("HTTP://Proxy.example:80", true), ("http://proxy.example", false), ("https://proxy.example:3128", false),
            ("socks5://proxy.example:1080", false), ("http://u:p@proxy.example:3128", false),
            ("http://proxy.example:3128/path", false), ("http://proxy.example:3128?x", false), ("proxy:3128", false),
            ("http://proxy.example:99999", false), ("http://:3128", false), ("", false), ("http://a b:1", false),
        ]
    )
    func address(text: String, isGood: Bool) {
        #expect((Proxy(text) != nil) == isGood)
    }

    @Test("the environment names proxies and exceptions as for curl")
    func environment() throws {
        let variables = [
            "https_proxy": "http://secure.example:1", "http_proxy": "plain.example:2",
            "no_proxy": "localhost,.intern.example, 10.0.0.1 *.other.example",
        ]
        let settings = try ProxySettings(environment: { variables[$0] }, nil)
        func proxy(_ url: String) throws -> String? {
            settings.proxy(for: try #require(WebAddress(url)).origin)?.address
        }
        #expect(try proxy("https://a.example/x") == "http://secure.example:1")
        #expect(try proxy("http://a.example/x") == "http://plain.example:2")
        for host in ["localhost", "intern.example", "a.intern.example", "10.0.0.1", "b.other.example"] {
            #expect(try proxy("https://\(host):8443/") == nil, "\(host)")
        }
        for host in ["notintern.example", "110.0.0.1", "localhost.example"] {
            #expect(try proxy("https://\(host)/") != nil, "\(host)")
        }
        #expect(try ProxySettings(environment: { _ in nil }, nil).isEmpty)
        let all = try ProxySettings(environment: { ["ALL_PROXY": "http://a.example:3", "NO_PROXY": "*"][$0] }, nil)
        let origin = try #require(WebAddress("https://b.example/")).origin
        #expect(!all.isEmpty && all.proxy(for: origin) == nil)
    }

    @Test("a proxy of another kind in the environment is an error, not a direct connection")
    func unusable() {
        for value in ["socks5://a:1", "https://a:1", "http://a", "http://a:1/x", "http://%zz:p@a:1"] {
            let error = #expect(throws: StartError.self, "\(value)") {
                try ProxySettings(environment: { $0 == "https_proxy" ? value : nil }, nil)
            }
            #expect(error?.message == "the variable https_proxy names no proxy that badged can use")
        }
    }

    @Test("a name and a password of the environment go to the proxy, decoded")
    func userInformation() async throws {
        // base64 of "na@me:p:w"
        let proxy = try TestProxy(.opens(credentials: "bmFAbWU6cDp3"))
        let address = "http://na%40me:p%3Aw@127.0.0.1:\(proxy.port)"
        let session = try ServiceFixture.session {
            $0.network.proxies = try? ProxySettings(environment: { $0 == "https_proxy" ? address : nil }, nil)
        }
        _ = try await session.request()
        #expect(!proxy.requests.isEmpty)
    }

    @Test(
        "credentials are one line NAME:PASSWORD",
        arguments: [
            ("a:b", true), ("a:b\n", true), ("a:b\r\n", true), ("a:", true), ("a:b:c d", true), ("ä:ö", true),
            ("", false), ("a", false), (":b", false), ("a:b\nc:d", false), ("a:\0b", false), ("a:b\n\n", false),
        ]
    )
    func credentialLines(line: String, isGood: Bool) {
        #expect((Array(line.utf8).withUnsafeBytes { Proxy.Credentials(line: $0) } != nil) == isGood)
        let long = "a:" + String(repeating: "x", count: Proxy.Credentials.maximumCount)
        #expect(Array(long.utf8).withUnsafeBytes { Proxy.Credentials(line: $0) } == nil)
    }
}
