// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import EIDServer
import EService
import TestSupport
import Text
import Wire

/// One RUN_AUTH of a client that agrees to everything, with the default card, over the network to an eID-Server.
@Loop struct Run {
    /// `ok`, or the last words of minor and reason.
    let outcome: String
    /// `description` of the result: the words for `minor`.
    let description: String?
    let url: String?
    let time: Duration
    /// INSERT_CARD with `error`, and other things that nobody expects.
    let oddities: [JSON]

    /// In the virtual reader `reader` of `server`.
    init(
        _ server: TestServer,
        _ url: String,
        reader: String = "Simulator",
        developerMode: Bool = false
    ) async throws {
        let client = try server.connect()
        let start = ContinuousClock.now
        await client.send(
            #"{"cmd":"RUN_AUTH","developerMode":\#(developerMode),"reader":"\#(reader)","tcTokenURL":"\#(url)"}"#
        )
        var odd: [JSON] = []
        var final: JSON?
        while final == nil, let message = await client.next() {
            switch message["msg"]?.string {
            case "ACCESS_RIGHTS": await client.send(#"{"cmd":"ACCEPT"}"#)
            case "INSERT_CARD" where message["error"] == nil:
                await client.send(#"{"card":{},"cmd":"SET_CARD","name":"\#(reader)","simulator":{}}"#)
            case "ENTER_PIN": await client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
            case "ENTER_CAN": await client.send(#"{"cmd":"SET_CAN","value":"500540"}"#)
            case "AUTH": if message["result"] != nil { final = message }
            case "READER", "STATUS": break
            default:
                odd.append(message)
                await client.send(#"{"cmd":"CANCEL"}"#)
            }
        }
        time = ContinuousClock.now - start
        // One end, and nothing behind it.
        odd += await client.exchange().filter { !["READER", "STATUS"].contains($0["msg"]?.string) }
        client.close()
        let result = final?["result"]
        func last(_ key: String) -> String {
            result?[key]?.string?.split(separator: "#").last.map(String.init) ?? "-"
        }
        outcome = last("major") == "ok" ? "ok" : "\(last("minor")) \(last("reason"))"
        description = result?["description"]?.string
        (self.url, oddities) = (final?["url"]?.string, odd)
    }
}

extension TestServer {
    /// A server that reaches its services over the network and believes `authority`.
    static func online(
        _ eidServer: EIDServer,
        readers: Int = 1,
        _ change: (inout EServiceConfiguration) -> Void = { _ in }
    ) async throws -> TestServer {
        var configuration = EServiceConfiguration(
            userAgent: PAOSEnvelope.UserAgent(name: "badged", version: (0, 0, 0))
        )
        let roots = try [eidServer.authority.root, eidServer.authority.nextRoot].map { try CVCertificate($0) }
        configuration.trustAnchors = TrustAnchors(test: roots)
        change(&configuration)
        let final = configuration
        let server = try TestServer(
            readers: readers,
            service: { url, isDeveloperMode in
                EServiceSession(tcTokenURL: url, isDeveloperMode: isDeveloperMode, final)
            }
        )
        try await server.ready((1...readers).map { $0 == 1 ? "Simulator" : "Simulator \($0)" })
        return server
    }
}
