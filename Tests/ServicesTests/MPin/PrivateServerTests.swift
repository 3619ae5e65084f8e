// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import TestSupport
import Testing
import Text

@testable import MPin

@Suite("M-Pin servers on this computer and in private networks", .timeLimit(.minutes(5)))
struct PrivateServerTests {
    @Test(
        "an address that is no host of the Internet is private",
        arguments: [
            "127.0.0.1", "127.255.0.2", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1",
            "169.254.1.1", "100.64.0.1", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1",
            "[::1]", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::127.0.0.1",
            "64:ff9b::7f00:1", "2002:7f00:1::",
        ]
    )
    func isPrivate(address: String) { #expect(PrivateAddress.isPrivate(address)) }

    @Test(
        "other addresses and names are not",
        arguments: [
            "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.0.1",
            "2606:4700::1111", "[2606:4700::1111]", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::",
            "login.example", "127.1",
        ]
    )
    func isPublic(address: String) { #expect(!PrivateAddress.isPrivate(address)) }

    @Test(
        "a server there is refused before a byte is sent, also one whose name leads there, and the text names the line",
        arguments: [
            "http://localhost:1", "http://127.0.0.2:1", "https://[::1]:1", "https://10.0.0.1",
            "https://2130706433", "https://[::ffff:10.0.0.1]",
        ]
    )
    func refused(url: String) async throws {
        let configuration = MPinConfiguration(userAgent: "badged/test")
        let connection = MPinConnection(configuration, headers: [], domains: TrustedDomains())
        let backend = try #require(Backend(url, prefix: "rps"))
        do throws(Failure) {
            _ = try await connection.settings(of: backend)
            Issue.record("the request was sent")
        } catch {
            #expect(error.status == .untrustedDomain)
            #expect(error.text.contains("private_servers = yes in [mpin]"), "\(error.text)")
        }
    }
}
