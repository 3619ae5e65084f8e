// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import HTTP
import Synchronization
import TestSupport
import Testing
import Text

/// The M-Pin servers of Tests/MPinServer, a double, in a process of their own.
final class LoginServers: Sendable {
    private let program: RunningProgram
    let port: Int

    /// A process in Python uses one processor.
    private static let shared = (0..<2).map { _ in Task { try await LoginServers() } }
    private static let used = Atomic(0)

    /// The servers compute one answer after the other, for many tests; on a busy machine the last one takes minutes.
    static let patient = HTTPLimits(connect: .seconds(240), transfer: .seconds(240))

    struct NotStarted: Error { let text: String }

    /// One of the servers that tests share.
    static func running() async throws -> LoginServers {
        try await shared[used.add(1, ordering: .relaxed).oldValue % shared.count].value
    }

    /// Starts servers that nobody else keeps busy.
    init() async throws {
        let script = testsFolder.appending(path: "MPinServer/server.py").path
        program = try RunningProgram("/usr/bin/python3", [script], input: nil)
        guard await program.prints("\n", on: .output),
            let port = program.text(.output).split(whereSeparator: \.isWhitespace).last.flatMap({ Int($0) })
        else { throw NotStarted(text: program.everything) }
        self.port = port
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// A backend with faults, for one test alone.
    func url(_ faults: String) -> String { "\(url)/fault/\(faults),test\(UUID().uuidString)" }

    /// A backend for one test alone, where the n-th request of a point meets the n-th fault of this point.
    func url(oneByOne faults: [String]) -> String {
        var counts: [Substring: Int] = [:]
        let numbered = faults.map { fault in
            counts[fault.prefix { $0 != "-" }, default: 0] += 1
            return "\(fault)@\(counts[fault.prefix { $0 != "-" }, default: 0])"
        }
        return url(numbered.joined(separator: ","))
    }

    enum Method: String { case get = "GET", post = "POST" }

    /// Sends a request to the double itself.
    @discardableResult
    func lab(_ method: Method, _ path: String, _ body: JSON? = nil) async throws -> JSON {
        try await send(method, "/lab/\(path)", body)
    }

    @discardableResult
    func send(_ method: Method, _ path: String, _ body: JSON? = nil) async throws -> JSON {
        let body = body?.bytes ?? []
        let head = [
            "\(method.rawValue) \(path) HTTP/1.1", "Host: 127.0.0.1:\(port)", "Content-Length: \(body.count)",
            "Connection: close", "", "",
        ]
        let request = Array(head.joined(separator: "\r\n").utf8) + body
        let answer = try await TestBrowserPort.bytes { [port] in
            try TestBrowserPort.exchange(request, port: UInt16(port))
        }
        let end = try #require(answer.firstRange(of: Array("\r\n\r\n".utf8)))
        return try JSON(Array(answer[end.upperBound...]))
    }

    /// Returns when a request of a backend meets `hang` or `lost`.
    func arrival(below prefix: String) async throws {
        let home = try #require(prefix.split(separator: ":\(port)", maxSplits: 1).last)
        try await lab(.get, "arrival?home=\(home)")
    }

    /// The paths of the requests about a backend, in order.
    func paths(below prefix: String) async throws -> [String] {
        let whole = try #require(prefix.split(separator: ":\(port)", maxSplits: 1).last)
        return try await lab(.get, "requests?home=\(whole)")["requests"]?.array?
            .compactMap { $0["path"]?.string.map { String($0.dropFirst(whole.count)) } } ?? []
    }
}
