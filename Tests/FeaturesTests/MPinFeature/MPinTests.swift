// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import HTTP
import Host
import Store
import TestSupport
import Testing
import Text

@Suite("M-Pin against the double of its servers", .timeLimit(.minutes(5)))
@Loop struct MPinDialogueTests {
    private let stage: MPinStage

    init() async throws { stage = try await MPinStage() }

    @Test("a user registers and logs in, also after badged has been started again")
    func wholeWay() async throws {
        #expect(await stage.setBackend() == "OK")
        let made = await stage.run("MPIN_MAKE_USER", #"\#(stage.who),"deviceName":"laptop""#)
        #expect(made["user"]?["state"]?.string == "INVALID")
        let started = await stage.run("MPIN_START_REGISTRATION", #"\#(stage.who),"userData":"x","activateCode":"1""#)
        #expect(started["user"]?["state"]?.string == "ACTIVATED")
        #expect(started["user"]?["registrationExpiration"]?.string == "2026-11-22T10:14:38.848642")
        let device = try await stage.servers.lab(.get, "devices")[stage.user]
        #expect(device == (try JSON(#"{"deviceName":"laptop","userData":"x","activateCode":"1"}"#.utf8)))
        #expect(await stage.status("MPIN_CONFIRM_REGISTRATION", stage.who) == "OK")
        let finished = await stage.run("MPIN_FINISH_REGISTRATION", stage.who, pin: "7391")
        #expect(finished["user"]?["state"]?.string == "REGISTERED")
        let result = await stage.logIn(pin: "7391")
        #expect(result.status == "OK")
        let data = try JSON(try #require(result["authResultData"]?.string).utf8)
        #expect(data["userId"]?.string == stage.user)
        #expect(result["canLogout"] == .bool(false))

        let later = try await MPinStage(after: stage)
        #expect(await later.setBackend() == "OK")
        #expect(await later.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        #expect(await later.status("MPIN_FINISH_AUTHENTICATION", stage.who, pin: "7391") == "OK")
        #expect(!stage.server.logged.contains { $0.contains("7391") })
        #expect(!stage.client.hasReceived("7391"))
    }

    @Test("the third wrong PIN blocks the user and deletes the token")
    func wrongPIN() async throws {
        await stage.register()
        for _ in 0..<2 {
            #expect(await stage.logIn(pin: "4321").status == "INCORRECT_PIN")
            #expect(await stage.state() == "REGISTERED")
        }
        let last = await stage.logIn(pin: "4321")
        #expect(last.status == "INCORRECT_PIN")
        #expect(last["user"]?["state"]?.string == "BLOCKED")
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_FINISH_AUTHENTICATION", stage.who) == "FLOW_ERROR")
        let store = try #require(stage.store)
        #expect(try await store.names(in: StoreSpace("mpin tokens")) == [])
    }

    @Test("a one-time code has its times in seconds")
    func otp() async throws {
        await stage.register()
        let otp = try #require(await stage.logIn(#""mode":"OTP""#)["otp"])
        #expect(otp["otp"]?.string?.utf8.count == 6)
        #expect(otp["ttlSeconds"]?.int == 60)
        let (now, end) = (try #require(otp["nowTime"]?.int), try #require(otp["expireTime"]?.int))
        #expect(end - now == 60)
        let other = try await MPinStage("bob+notimes")
        await other.register()
        #expect(await other.logIn(#""mode":"OTP""#).status == "FLOW_ERROR")
    }

    @Test("a server without time permits is served, too")
    func withoutPermits() async throws {
        let url = stage.servers.url("nopermits")
        await stage.register(at: url)
        #expect(await stage.logIn().status == "OK")
        #expect(try await stage.servers.paths(below: url).allSatisfy { !$0.contains("timePermit") })
    }

    @Test("an access number logs a browser in, and the user out again")
    func accessNumber() async throws {
        await stage.register()
        let number = try #require(try await stage.servers.send(.post, "/rps/getAccessNumber")["accessNumber"]?.string)
        #expect(await stage.status("MPIN_CHECK_ACCESS_NUMBER", #""accessNumber":"\#(number)""#) == "OK")
        #expect(await stage.status("MPIN_LOGOUT", stage.who) == "FLOW_ERROR")
        let result = await stage.logIn(#""mode":"AN","accessNumber":"\#(number)""#)
        #expect(result.status == "OK")
        #expect(result["canLogout"] == .bool(true))
        #expect(await stage.status("MPIN_LOGOUT", stage.who) == "OK")
        #expect(await stage.status("MPIN_LOGOUT", stage.who) == "FLOW_ERROR")
    }

    @Test("a wrong access number is refused before the PIN is asked, an unknown one by the server")
    func wrongAccessNumber() async throws {
        await stage.register()
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        let wrong = #"\#(stage.who),"mode":"AN","accessNumber":"3692435""#
        #expect(await stage.status("MPIN_FINISH_AUTHENTICATION", wrong) == "INCORRECT_ACCESS_NUMBER")
        #expect(
            await stage.status("MPIN_CHECK_ACCESS_NUMBER", #""accessNumber":"3692435""#) == "INCORRECT_ACCESS_NUMBER"
        )
        #expect(!stage.client.hasReceived("ENTER_PIN"))
        let unknown = #"\#(stage.who),"mode":"AN","accessNumber":"0000000""#
        #expect(await stage.status("MPIN_FINISH_AUTHENTICATION", unknown) == "INCORRECT_ACCESS_NUMBER")
    }

    @Test("a registration that must be confirmed is not verified before")
    func activation() async throws {
        let stage = try await MPinStage("carol+link")
        #expect(await stage.setBackend() == "OK")
        #expect(await stage.status("MPIN_MAKE_USER", stage.who) == "OK")
        let user = await stage.run("MPIN_START_REGISTRATION", stage.who)["user"]
        #expect(user?["state"]?.string == "STARTED_REGISTRATION")
        #expect(await stage.status("MPIN_CONFIRM_REGISTRATION", stage.who) == "IDENTITY_NOT_VERIFIED")
        let id = try #require(user?["mpinId"]?.string)
        #expect(await stage.run("MPIN_RESTART_REGISTRATION", stage.who)["user"]?["mpinId"]?.string == id)
        try await stage.servers.lab(.post, "activate/\(id)")
        await stage.succeed("MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION")
        #expect(await stage.logIn().status == "OK")
    }

    @Test("the share that is served once is kept until the other one is there")
    func shareServedOnce() async throws {
        let url = stage.servers.url("secret-503@1")
        #expect(await stage.setBackend(url) == "OK")
        await stage.succeed("MPIN_MAKE_USER", "MPIN_START_REGISTRATION")
        #expect(await stage.status("MPIN_CONFIRM_REGISTRATION", stage.who) == "HTTP_SERVER_ERROR")
        await stage.succeed("MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION")
        #expect(try await stage.servers.paths(below: url).count { $0.contains("/signature/") } == 1)
    }

    @Test("CANCEL at the question for the PIN is PIN_INPUT_CANCELED, and nothing is sent")
    func cancelledPIN() async throws {
        let url = stage.servers.url("none")
        await stage.register(at: url)
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        let before = try await stage.servers.paths(below: url).count
        let question = await stage.client.ask(#"{"cmd":"MPIN_FINISH_AUTHENTICATION",\#(stage.who)}"#, "ENTER_PIN")
        #expect(question?["userId"]?.string == stage.user)
        #expect(question?["pinLength"]?.int == 4)
        let refused = await stage.client.ask(#"{"cmd":"SET_PIN","value":"12345"}"#, "ENTER_PIN")
        #expect(refused?["error"]?.string == "You must provide 4 digits")
        let result = await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MPIN_RESULT")
        #expect(result?.status == "PIN_INPUT_CANCELED")
        #expect(try await stage.servers.paths(below: url).count == before)
        #expect(await stage.status("MPIN_FINISH_AUTHENTICATION", stage.who) == "OK")
    }

    @Test("CANCEL ends the wait for a server that hangs")
    func cancelledRequest() async throws {
        _ = await stage.run("MPIN_INIT")
        let command = #"{"cmd":"MPIN_TEST_BACKEND","url":"\#(stage.servers.url("settings-hang"))"}"#
        _ = await stage.client.ask(command, "MPIN_STARTED")
        #expect(await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MPIN_RESULT")?.status == "NETWORK_ERROR")
    }

    // MARK: Status codes

    private struct Case: Sendable {
        let fault: String
        let command: String
        let status: String

        init(_ fault: String, _ command: String, _ status: String) {
            (self.fault, self.command, self.status) = (fault, "MPIN_" + command, status)
        }
    }

    private nonisolated static let cases = [
        Case("settings-404", "SET_BACKEND", "HTTP_REQUEST_ERROR"),
        Case("settings-500", "SET_BACKEND", "HTTP_SERVER_ERROR"),
        Case("settings-406", "SET_BACKEND", "BAD_USER_AGENT"),
        Case("settings-redirect", "SET_BACKEND", "NETWORK_ERROR"),
        Case("settings-drop", "SET_BACKEND", "NETWORK_ERROR"),
        Case("settings-nojson", "SET_BACKEND", "RESPONSE_PARSE_ERROR"),
        Case("settings-array", "SET_BACKEND", "RESPONSE_PARSE_ERROR"),
        Case("settings-huge", "SET_BACKEND", "RESPONSE_PARSE_ERROR"),
        Case("settings-no-registerURL", "SET_BACKEND", "RESPONSE_PARSE_ERROR"),
        Case("settings-null-signatureURL", "SET_BACKEND", "RESPONSE_PARSE_ERROR"),
        Case("settings-number-authenticateURL", "SET_BACKEND", "RESPONSE_PARSE_ERROR"),
        Case("register-403", "START_REGISTRATION", "IDENTITY_NOT_AUTHORIZED"),
        Case("register-406", "START_REGISTRATION", "BAD_USER_AGENT"),
        Case("register-no-mpinId", "START_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        Case("register-letters-mpinId", "START_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        Case("register-long-mpinId", "START_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        Case("register-long-regOTT", "START_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        Case("register-null-active", "START_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        Case("signature-400", "CONFIRM_REGISTRATION", "IDENTITY_NOT_VERIFIED"),
        Case("signature-401", "CONFIRM_REGISTRATION", "IDENTITY_NOT_VERIFIED"),
        Case("signature-no-params", "CONFIRM_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        Case("signature-long-params", "CONFIRM_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        Case("signature-short-clientSecretShare", "CONFIRM_REGISTRATION", "CRYPTO_ERROR"),
        Case("signature-offcurve-clientSecretShare", "CONFIRM_REGISTRATION", "CRYPTO_ERROR"),
        Case("secret-408", "CONFIRM_REGISTRATION", "REQUEST_EXPIRED"),
        Case("secret-401", "CONFIRM_REGISTRATION", "HTTP_REQUEST_ERROR"),
        Case("secret-offcurve-clientSecret", "CONFIRM_REGISTRATION", "CRYPTO_ERROR"),
        Case("secret-number-clientSecret", "CONFIRM_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        Case("permit-410", "START_AUTHENTICATION", "REVOKED"),
        Case("permit-403", "START_AUTHENTICATION", "HTTP_REQUEST_ERROR"),
        Case("permit-number-date", "START_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
        Case("permit-no-date", "START_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
        Case("permit-letters-storageId", "START_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
        Case("permit-long-signature", "START_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
        Case("permit-redirect", "START_AUTHENTICATION", "NETWORK_ERROR"),
        Case("permit2-410", "START_AUTHENTICATION", "REVOKED"),
        Case("permit2-zero-timePermit", "START_AUTHENTICATION", "CRYPTO_ERROR"),
        Case("pass1-403", "FINISH_AUTHENTICATION", "HTTP_REQUEST_ERROR"),
        Case("pass1-zero-y", "FINISH_AUTHENTICATION", "CRYPTO_ERROR"),
        Case("pass1-no-y", "FINISH_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
        Case("pass2-500", "FINISH_AUTHENTICATION", "HTTP_SERVER_ERROR"),
        Case("pass2-drop", "FINISH_AUTHENTICATION", "NETWORK_ERROR"),
        Case("pass2-long-authOTT", "FINISH_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
        Case("pass2-huge", "FINISH_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
        Case("pass2-no-authOTT", "FINISH_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
        Case("login-403", "FINISH_AUTHENTICATION", "IDENTITY_NOT_AUTHORIZED"),
        Case("login-408", "FINISH_AUTHENTICATION", "REQUEST_EXPIRED"),
        Case("login-409", "FINISH_AUTHENTICATION", "CLIENT_SECRET_EXPIRED"),
        Case("login-401", "FINISH_AUTHENTICATION", "INCORRECT_PIN"),
        Case("login-nojson", "FINISH_AUTHENTICATION", "RESPONSE_PARSE_ERROR"),
    ]

    /// The commands of a dialogue in order, without MPIN_MAKE_USER.
    private nonisolated static let commands = [
        "MPIN_SET_BACKEND", "MPIN_START_REGISTRATION", "MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION",
        "MPIN_START_AUTHENTICATION", "MPIN_FINISH_AUTHENTICATION",
    ]

    /// What comes before each further try of a command.
    private nonisolated static let preparations = [
        "MPIN_CONFIRM_REGISTRATION": "MPIN_RESTART_REGISTRATION",
        "MPIN_FINISH_AUTHENTICATION": "MPIN_START_AUTHENTICATION",
    ]

    @Test(
        "what a server does wrong ends with its status, and the dialogue goes on",
        arguments: ["settings", "register", "signature", "secret", "permit", "permit2", "pass1", "pass2", "login"]
    )
    func statusCodes(point: String) async throws {
        let cases = Self.cases.filter { $0.fault.hasPrefix(point + "-") }
        let command = try #require(cases.first?.command)
        let members = #"\#(stage.who),"url":"\#(stage.servers.url(oneByOne: cases.map(\.fault)))""#
        _ = await stage.run("MPIN_INIT")
        func fail() async throws {
            for (number, wanted) in cases.enumerated() {
                if number > 0, let preparation = Self.preparations[command] {
                    #expect(await stage.status(preparation, members) == "OK", "before \(wanted.fault)")
                }
                let result = await stage.run(command, members)
                #expect(result.status == wanted.status, "\(wanted.fault)")
                #expect(result["errorMessage"]?.string?.isEmpty == false)
            }
            #expect(try await stage.servers.lab(.get, "tries")[stage.user]?.int ?? 0 == 0, "a try is lost")
            if let preparation = Self.preparations[command] {
                #expect(await stage.status(preparation, members) == "OK")
            }
        }
        for step in Self.commands {
            if step == command { try await fail() }
            #expect(await stage.status(step, members) == "OK", "\(step)")
            if step == "MPIN_SET_BACKEND" { #expect(await stage.status("MPIN_MAKE_USER", stage.who) == "OK") }
        }
    }

    @Test("MPIN_TEST_BACKEND refuses what MPIN_SET_BACKEND refuses", arguments: ["no-authenticateURL", "empty"])
    func testedBackend(fault: String) async throws {
        _ = await stage.run("MPIN_INIT")
        let url = #""url":"\#(stage.servers.url("settings-\(fault)"))""#
        #expect(await stage.status("MPIN_TEST_BACKEND", url) == "RESPONSE_PARSE_ERROR")
    }

    @Test("a user is not registered at a host that is not the backend's")
    func foreignHost() async throws {
        #expect(await stage.setBackend(stage.servers.url("settings-foreign")) == "OK")
        #expect(await stage.status("MPIN_MAKE_USER", stage.who) == "OK")
        #expect(await stage.status("MPIN_START_REGISTRATION", stage.who) == "UNTRUSTED_DOMAIN_ERROR")
    }

    @Test(
        "when the storage of time permits fails, the trust authority is asked",
        arguments: [
            "storage-404", "storage-drop", "storage-redirect", "storage-empty", "storage-garbage", "storage-short",
            "storage-long", "storage-offcurve", "storage-nojson", "storage-huge", "storage-tls",
        ]
    )
    func storageFaults(fault: String) async throws {
        let url = stage.servers.url(fault)
        await stage.register(at: url)
        #expect(await stage.logIn().status == "OK")
        #expect(try await stage.servers.paths(below: url).contains { $0.hasPrefix("/dta/timePermit") })
    }

    @Test("the storage of time permits spares the trust authority")
    func storage() async throws {
        let url = stage.servers.url("storage")
        await stage.register(at: url)
        #expect(await stage.logIn().status == "OK")
        #expect(try await !stage.servers.paths(below: url).contains { $0.hasPrefix("/dta/timePermit") })
    }

    @Test("after a wrong PIN the share of the time permit comes from the trust authority")
    func wrongShare() async throws {
        let url = stage.servers.url("storage-other")
        await stage.register(at: url)
        // Only the login service can tell that the stored share is wrong.
        #expect(await stage.logIn().status == "INCORRECT_PIN")
        #expect(await stage.logIn().status == "OK")
        #expect(try await stage.servers.paths(below: url).count { $0.hasPrefix("/dta/timePermit") } == 1)
        #expect(await stage.logIn().status == "OK")
        #expect(try await stage.servers.paths(below: url).count { $0.hasPrefix("/dta/timePermit") } == 1)
    }

    @Test("a permit that another connection holds is not used after a wrong PIN")
    func heldPermit() async throws {
        await stage.register()
        let other = try await stage.otherClient()
        #expect(await stage.run("MPIN_START_AUTHENTICATION", stage.who, by: other).status == "OK")
        #expect(await stage.logIn(pin: "9999").status == "INCORRECT_PIN")
        #expect(await stage.run("MPIN_FINISH_AUTHENTICATION", stage.who, by: other).status == "FLOW_ERROR")
    }

    @Test("a login may be answered without a body")
    func emptyLogin() async throws {
        await stage.register(at: stage.servers.url("login-empty"))
        let login = await stage.logIn()
        #expect(login.status == "OK")
        #expect(login["authResultData"]?.string == "")
        #expect(await stage.logIn(#""mode":"OTP""#).status == "FLOW_ERROR")
    }

    @Test("a browser can be logged out by another connection")
    func logoutElsewhere() async throws {
        await stage.register()
        let number = try #require(try await stage.servers.send(.post, "/rps/getAccessNumber")["accessNumber"]?.string)
        #expect(await stage.logIn(#""mode":"AN","accessNumber":"\#(number)""#)["canLogout"] == .bool(true))
        let other = try await stage.otherClient()
        #expect(await stage.run("MPIN_LOGOUT", stage.who, by: other).status == "OK")
        #expect(await stage.status("MPIN_LOGOUT", stage.who) == "FLOW_ERROR")
    }

    @Test("users are those of the backend of the connection")
    func usersOfBackend() async throws {
        let urls = ["one", "two"].map { stage.servers.url($0) }
        for url in urls {
            #expect(await stage.setBackend(url) == "OK")
            #expect(await stage.status("MPIN_MAKE_USER", stage.who) == "OK")
            #expect(await stage.run("MPIN_USERS")["users"]?.array?.map { $0["backend"]?.string } == [url])
        }
        #expect(await stage.run("MPIN_USERS", #""url":"\#(urls[0])""#)["users"]?.array?.count == 1)
        _ = await stage.run("MPIN_INIT")
        #expect(await stage.run("MPIN_USERS")["users"]?.array?.count == 2)
    }

    // MARK: Users

    @Test("a user belongs to the user of the system who has made it")
    func foreignUser() async throws {
        await stage.register()
        let other = try await stage.otherClient(uid: 1001)
        #expect(await stage.run("MPIN_USERS", by: other)["users"]?.array == [])
        #expect(await stage.run("MPIN_BACKENDS", by: other)["backends"]?.array == [])
        #expect(await stage.run("MPIN_START_AUTHENTICATION", stage.who, by: other).status == "FLOW_ERROR")
        #expect(await stage.run("MPIN_DELETE_USER", stage.who, by: other).status == "FLOW_ERROR")
        #expect(await stage.state() == "REGISTERED")
        let nobody = try stage.server.connect(uid: nil, .all)
        _ = await stage.run("MPIN_INIT", by: nobody)
        #expect(await stage.run("MPIN_USERS", by: nobody).status == "STORAGE_ERROR")
    }

    @Test("users are listed, found, and deleted with their tokens")
    func list() async throws {
        await stage.register()
        #expect(await stage.status("MPIN_MAKE_USER", stage.who) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_MAKE_USER", #""userId":"second""#) == "OK")
        let names = await stage.run("MPIN_USERS")["users"]?.array?.compactMap { $0["userId"]?.string }
        #expect(names == [stage.user, "second"])
        #expect(await stage.run("MPIN_USERS", #""userId":"third""#)["users"]?.array == [])
        let backends = await stage.run("MPIN_BACKENDS")["backends"]?.array
        #expect(backends?.map { $0["url"]?.string } == [stage.servers.url])
        let elsewhere = #""url":"https://other.example""#
        #expect(await stage.run("MPIN_USERS", elsewhere)["users"]?.array == [])
        #expect(await stage.status("MPIN_DELETE_USER", #"\#(stage.who),\#(elsewhere)"#) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_DELETE_USER", stage.who) == "OK")
        #expect(await stage.status("MPIN_DELETE_USER", stage.who) == "FLOW_ERROR")
        #expect(await stage.state() == nil)
        let store = try #require(stage.store)
        #expect(try await store.names(in: StoreSpace("mpin tokens")) == [])
    }

    @Test("without a store nothing is registered")
    func noStore() async throws {
        let stage = try await MPinStage(broken: StateStore { nil })
        #expect(await stage.setBackend() == "OK")
        #expect(await stage.status("MPIN_MAKE_USER", stage.who) == "STORAGE_ERROR")
        let broken = try await MPinStage(broken: StateStore { () throws(Failure) in throw .storeNewer })
        #expect(await broken.setBackend() == "OK")
        #expect(await broken.status("MPIN_USERS") == "STORAGE_ERROR")
    }

    // MARK: The client

    @Test("each command needs MPIN_INIT, and most of them a backend")
    func order() async throws {
        let all = [
            "DESTROY", "SET_HEADERS", "TRUSTED_DOMAINS", "TEST_BACKEND", "SET_BACKEND", "CLIENT_PARAM",
            "CHECK_ACCESS_NUMBER", "MAKE_USER", "USERS", "BACKENDS", "DELETE_USER", "START_REGISTRATION",
            "RESTART_REGISTRATION", "CONFIRM_REGISTRATION", "FINISH_REGISTRATION", "START_AUTHENTICATION",
            "FINISH_AUTHENTICATION", "LOGOUT",
        ]
        let members = #""url":"\#(stage.servers.url)","userId":"x","key":"appID","accessNumber":"3692434""#
        for command in all { #expect(await stage.status("MPIN_\(command)", members) == "FLOW_ERROR", "\(command)") }
        _ = await stage.run("MPIN_INIT")
        for command in all[5...] where !["USERS", "BACKENDS", "DELETE_USER"].contains(command) {
            #expect(await stage.status("MPIN_\(command)", members) == "FLOW_ERROR", "\(command)")
        }
        #expect(await stage.status("MPIN_TEST_BACKEND", members) == "OK")
        #expect(await stage.status("MPIN_CLIENT_PARAM", members) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_SET_BACKEND", members) == "OK")
        #expect(await stage.run("MPIN_CLIENT_PARAM", #""key":"cSum""#)["value"]?.string == "1")
        #expect(await stage.status("MPIN_DESTROY") == "OK")
        #expect(await stage.status("MPIN_USERS") == "FLOW_ERROR")
    }

    @Test("headers of the client go to the server, unless they are reserved")
    func headers() async throws {
        let url = stage.servers.url("none")
        #expect(await stage.status("MPIN_INIT", #""headers":{"Host":"x"}"#) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_INIT", #""headers":{"X-One":"1","User-Agent":"mine"}"#) == "OK")
        #expect(await stage.status("MPIN_SET_HEADERS", #""add":{"X-Two":"a\r\nb"}"#) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_SET_HEADERS", #""add":{"X-Two":"2"}"#) == "OK")
        #expect(await stage.status("MPIN_TEST_BACKEND", #""url":"\#(url)""#) == "OK")
        #expect(await stage.status("MPIN_SET_HEADERS", #""clear":true"#) == "OK")
        #expect(await stage.status("MPIN_TEST_BACKEND", #""url":"\#(url)""#) == "OK")
        let path = try #require(url.split(separator: ":\(stage.servers.port)").last)
        let requests = try await stage.servers.lab(.get, "requests?home=\(path)")["requests"]?.array
        let first = try #require(requests?.first?["headers"])
        #expect(["X-One", "X-Two", "User-Agent"].map { first[$0]?.string } == ["1", "2", "mine"])
        let second = try #require(requests?.last?["headers"])
        #expect(["X-One", "X-Two", "User-Agent"].map { second[$0]?.string } == [nil, nil, "badged/test"])
    }

    @Test("with trusted domains every other host is refused before anything is sent")
    func trustedDomains() async throws {
        let url = #""url":"\#(stage.servers.url)""#
        #expect(await stage.setBackend() == "OK")
        #expect(await stage.status("MPIN_TRUSTED_DOMAINS", #""add":["a b"]"#) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_TRUSTED_DOMAINS", #""add":["example.org"]"#) == "OK")
        let refused = await stage.run("MPIN_TEST_BACKEND", url)
        #expect(refused.status == "UNTRUSTED_DOMAIN_ERROR")
        #expect(refused["status"]?.int == 17)
        #expect(await stage.status("MPIN_TRUSTED_DOMAINS", #""clear":true"#) == "OK")
        #expect(await stage.status("MPIN_TEST_BACKEND", url) == "OK")
    }

    @Test("without the permission each command is denied")
    func permission() async throws {
        let client = try stage.server.connect(uid: 1000, [.readers, .cards])
        for command in ["MPIN_INIT", "MPIN_USERS", "MPIN_SET_BACKEND"] {
            #expect(await stage.run(command, by: client)["msg"]?.string == "ACCESS_DENIED")
        }
    }

    @Test("no second dialogue runs with a user, and none in a connection with a workflow")
    func busy() async throws {
        await stage.register()
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        let line = #"{"cmd":"MPIN_FINISH_AUTHENTICATION",\#(stage.who)}"#
        _ = await stage.client.ask(line, "ENTER_PIN")
        #expect(await stage.client.ask(#"{"cmd":"MPIN_USERS"}"#, "BAD_STATE") != nil)
        let other = try await stage.otherClient()
        #expect(await stage.run("MPIN_START_AUTHENTICATION", stage.who, by: other).status == "FLOW_ERROR")
        #expect(await stage.run("MPIN_DELETE_USER", stage.who, by: other).status == "FLOW_ERROR")
        #expect(await stage.client.ask(#"{"cmd":"SET_PIN","value":"1234"}"#, "MPIN_RESULT")?.status == "OK")
    }

    @Test(
        "a member of a wrong form is refused by name",
        arguments: [
            ("MPIN_MAKE_USER", #""userId":"""#, "userId"), ("MPIN_MAKE_USER", #""userId":7"#, "userId"),
            ("MPIN_MAKE_USER", #""userId":"x","deviceName":[]"#, "deviceName"),
            ("MPIN_SET_BACKEND", #""url":"ftp://x""#, "url"), ("MPIN_SET_BACKEND", "", "url"),
            ("MPIN_TRUSTED_DOMAINS", #""add":[7]"#, "add"), ("MPIN_SET_HEADERS", #""add":{"A":7}"#, "add"),
            ("MPIN_SET_HEADERS", #""clear":1"#, "clear"),
            ("MPIN_FINISH_AUTHENTICATION", #""userId":"x","mode":"PIN""#, "mode"),
        ]
    )
    func malformed(command: String, members: String, name: String) async throws {
        #expect(await stage.setBackend() == "OK")
        let result = await stage.run(command, members)
        #expect(result.status == "FLOW_ERROR")
        #expect(result["errorMessage"]?.string?.contains(name) == true)
    }
}
