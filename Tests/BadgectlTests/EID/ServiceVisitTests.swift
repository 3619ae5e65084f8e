// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import TestSupport
import Testing

/// `badgectl auth --follow` and `--open`, with a scripted badged.
@Suite("badgectl: the way back to the service", .timeLimit(.minutes(5))) struct ServiceVisitTests {
    /// A web server on loopback, without TLS, that answers one request on each connection.
    private final class WebServer: Sendable {
        let port: UInt16
        private let listener: SharedDescriptor

        /// `answer` gets the first line and the headers of a request.
        init(_ answer: @escaping @Sendable (String) -> [UInt8]) throws {
            let (descriptor, port) = try LoopbackSocket.listen()
            (listener, self.port) = (SharedDescriptor(descriptor), port)
            DispatchQueue(label: "web server").async { [listener] in
                while true {
                    let client = accept(listener.number, nil, nil)
                    guard client >= 0 else { return }
                    var request: [UInt8] = []
                    while !request.suffix(4).elementsEqual("\r\n\r\n".utf8),
                        let byte = BlockingSocket.receive(1, from: client)
                    {
                        request += byte
                    }
                    BlockingSocket.send(answer(String(decoding: request, as: UTF8.self)), to: client)
                    close(client)
                }
            }
        }

        deinit { listener.shutDown() }
    }

    private static func answer(_ status: String, _ headers: String, _ body: String) -> [UInt8] {
        Array("HTTP/1.1 \(status)\r\nConnection: close\r\n\(headers)\r\n\(body)".utf8)
    }

    /// A scripted badged whose authentication ends with this address.
    private static func peer(_ url: String, isSuccess: Bool = true) throws -> ScriptedPeer {
        let result =
            isSuccess
            ? #"{"major":"x#ok"}"#
            : #"{"description":"D.","language":"en","major":"x#error","message":"No.","minor":"y","reason":"Card_Removed"}"#
        return try ScriptedPeer { peer in
            peer.beginAuth()
            peer.send("{\"msg\":\"AUTH\",\"result\":\(result),\"url\":\"\(url)\"}")
        }
    }

    /// badgectl with a scripted badged whose authentication ends with `url`.
    private struct Visit {
        let peer: ScriptedPeer
        let program: RunningProgram

        init(_ url: String, isSuccess: Bool = true, _ arguments: String..., path: String = "/usr/bin:/bin") throws {
            try self.init(ServiceVisitTests.peer(url, isSuccess: isSuccess), arguments, path: path)
        }

        init(_ peer: ScriptedPeer, _ arguments: [String], path: String = "/usr/bin:/bin") throws {
            self.peer = peer
            program = try RunningProgram(
                "badgectl",
                ["--socket", peer.path, "auth", "https://a.example/token"] + arguments,
                environment: ["PATH": path]
            )
        }
    }

    @Test("--follow follows redirects with their cookies, and shows the page as text without control characters")
    func follow() async throws {
        let server = try WebServer { request in
            guard request.hasPrefix("GET /end ") else {
                return Self.answer("302 Found", "Location: /end\r\nSet-Cookie: session=7\r\n", "not this")
            }
            let cookie = request.contains("Cookie: session=7\r\n") ? "known" : "unknown"
            let page = "<title>x</title><h1>Gr&uuml;&szlig;e</h1><p>You are \(cookie)\u{1B}[2J.</p>"
            return Self.answer("200 OK", "Content-Type: text/html; charset=utf-8\r\n", page)
        }
        let visit = try Visit("http://127.0.0.1:\(server.port)/back?ResultMajor=ok", "--follow")
        let program = visit.program
        await program.ends(0, printing: "Grüße\nYou are known\\u{1b}[2J.\n")
        #expect(!program.everything.contains("not this"))
    }

    @Test("a page that is an error, too long, or not there is an error, although the service has the data")
    func badPages() async throws {
        let server = try WebServer { request in
            if request.hasPrefix("GET /500") {
                return Self.answer("500 Oh", "Content-Type: text/plain\r\n", "out of order")
            }
            if request.hasPrefix("GET /loop") { return Self.answer("302 Found", "Location: /loop\r\n", "") }
            if request.hasPrefix("GET /file") {
                return Self.answer("302 Found", "Location: file:///etc/passwd\r\n", "")
            }
            return Self.answer("200 OK", "Content-Type: text/plain\r\n", String(repeating: "x", count: 2 << 20))
        }
        for (path, words) in [
            ("500", "the service answered with HTTP 500"), ("loop", "cannot be fetched"), ("file", "cannot be fetched"),
            ("long", "it is longer than 1 MiB"),
        ] {
            let visit = try Visit("http://127.0.0.1:\(server.port)/\(path)", "--follow")
            let program = visit.program
            await program.ends(1, saying: words)
            #expect(program.everything.contains("The service has received the data."))
            // The user needs the address then.
            let address = "http://127.0.0.1:\(server.port)/\(path)"
            if path == "500" {
                #expect(program.text(.output) == "out of order\n")
                #expect(program.text(.error).hasSuffix("hint: open the address in a browser: \(address)\n"))
            } else {
                #expect(program.text(.output) == address + "\n")
            }
            #expect(!program.everything.contains("root:"))
        }
        let nobodyVisit = try Visit("http://127.0.0.1:1/", "--follow")
        let nobody = nobodyVisit.program
        await nobody.ends(1, saying: "the page of the service cannot be fetched: ")
        #expect(nobody.text(.output) == "http://127.0.0.1:1/\n")
        let fileVisit = try Visit("file:///etc/passwd", "--follow")
        let file = fileVisit.program
        await file.ends(1, printing: "file:///etc/passwd\n")
        // Without a page the failure of the authentication is still the one to report.
        let failedVisit = try Visit("http://127.0.0.1:1/", isSuccess: false, "--follow")
        let failed = failedVisit.program
        await failed.ends(1, printing: "http://127.0.0.1:1/\n")
        #expect(failed.text(.error).contains("the page of the service cannot be fetched: "))
        #expect(failed.text(.error).contains("badgectl: error: no (Card_Removed): "))
    }

    @Test("Ctrl-C while --follow waits for the page shows the address")
    func interrupted() async throws {
        let asked = AsyncStream<Void>.makeStream()
        let gate = Gate()
        let server = try WebServer { _ in
            asked.continuation.yield()
            gate.wait()
            return []
        }
        let address = "http://127.0.0.1:\(server.port)/slow"
        let visit = try Visit(address, "--follow")
        for await _ in asked.stream { break }
        visit.program.signal(SIGINT)
        #expect(await visit.program.exitCode == 130)
        #expect(visit.program.text(.output) == address + "\n")
        gate.open()
    }

    @Test("Ctrl-C before the result shows the address of a service that has the data, and fetches nothing")
    func interruptedBefore() async throws {
        let begun = AsyncStream<Void>.makeStream()
        let server = try WebServer { _ in Self.answer("200 OK", "Content-Type: text/plain\r\n", "not this") }
        let address = "http://127.0.0.1:\(server.port)/"
        let peer = try ScriptedPeer { peer in
            peer.beginAuth()
            begun.continuation.yield()
            peer.command("CANCEL")
            peer.send("{\"msg\":\"AUTH\",\"result\":{\"major\":\"x#ok\"},\"url\":\"\(address)\"}")
        }
        let visit = try Visit(peer, ["--follow"])
        for await _ in begun.stream { break }
        visit.program.signal(SIGINT)
        #expect(await visit.program.exitCode == 130)
        #expect(visit.program.text(.output) == address + "\n")
        #expect(visit.program.text(.error).contains("Cancelling.\n"))
        #expect(visit.program.text(.error).hasSuffix("error: interrupted: the service has received the data\n"))
    }

    @Test("after an error of the authentication --follow shows the page, and the exit code reports the error")
    func failed() async throws {
        let server = try WebServer { _ in Self.answer("200 OK", "Content-Type: text/plain\r\n", "Try again.") }
        let visit = try Visit("http://127.0.0.1:\(server.port)/", isSuccess: false, "--follow")
        let program = visit.program
        #expect(await program.exitCode == 1)
        #expect(program.everything.contains("Try again.\n"))
        #expect(program.text(.error).contains("(Card_Removed)"))
    }

    @Test("--open hands the address to xdg-open", arguments: [0, 3])
    func open(status: Int) async throws {
        let folder = try TemporaryFolder()
        try folder.write("xdg-open", Array("#!/bin/sh\necho \"$@\" >'\(folder.path)/opened'\nexit \(status)\n".utf8))
        chmod(folder.path + "/xdg-open", 0o755)
        let url = "https://a.example/back?ResultMajor=ok;$(id)"
        let visit = try Visit(url, "--open", path: "\(folder.path):/usr/bin:/bin")
        let program = visit.program
        #expect(await program.exitCode == (status == 0 ? 0 : 1), "\(program.everything)")
        let file = fopen(folder.path + "/opened", "r")
        defer { if let file { fclose(file) } }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = file.map { fread(&bytes, 1, bytes.count, $0) } ?? 0
        #expect(String(decoding: bytes.prefix(count), as: UTF8.self) == url + "\n")
        if status != 0 { #expect(program.text(.error).contains("xdg-open could not open the address")) }
    }

    @Test("--open without xdg-open, and an address that is no web address, are errors")
    func notOpened() async throws {
        let folder = try TemporaryFolder()
        let missingVisit = try Visit("https://a.example/", "--open", path: folder.path)
        let missing = missingVisit.program
        await missing.ends(1, saying: "there is no program xdg-open")
        let otherVisit = try Visit("file:///etc/passwd", "--open", path: folder.path)
        let other = otherVisit.program
        await other.ends(1, saying: "is not a web address")
        let bothVisit = try Visit("https://a.example/", "--open", "--follow")
        let both = bothVisit.program
        #expect(await both.exitCode == 2)
    }
}
