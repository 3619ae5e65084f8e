// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import HTTP

struct WebAddressTests {
    @Test(
        "the origin of an address is that of RFC 6454",
        arguments: [
            ("https://service.example/token?a=b", true, "service.example", 443),
            ("HTTPS://Service.EXAMPLE", true, "service.example", 443),
            ("https://service.example:8443/#part", true, "service.example", 8443),
            ("https://service.example:/", true, "service.example", 443),
            ("http://service.example", false, "service.example", 80),
            ("https://192.0.2.1:65535/x", true, "192.0.2.1", 65535),
            ("https://[2001:DB8::1]:444/x", true, "2001:db8::1", 444),
        ] as [(String, Bool, String, UInt16)]
    )
    func origin(text: String, isSecure: Bool, host: String, port: UInt16) throws {
        let origin = try #require(WebAddress(text)).origin
        #expect(origin == WebAddress.Origin(isSecure: isSecure, host: host, port: port))
    }

    @Test(
        "an address that is invalid or could hide its host is refused",
        arguments: [
            "", "https://", "https:///path", "service.example/token", "//service.example", "ftp://service.example",
            "file:///etc/passwd", "https://user@service.example", "https://service.example@evil.example/",
            "https://service.example:0", "https://service.example:65536", "https://service.example:8a",
            "https://service.example:443:1", "https://a b/", "https://service.example/\n",
            "https://service.example/\u{0}",
            "https://sérvice.example", "https://service.example\\@evil.example", "https://[::1", "https://[::1]x",
            "https://[service.example]", "https://%73ervice.example",
            "https://" + String(repeating: "a", count: 16_384),
        ]
    )
    func refused(text: String) {
        #expect(WebAddress(text) == nil)
    }

    @Test(
        "the result is appended to the query",
        arguments: [
            ("https://a.example/r", "https://a.example/r?x=1&y=2"),
            ("https://a.example/r?s=7", "https://a.example/r?s=7&x=1&y=2"),
            ("https://a.example/r?", "https://a.example/r?x=1&y=2"),
            ("https://a.example/r?s=7#top", "https://a.example/r?s=7&x=1&y=2"),
            ("https://a.example", "https://a.example?x=1&y=2"),
        ]
    )
    func query(text: String, expected: String) throws {
        #expect(try #require(WebAddress(text)).adding(query: [("x", "1"), ("y", "2")]) == expected)
    }
}
