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
        "only localhost, 127.0.0.0/8 and ::1 are this computer",
        arguments: [
            ("localhost", true), ("LOCALHOST", true), ("127.0.0.1", true), ("127.0.0.2", true), ("127.255.0.9", true),
            ("[::1]", true), ("[0:0:0:0:0:0:0:1]", true),
            ("128.0.0.1", false), ("127.1", false), ("127.0.0.1.example", false), ("127.0.0.256", false),
            ("localhost.example", false), ("[::2]", false), ("[::]", false), ("[::ffff:127.0.0.1]", false),
            ("[2001:db8::1]", false), ("0.0.0.0", false), ("2130706433", false),
        ]
    )
    func loopback(host: String, expected: Bool) throws {
        let address = try #require(WebAddress("http://\(host):8080/x"))
        #expect(address.isConfidential == expected)
        #expect(try #require(WebAddress("https://\(host)/x")).isConfidential)
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

    @Test(
        "a reference is resolved as in the examples of RFC 3986, 5.4",
        arguments: [
            // 5.4.1. The fragment is not kept.
            ("g:h", nil), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"), ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y"),
            ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
            ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
            ("../../g", "http://a/g"),
            // 5.4.2
            ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
            ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/./x", "http://a/b/c/g"), ("g#s/../x", "http://a/b/c/g"),
            ("http:g", nil),
        ] as [(String, String?)]
    )
    func examples(reference: String, expected: String?) throws {
        #expect(try #require(WebAddress("http://a/b/c/d;p?q")).resolving(reference)?.text == expected)
    }

    @Test(
        "scheme and authority of a reference replace those of the base, and pass the same checks",
        arguments: [
            ("https://a.example", "t?x", "https://a.example/t?x"), ("https://a.example", "", "https://a.example"),
            ("https://a.example?q", "t", "https://a.example/t"), ("https://a.example?q", "?", "https://a.example?"),
            ("https://a.example:8443/x", "/t", "https://a.example:8443/t"),
            ("https://a.example:8443/x", "//b.example/t", "https://b.example/t"),
            ("https://a.example/x", "//b.example:444", "https://b.example:444"),
            ("https://[2001:db8::1]:444/x/y", "../t", "https://[2001:db8::1]:444/t"),
            ("https://a.example/x", "//[::1]/./t", "https://[::1]/t"),
            ("https://a.example/x", "HTTP://b.example/t", "HTTP://b.example/t"),
            ("https://a.example/x", "https://b.example/u/../t#p", "https://b.example/t"),
            ("https://a.example/x//y/z", "../t", "https://a.example/x//t"),
            ("https://a.example/x/", "%2e%2e/%2Ft?%23", "https://a.example/x/%2e%2e/%2Ft?%23"),
            ("https://a.example/x?a=/b/", "t", "https://a.example/t"),
            ("https://a.example/x/y", "t?u=https://b.example/", "https://a.example/x/t?u=https://b.example/"),
            ("https://a.example/x", "./a:b", "https://a.example/a:b"),
        ]
    )
    func authorities(base: String, reference: String, expected: String) throws {
        #expect(try #require(WebAddress(base)).resolving(reference)?.text == expected)
    }

    @Test(
        "a reference that leads to no web address is refused",
        arguments: [
            "//", "///t", "https:", "https:t", "https:///t", "//user@b.example/", "//b.example:0/", "//b.example:x/",
            "//[::1", "ftp://b.example/", "javascript:alert(1)", "mailto:a@b.example", "a:b", "/a b", "/\u{7F}", "/ä",
            "/a\nb", "\\t", "/<t>", "//b.example\\@c.example/", "/\u{0}", "/" + String(repeating: "a", count: 16_384),
        ]
    )
    func refusedReference(text: String) throws {
        #expect(try #require(WebAddress("https://a.example/x")).resolving(text) == nil)
    }
}
