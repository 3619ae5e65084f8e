// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CountryAuthorities
import EID
import EIDServer
import EService
import HTTP
import Server
import TestSupport
import Text

/// One RUN_AUTH over the network to an eID-Server. The client agrees to everything and uses the default card.
@Loop struct AuthenticationRun {
    /// `ok`, or the last word of the minor result and the reason.
    let outcome: String
    /// `description` of the result: the words for the minor result.
    let description: String?
    /// `message` of the result: what happened.
    let message: String?
    let url: String?
    /// `sent` and `rights` of AUTH.
    let sent: String?
    let rights: [String]
    /// Messages that no undisturbed authentication has, such as INSERT_CARD with `error`.
    let unexpected: [JSON]

    /// Runs in the virtual reader `reader` of `server`. `grant`: the optional rights; nil: all. The client cancels when
    /// `cut` has an element.
    init(
        _ server: TestServer,
        _ url: String,
        reader: String = "Simulator",
        developerMode: Bool = false,
        grant: [String]? = nil,
        cancelAt cut: AsyncStream<Void>? = nil
    ) async throws {
        let client = try server.connect()
        let canceller = cut.map { cut in
            Task { @Loop in for await _ in cut { await client.send(#"{"cmd":"CANCEL"}"#) } }
        }
        defer { canceller?.cancel() }
        await client.send(
            #"{"cmd":"RUN_AUTH","developerMode":\#(developerMode),"reader":"\#(reader)","tcTokenURL":"\#(url)"}"#
        )
        var unexpected: [JSON] = []
        var final: JSON?
        while final == nil, let message = await client.next() {
            switch message["msg"]?.string {
            case "ACCESS_RIGHTS"
            where grant.map({ message["chat"]?["effective"]?.array?.count != $0.count + 1 }) == true:
                let names = (grant ?? []).map { "\"\($0)\"" }.joined(separator: ",")
                await client.send("{\"chat\":[\(names)],\"cmd\":\"SET_ACCESS_RIGHTS\"}")
            case "ACCESS_RIGHTS": await client.send(#"{"cmd":"ACCEPT"}"#)
            case "INSERT_CARD" where message["error"] == nil:
                await client.send(#"{"card":{},"cmd":"SET_CARD","name":"\#(reader)","simulator":{}}"#)
            case "ENTER_PIN": await client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
            case "ENTER_CAN": await client.send(#"{"cmd":"SET_CAN","value":"500540"}"#)
            case "AUTH": if message["result"] != nil { final = message }
            case "READER", "STATUS": break
            default:
                unexpected.append(message)
                await client.send(#"{"cmd":"CANCEL"}"#)
            }
        }
        // Nothing may follow the final AUTH.
        unexpected += await client.exchange().filter { !["READER", "STATUS"].contains($0["msg"]?.string) }
        client.close()
        let result = final?["result"]
        func lastWord(_ key: String) -> String {
            result?[key]?.string?.split(separator: "#").last.map(String.init) ?? "-"
        }
        outcome = lastWord("major") == "ok" ? "ok" : "\(lastWord("minor")) \(lastWord("reason"))"
        description = result?["description"]?.string
        message = result?["message"]?.string
        (self.url, self.unexpected) = (final?["url"]?.string, unexpected)
        sent = final?["sent"]?.string
        rights = final?["rights"]?.array?.compactMap(\.string) ?? []
    }
}

extension TestServer {
    /// Makes a server that reaches its services over the network and trusts the authority of `eidServer`.
    static func online(
        _ eidServer: EIDServer,
        readers: Int = 1,
        _ change: (inout EServiceConfiguration) -> Void = { _ in },
        wrap: @escaping @Sendable (any EServiceConnection) -> any EServiceConnection = { $0 }
    ) async throws -> TestServer {
        var configuration = EServiceConfiguration(
            userAgent: PAOSEnvelope.UserAgent(name: "badged", version: (0, 0, 0))
        )
        let roots = try [eidServer.authority.root, eidServer.authority.nextRoot].map { try CVCertificate($0) }
        configuration.trustAnchors = TrustAnchors(test: roots)
        // No limit is reached on a busy machine, except by a server that never ends its answer.
        let limit = Duration.seconds(90)
        (configuration.limits.connect, configuration.limits.transfer) = (limit, limit)
        (configuration.limits.phase, configuration.limits.errorReport) = (limit, limit)
        configuration.network.heartbeat = .patient
        change(&configuration)
        let final = configuration
        return try await TestServer(
            readers: readers,
            service: { url, isDeveloperMode in
                wrap(EServiceSession(tcTokenURL: url, isDeveloperMode: isDeveloperMode, final))
            }
        )
    }
}
