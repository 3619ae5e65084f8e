// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Testing
import Text

@testable import MPin

/// The status with which `read` fails.
private func status<Value: ~Copyable>(_ read: () throws(Failure) -> Value) -> MPinStatus {
    do throws(Failure) {
        _ = try read()
        return .ok
    } catch {
        return error.status
    }
}

@Suite("Backends and their settings")
struct BackendTests {
    private func settings(_ json: String, at url: String = "https://login.example/app") throws -> ClientSettings {
        ClientSettings(try #require(Backend(url, prefix: "rps")), try JSON(json.utf8))
    }

    @Test(
        "a backend is known by host, port and path",
        arguments: [
            ("https://login.example", "login.example:443"), ("http://login.example:443/", "login.example:443"),
            ("https://LOGIN.example//", "login.example:443"), ("http://login.example/a/b/", "login.example:80/a/b"),
            ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443"),
        ]
    )
    func key(url: String, key: String) throws {
        #expect(try #require(Backend(url, prefix: "rps")).key == key)
    }

    @Test(
        "an invalid address or prefix of a backend is refused",
        arguments: [
            ("", "rps"), ("login.example", "rps"), ("ftp://login.example", "rps"),
            ("https://login.example/?a=b", "rps"),
            ("https://login.example#a", "rps"), ("https://login.example", "rps?a"), ("https://login.example", "r s"),
            ("https://user@login.example", "rps"),
        ]
    )
    func refused(url: String, prefix: String) {
        #expect(Backend(url, prefix: prefix) == nil)
    }

    @Test(
        "the settings are fetched below the folder of the login server",
        arguments: [
            ("rps", "https://a.example/rps/clientSettings"), ("/rps/", "https://a.example/rps/clientSettings"),
            ("", "https://a.example/clientSettings"), ("x/y", "https://a.example/x/y/clientSettings"),
        ]
    )
    func settingsAddress(prefix: String, address: String) throws {
        #expect(try #require(Backend("https://a.example/", prefix: prefix)).settingsAddress == address)
    }

    @Test("an address that begins with a slash is appended to the backend")
    func relative() throws {
        let settings = try settings(#"{"a":"/rps/user","b":"https://other.example/x","c":"ftp://x","d":7}"#)
        #expect(try settings.address("a", "/1").text == "https://login.example/app/rps/user/1")
        #expect(try settings.address("b").text == "https://other.example/x")
        for name in ["c", "d", "e"] {
            #expect(status { () throws(Failure) in try settings.address(name) } == .responseParseError)
        }
    }

    @Test("a parameter is text, whatever its type")
    func parameters() throws {
        let settings = try settings(#"{"s":"x","n":7,"t":true,"f":false,"o":{},"a":[],"z":null,"d":1.5}"#)
        let values = ["s", "n", "t", "f", "o", "a", "z", "d", "missing"].map(settings.parameter)
        #expect(values == ["x", "7", "true", "false", "", "", "", "", ""])
    }

    @Test(
        "the check digit of an access number",
        arguments: [
            ("3692434", true), ("3692435", false), ("369243", false), ("36924344", false), ("369243a", false),
            ("", false),
            ("٣٦٩٢٤٣٤", false),
        ]
    )
    func checkDigit(number: String, isRight: Bool) throws {
        let with = #"{"accessNumberUseCheckSum":true,"accessNumberDigits":7,"cSum":1}"#
        #expect(try settings(with).accepts(accessNumber: number) == isRight)
        let without = try settings(#"{"accessNumberUseCheckSum":false,"accessNumberDigits":6}"#)
        #expect(without.accepts(accessNumber: number) == !number.isEmpty)
    }
}

@Suite("Allowed hosts of requests")
struct TrustTests {
    private func status(_ domains: [String], _ url: String) throws -> MPinStatus {
        var trusted = TrustedDomains()
        for domain in domains {
            let isAdded = trusted.add(domain)
            #expect(isAdded)
        }
        let address = try #require(WebAddress(url))
        do throws(Failure) {
            try trusted.check(address)
            return .ok
        } catch {
            return error.status
        }
    }

    @Test(
        "only https in trusted domains, and http to this computer if there are none",
        arguments: [
            ([], "https://a.example/", .ok), ([], "http://a.example/", .untrustedDomain),
            ([], "http://127.0.0.1:8000/", .ok), ([], "http://localhost/", .ok), ([], "http://[::1]/", .ok),
            ([], "http://127.0.0.1.example/", .untrustedDomain), ([], "http://127.1.example.org/", .untrustedDomain),
            (["example.org"], "https://example.org/", .ok), (["example.org"], "https://a.EXAMPLE.org/", .ok),
            (["Example.org"], "https://badexample.org/", .untrustedDomain),
            (["example.org"], "http://example.org/", .untrustedDomain),
            (["example.org"], "http://127.0.0.1/", .untrustedDomain),
            (["a.example", "b.example"], "https://b.example:8443/", .ok),
        ] as [([String], String, MPinStatus)]
    )
    func trust(domains: [String], url: String, status: MPinStatus) throws {
        #expect(try self.status(domains, url) == status)
    }

    @Test("a domain is the name of a host", arguments: ["", "https://a.example", "a.example/b", "a.example:80", "a b"])
    func noDomain(text: String) {
        var domains = TrustedDomains()
        let isAdded = domains.add(text)
        #expect(!isAdded)
    }

    @Test(
        "a header that is malformed or belongs to the connection is refused",
        arguments: [
            ("", "x"), ("A B", "x"), ("A:", "x"), ("A", "x\r\nB: y"), ("Ä", "x"), ("Host", "x"),
            ("content-length", "1"),
            ("Transfer-Encoding", "x"), ("A", "\u{7F}"), ("A", String(repeating: "x", count: 4097)),
        ]
    )
    func header(name: String, value: String) {
        #expect(CustomHeader(name, value) == nil)
    }
}

@Suite("Answers of servers")
struct ReplyTests {
    private static let answer = #"{"a":"xy","b":"","n":7,"t":true,"h":"00ff","e":"\u0030\u0030ff","a2":["x"],"s":1.5}"#

    @Test("members with the right type are read")
    func members() throws {
        let answer = try ServerAnswer(Array(Self.answer.utf8))
        #expect(try answer.string("a", limit: 2) == "xy")
        #expect(try answer.int("n") == 7)
        #expect(try answer.bool("t"))
        #expect(try answer.secret("h", count: 2).withBytes { Array($0) } == [0, 255])
        #expect(answer.bytes() == Array(Self.answer.utf8))
        #expect(answer.text("n", "a", limit: 2) == "xy")
        #expect(answer.text("missing", "n", limit: 2) == "")
        #expect(answer.text("a", limit: 1) == "")
        #expect(answer.has("n") && !answer.has("missing"))
        #expect(answer.object("a2") == nil)
    }

    @Test("other members are refused by name")
    func wrongMembers() throws {
        let answer = try ServerAnswer(Array(Self.answer.utf8))
        #expect(status { () throws(Failure) in try answer.string("missing", limit: 9) } == .responseParseError)
        #expect(status { () throws(Failure) in try answer.string("b", limit: 9) } == .responseParseError)
        #expect(status { () throws(Failure) in try answer.string("n", limit: 9) } == .responseParseError)
        #expect(status { () throws(Failure) in try answer.string("a", limit: 1) } == .responseParseError)
        #expect(status { () throws(Failure) in try answer.int("a") } == .responseParseError)
        #expect(status { () throws(Failure) in try answer.int("s") } == .responseParseError)
        #expect(status { () throws(Failure) in try answer.bool("n") } == .responseParseError)
        #expect(status { () throws(Failure) in try answer.secret("a2", count: 2) } == .responseParseError)
        #expect(status { () throws(Failure) in try answer.secret("h", count: 3) } == .cryptoError)
        #expect(status { () throws(Failure) in try answer.secret("a", count: 1) } == .cryptoError)
        #expect(status { () throws(Failure) in try answer.secret("e", count: 2) } == .cryptoError)
    }

    @Test("only an object is an answer", arguments: ["", "[]", "7", "{", "{}x", "[{}]", "nul"])
    func noObject(text: String) {
        #expect(status { () throws(Failure) in try ServerAnswer(Array(text.utf8)) } == .responseParseError)
    }
}
