// SPDX-License-Identifier: GPL-3.0-or-later
import EIDServer
import HTTP
import TestSupport
import Testing

/// A session without rules of its own, as for servers of the web.
@Suite(.timeLimit(.minutes(5))) struct SystemAuthoritiesTests {
    private static let limits = HTTPLimits(connect: .seconds(240), transfer: .seconds(240))

    /// The status of the answer, or the fault of the transfer.
    private func status(
        _ address: String,
        _ method: HTTPRequest.Method = .get,
        _ authorities: Authorities = .system
    ) async throws -> Result<Int, HTTPFault> {
        let request = HTTPRequest(method: method, address: try #require(WebAddress(address)))
        let session = HTTPSession(.patient(), authorities, Self.limits)
        do throws(HTTPFault) {
            return .success(try await session.run(request).status)
        } catch {
            return .failure(error)
        }
    }

    @Test("a server whose authority the system does not know gets no request")
    func unknownAuthority() async throws {
        let server = try #require(ServiceFixture.server)
        let result = try await status(try server.tcTokenURL([:]))
        guard case .failure(.tls) = result else { throw Unexpected("\(result)") }
    }

    @Test("a page may lead to another host if the file of authorities covers it as well", arguments: [true, false])
    func redirect(isKnown: Bool) async throws {
        let last = try WebServer(isSecure: true) { _ in WebServer.Answer() }
        defer { last.close() }
        let target = last.address.replacing("localhost", with: "127.0.0.1")
        let first = try WebServer(isSecure: true) { _ in WebServer.Answer(status: 302, headers: [("Location", target)])
        }
        defer { first.close() }
        let folder = try TemporaryFolder()
        try folder.write("authorities.pem", Array((first.authority + (isKnown ? last.authority : "")).utf8))
        let result = try await status(first.address, .page, .file("\(folder.path)/authorities.pem"))
        switch result {
        case .success(200): #expect(isKnown)
        case .failure(.tls): #expect(!isKnown)
        default: Issue.record("\(result)")
        }
    }

    @Test(
        "an answer with more header lines than 1000, or than 64 KiB, is refused",
        arguments: [(900, 8), (1001, 8), (9, 9000)]
    )
    func headers(count: Int, length: Int) async throws {
        let headers = (0..<count).map { ("X-\($0)", String(repeating: "a", count: length)) }
        let server = try WebServer { _ in WebServer.Answer(headers: headers) }
        defer { server.close() }
        switch try await status(server.address) {
        case .success(200): #expect(count == 900)
        case .failure(.tooLarge): #expect(count != 900)
        case let result: Issue.record("\(result)")
        }
    }
}
