// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

/// What `badgectl auth` takes as the address of a service.
@Suite("badgectl: the address of a service", .timeLimit(.minutes(5))) struct ServiceLinkTests {
    private static let encoded = "https%3A%2F%2Fa.example%2Ft%3Fs%3D1%26p%3D%2525"
    private static let url = "https://a.example/t?s=1&p=%25"

    @Test(
        "the address of the TcToken is found in what people copy",
        arguments: [
            "http://127.0.0.1:24727/eID-Client?tcTokenURL=\(encoded)",
            "http://localhost:24727/eID-Client?tcTokenURL=\(encoded)",
            "http://[::1]:24727/eID-Client?tcTokenURL=\(encoded)",
            "HTTP://127.0.0.1:24727/EID-CLIENT?TCTOKENURL=\(encoded)",
            "http://127.0.0.1:24727/eID-Client/?x=1&tcTokenURL=\(encoded)&y=2#z",
            "eid://127.0.0.1:24727/eID-Client?tcTokenURL=\(encoded)",
            "eid://?tcTokenURL=\(encoded)", "https://www.ausweisapp.bund.de/eID-Client?tcTokenURL=\(encoded)",
            "intent://127.0.0.1:24727/eID-Client?tcTokenURL=\(encoded)#Intent;scheme=eid;end",
            "127.0.0.1:24727/eID-Client?tcTokenURL=\(encoded)", "/eID-Client?tcTokenURL=\(encoded)",
            "tcTokenURL=\(encoded)",
            "  <http://127.0.0.1:24727/eID-Client?tcTokenURL=\(encoded)>\n", "'\(url)'", encoded,
            "https%253A%252F%252Fa.example%252Ft%253Fs%253D1%2526p%253D%252525",
            "http://127.0.0.1:24727/eID-Client\\?tcTokenURL\\=\(encoded)",
            "http://127.0.0.1:24727/eID-Client?x=1&amp;tcTokenURL=\(encoded)",
            "http://127.0.0.1:24727/eID-Client?tcTokenURL=https://a.example%2Ft%3Fs%3D1%26p%3D%2525", url,
        ]
    )
    func found(copied: String) async throws { try await authenticates(copied, at: Self.url) }

    /// Checks which address `badgectl auth` sends for an argument.
    private func authenticates(_ argument: String, at url: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.hasAnchors()
            let run = peer.command("RUN_AUTH")
            #expect(run?["tcTokenURL"]?.string == url)
            peer.send(#"{"msg":"AUTH"}"#)
            peer.send(Say.authenticated)
        }
        let program = try badgectl(peer, "auth", argument)
        #expect(await program.exitCode == 0, "\(program.everything)")
    }

    @Test(
        "an address of a service stays as it is",
        arguments: [
            "https://a.example/eID-Client", "https://a.example/t?x=tcTokenURL", "http://127.a.example/eID-Client",
            "https://a.example/t?tcTokenURL=https%3A%2F%2Fb",
            "http://a.example/t", "https://a.example/%74?a=%26#b",
            "https://a.example/t?u=http://127.0.0.1/eID-Client?tcTokenURL=x",
        ]
    )
    func kept(url: String) async throws { try await authenticates(url, at: url) }

    @Test(
        "a link without a usable address is wrong usage, and the hint says how to copy it",
        arguments: [
            (
                "http://127.0.0.1:24727/eID-Client?Status=json",
                "this link starts no authentication, because it has no tcTokenURL"
            ),
            ("http://127.0.0.1:24727/eID-Client", "this link starts no authentication, because it has no tcTokenURL"),
            ("eid://", "this link starts no authentication, because it has no tcTokenURL"),
            ("http://localhost:24727/eID-Client?tcTokenURL=", "tcTokenURL is empty in this link"),
            ("http://localhost:24727/eID-Client?tcTokenURL=&x", "tcTokenURL is empty in this link"),
            (
                "http://127.0.0.1:24727/eID-Client?tcTokenURL=https://a.example/t?s=1&p=2",
                "tcTokenURL is not percent-encoded in this link, so its end is unclear"
            ),
            (
                "http://127.0.0.1:24727/eID-Client?tcTokenURL=https%3A%2F%2Fa%2",
                "the address in this link is not percent-encoded UTF-8"
            ),
            ("tcTokenURL=%ff", "the address in this link is not percent-encoded UTF-8"), (" ", "the address is empty"),
        ]
    )
    func refused(copied: String, error: String) async throws {
        let program = try RunningProgram("badgectl", ["auth", copied])
        #expect(await program.exitCode == 2)
        #expect(
            program.text(.error) == """
                badgectl: error: \(error)
                hint: copy the whole link or the address of the TcToken, and put it in single quotes

                """
        )
    }

    @Test(
        "an address without a scheme is wrong usage",
        arguments: ["a.example/t", "a.example", "localhost:8443/t", "/t"]
    )
    func noScheme(copied: String) async throws {
        let program = try RunningProgram("badgectl", ["auth", copied])
        #expect(await program.exitCode == 2)
        #expect(
            program.text(.error) == """
                badgectl: error: the address \(copied) has no scheme
                hint: put https:// before it

                """
        )
    }

    @Test(
        "an address without https, a wrong redirect, and a missing badged-network get their own hints",
        arguments: [
            (
                "Get_TcToken_Invalid_Url", nil,
                "services have https addresses; http is for test services, with --developer-mode"
            ),
            ("Get_TcToken_Invalid_Redirect_Url", nil, "report this to the service, which must repair it"),
            ("Get_TcToken_Network_Error", "unavailable", "badgectl health says what is missing"),
            ("Get_TcToken_Network_Error", "lost", "start the authentication again"),
            (
                "Get_TcToken_Network_Error", nil,
                "check the network, and [eid] proxy in badged.conf(5); if other services work, tell this one"
            ),
        ]
    )
    func hints(reason: String, network: String?, hint: String) async throws {
        let member = network.map { #","network":"\#($0)""# } ?? ""
        let peer = try ScriptedPeer { peer in
            peer.beginAuth()
            peer.send(
                #"{"msg":"AUTH","result":{"major":"x#error","message":"X.","reason":"\#(reason)"\#(member)},"sent":"none"}"#
            )
        }
        let program = try badgectl(peer, "auth", "http://a.example/token")
        #expect(await program.exitCode == 1)
        #expect(
            program.text(.error).hasSuffix(" (\(reason)): the service got no data\nhint: \(hint)\n"),
            "\(program.everything)"
        )
    }
}
