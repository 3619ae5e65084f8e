// SPDX-License-Identifier: GPL-3.0-or-later
import Activation
import Host
import Text

/// A request in lines: method, path, host, origin, arguments. The arguments are also the answers of the daemon.
/// Only the names of this computer and allowed origins are accepted, and every header of an answer is one of ours.
@Sendable func activation(_ input: UnsafeRawBufferPointer) {
    let parts = input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    // Texts are as the server gets them from the reader of requests.
    let lines = parts.map { String(decoding: $0, as: UTF8.self) }.map { $0.isComparable ? $0 : "" }
    guard lines.count >= 4 else { return }
    let identity = ActivationIdentity(name: "badged", version: "1", fields: [("Name", "badged")])
    let rules = ActivationRules(origins: ["https://app.example"], port: 24727, identity: identity)
    let methods: [String: ActivationRequest.Method] = ["g": .get, "w": .get, "h": .head, "o": .options]
    // A target and headers of any form do not trap.
    let target = Array(lines[4...].joined(separator: "&").utf8)
    let headers = [("Host", lines[2]), ("Origin", lines[3]), ("Upgrade", lines[1]), ("Connection", lines[1])]
    _ = rules.decide(ActivationRequest("GET", target: target, headers: headers))
    let request = ActivationRequest(
        methods[lines[0]] ?? .other,
        lines[1],
        arguments: Array(lines[4...]),
        host: lines[2].isEmpty ? nil : lines[2],
        origin: lines[3].isEmpty ? nil : lines[3],
        webSocketVersion: lines[0] == "w" ? "13" : nil,
        webSocketKey: "dGhlIHNhbXBsZSBub25jZQ=="
    )
    switch rules.decide(request) {
    case .answer(let answer), .refuse(let answer, _): requireOwnHeaders(answer)
    case .upgrade:
        let own = ["http://localhost:24727", "http://127.0.0.1:24727", "http://[::1]:24727"]
        let isAllowed = lines[3].isEmpty || lines[3] == "https://app.example" || own.contains(lines[3].lowercased())
        require(isAllowed, "a page of another origin opens a WebSocket")
    case .authenticate, .showUserInterface: require(lines[0] == "g", "another method than GET starts a workflow")
    }
    for line in lines[4...] {
        let progress = Array(line.utf8).withUnsafeBytes { BrowserExchange.progress(of: $0) }
        if case .ended(let outcome) = progress { requireOwnHeaders(.end(outcome, identity)) }
    }
}

/// The bytes that badged-activation passes with each connection.
@Sendable func loopbackClient(_ input: UnsafeRawBufferPointer) {
    guard let client = LoopbackClient(bytes: Array(input)) else { return }
    require(client.bytes.elementsEqual(input), "the client of a connection is not the same after it is written")
}

private let names: Set<Substring> = [
    "Server", "Content-Type", "Content-Length", "Connection", "Cache-Control", "Pragma", "Location", "Upgrade",
    "Access-Control-Allow-Origin", "Access-Control-Allow-Private-Network", "Sec-WebSocket-Version",
]

private func requireOwnHeaders(_ answer: HTTPAnswer) {
    let isOurs = answer.headers.allSatisfy { names.contains($0.prefix { $0 != ":" }) && !$0.contains("\n") }
    require(isOurs, "an unknown header")
}
