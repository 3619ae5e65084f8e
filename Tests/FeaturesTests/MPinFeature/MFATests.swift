// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import HTTP
import Host
import Store
import TestSupport
import Testing
import Text

extension MPinStage {
    func setMFABackend(_ url: String? = nil, customer: String = "c1") async {
        _ = await run("MPIN_INIT", #""flavour":"MFA""#)
        #expect(await status("MPIN_SET_CLIENT_ID", #""clientId":"\#(customer)""#) == "OK")
        #expect(await status("MPIN_SET_BACKEND", #""url":"\#(url ?? servers.url)""#) == "OK")
    }

    /// Makes the user of MPinMFA, and begins the registration.
    func makeMFAUser(at url: String? = nil, customer: String = "c1") async {
        await setMFABackend(url, customer: customer)
        #expect(await status("MPIN_MAKE_USER", #"\#(who),"deviceName":"laptop""#) == "OK")
    }

    func registerMFA(at url: String? = nil, pin: String = "1234", _ members: String = "") async {
        await makeMFAUser(at: url)
        #expect(await status("MPIN_START_REGISTRATION", #"\#(who),"activateCode":"123456""#) == "OK")
        #expect(await status("MPIN_CONFIRM_REGISTRATION", who) == "OK")
        #expect(await status("MPIN_FINISH_REGISTRATION", "\(who)\(members)", pin: pin) == "OK")
    }

    /// Begins the registration of the user for signing.
    func startSigner() async throws {
        let token = try #require(try await servers.lab(.post, "permit/\(user)")["token"]?.string)
        #expect(await status("MPIN_START_DVS", #"\#(who),"token":"\#(token)""#) == "OK")
    }

    /// Registers the user for signing.
    func registerSigner(pin: String = "4321") async throws {
        try await startSigner()
        let finished = await run("MPIN_FINISH_DVS", who, pin: pin)
        #expect(finished["user"]?["canSign"] == .bool(true))
    }

    func logInMFA(_ members: String = "", pin: String = "1234") async -> JSON {
        #expect(await status("MPIN_START_AUTHENTICATION", who) == "OK")
        return await run("MPIN_FINISH_AUTHENTICATION", "\(who)\(members)", pin: pin)
    }

    /// Makes the record of the user that of an earlier badged, which did not note second factors.
    func forgetSecondFactor() async throws {
        let (store, users) = (try #require(store), StoreSpace("mpin users"))
        for name in try await store.names(in: users) {
            guard let record = try await store.value(name, in: users)?.take() else { continue }
            let text = record.withBytes { String(decoding: $0, as: UTF8.self) }
            let old = text.replacing(/,"(s|signerS)econdFactor":(true|false)/, with: "")
            try await store.set(name, in: users, to: SecretBox(Secret(old.utf8)))
        }
    }

    static let hash = String(repeating: "5a", count: 32)

    func sign(_ members: String = "", pin: String = "4321") async -> JSON {
        let order = #"\#(who),"documentHash":"\#(Self.hash)","epochTime":1700000000\#(members)"#
        return await run("MPIN_SIGN", order, pin: pin)
    }
}

@Suite("MPinMFA against the double of its service", .timeLimit(.minutes(5)))
@Loop struct MFATests {
    private let stage: MPinStage

    init() async throws { stage = try await MPinStage() }

    @Test("a user registers with a code, and logs in with each scope, also after a new start of badged")
    func wholeWay() async throws {
        await stage.registerMFA(pin: "7391")
        let later = try await MPinStage(after: stage)
        await later.setMFABackend()
        for mode in ["", #","mode":"OTP""#, #","mode":"REGCODE""#] {
            #expect(await later.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
            let result = await later.run("MPIN_FINISH_AUTHENTICATION", stage.who + mode, pin: "7391")
            #expect(result.status == "OK")
            #expect((result["otp"] != nil) == !mode.isEmpty)
            #expect(result["authzCode"]?.string == "c-0")
        }
        let users = await later.run("MPIN_USERS")["users"]?.array
        #expect(users?.map { $0["customerId"]?.string } == ["c1"])
        #expect(users?.first?["canSign"] == .bool(false))
        // The usual prefix of MPinMFA counts where the command names the address alone.
        let url = #""url":"\#(stage.servers.url)""#
        #expect(await later.run("MPIN_USERS", url)["users"]?.array?.count == 1)
        #expect(await later.status("MPIN_DELETE_USER", "\(stage.who),\(url)") == "OK")
        #expect(!later.server.logged.contains { $0.contains("7391") })
        #expect(!later.client.hasReceived("7391"))
    }

    @Test("a session is opened, told about and used, and another one is aborted")
    func sessions() async throws {
        await stage.makeMFAUser()
        let service = await stage.run("MPIN_SERVICE_DETAILS", #""url":"\#(stage.servers.url)/""#)["serviceDetails"]
        #expect(service?["rpsPrefix"]?.string == "rps/v2")
        #expect(service?["backendUrl"]?.string == stage.servers.url)
        func accessCode() async throws -> String {
            let result = await stage.run("MPIN_ACCESS_CODE", #""url":"\#(stage.servers.url)/authorize""#)
            return try #require(result["accessCode"]?.string)
        }
        let code = try await accessCode()
        let details = await stage.run("MPIN_SESSION_DETAILS", #""accessCode":"\#(code)""#)["sessionDetails"]
        #expect(details?["prerollId"]?.string == "alice")
        #expect(details?["customerIconUrl"]?.string == "https://lab.test/c")
        let start = #"\#(stage.who),"accessCode":"\#(code)","activateCode":"1","pushNotificationIdentifier":"p""#
        #expect(await stage.status("MPIN_START_REGISTRATION", start) == "OK")
        await stage.succeed("MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION")
        let seen = try await stage.servers.lab(.get, "registrations")["seen"]?.array?.last {
            $0["userId"]?.string == stage.user
        }
        #expect(seen?["wid"]?.string == code)
        #expect(seen?["pushToken"]?.string == "p")
        let with = #","accessCode":"\#(code)""#
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who + with) == "OK")
        #expect(try await stage.servers.lab(.get, "sessions")[code]?.array?.last?.string == stage.user)
        let result = await stage.run("MPIN_FINISH_AUTHENTICATION", stage.who + with)
        #expect(result["authzCode"]?.string == "c-\(code)")

        let other = try await accessCode()
        #expect(await stage.status("MPIN_ABORT_SESSION", #""accessCode":"\#(other)""#) == "OK")
        #expect(try await stage.servers.lab(.get, "sessions")[other]?.array?.first?.string == "abort")
        #expect(await stage.status("MPIN_SESSION_DETAILS", #""accessCode":"none""#) == "REQUEST_EXPIRED")
        #expect(await stage.logInMFA(#","accessCode":"none""#).status == "INCORRECT_ACCESS_NUMBER")
    }

    @Test("the second factor is asked, and counts as much as the PIN")
    func secondFactor() async throws {
        await stage.registerMFA(#","pin1":true"#)
        // The token decides what is asked, not the client.
        for members in [#","pin1":true"#, "", #","pin1":false"#, #","mode":"OTP""#] {
            #expect(await stage.logInMFA(members).status == "OK", "\(members)")
            #expect(stage.heard.map { $0["factor"]?.int }.filter { $0 != nil } == [0, 1], "\(members)")
        }
        stage.secondFactor = "card 18"
        #expect(await stage.logInMFA().status == "INCORRECT_PIN")
        stage.secondFactor = "card 17"
        #expect(await stage.logInMFA(#","pin1":true"#).status == "OK")
        #expect(await stage.run("MPIN_USERS")["users"]?.array?.first?["secondFactor"] == .bool(true))
    }

    @Test("without a second factor a client that names one does not make the right PIN wrong")
    func noSecondFactor() async throws {
        await stage.registerMFA()
        try await stage.registerSigner()
        for _ in 0..<3 {
            #expect(await stage.logInMFA(#","pin1":true"#).status == "OK")
            #expect(await stage.sign(#","pin1":true"#).status == "OK")
        }
    }

    @Test("the signing token remembers its second factor, too, also when the identity is renewed")
    func secondFactorOfSigner() async throws {
        let stage = try await MPinStage("dora+renew")
        await stage.registerMFA()
        try await stage.startSigner()
        #expect(await stage.status("MPIN_FINISH_DVS", #"\#(stage.who),"nfc":true"#, pin: "4321") == "OK")
        for _ in 0..<2 { #expect(await stage.sign().status == "OK") }
        let user = await stage.run("MPIN_USERS")["users"]?.array?.first
        #expect(user?["secondFactor"] == .bool(false))
        #expect(user?["signerSecondFactor"] == .bool(true))
    }

    @Test(
        "for the token of an earlier badged the user says whether there is a second factor",
        arguments: ["", "card 17"]
    )
    func unknownSecondFactor(value: String) async throws {
        await stage.registerMFA(value.isEmpty ? "" : #","pin1":true"#)
        try await stage.forgetSecondFactor()
        // A client that says something about it is believed.
        #expect(await stage.logInMFA(value.isEmpty ? #","pin1":false"# : #","pin1":true"#).status == "OK")
        try await stage.forgetSecondFactor()
        stage.secondFactor = value
        #expect(await stage.logInMFA().status == "OK")
        #expect(stage.heard.last { $0["factor"] != nil }?["optional"] == .bool(true))
        // Now badged knows it.
        #expect(await stage.logInMFA().status == "OK")
        #expect(!stage.heard.contains { $0["optional"] != nil })
        #expect(stage.heard.count { $0["factor"] != nil } == (value.isEmpty ? 1 : 2))
    }

    @Test("a session and a login may be answered without a body")
    func emptyAnswers() async throws {
        await stage.registerMFA(at: stage.servers.url("v2authenticate-empty,v2status-empty"))
        let authorize = #""url":"\#(stage.servers.url)/authorize""#
        let code = try #require(await stage.run("MPIN_ACCESS_CODE", authorize)["accessCode"]?.string)
        let with = #","accessCode":"\#(code)""#
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who + with) == "OK")
        let login = await stage.run("MPIN_FINISH_AUTHENTICATION", stage.who + with)
        #expect(login.status == "OK")
        #expect(login["authResultData"]?.string == "")
        #expect(await stage.status("MPIN_ABORT_SESSION", #""accessCode":"\#(code)""#) == "OK")
    }

    @Test("the third wrong PIN blocks the user, and both tokens are gone")
    func wrongPIN() async throws {
        await stage.registerMFA()
        try await stage.registerSigner()
        for state in ["REGISTERED", "REGISTERED", "BLOCKED"] {
            let result = await stage.logInMFA(pin: "9999")
            #expect(result.status == "INCORRECT_PIN")
            #expect(result["user"]?["state"]?.string == state)
        }
        #expect(await stage.sign().status == "FLOW_ERROR")
        let store = try #require(stage.store)
        #expect(try await store.names(in: StoreSpace("mpin tokens")) == [])
        #expect(try await store.names(in: StoreSpace("mpin signing tokens")) == [])
    }

    @Test("a document is signed with a PIN of its own, and the verifier accepts it")
    func signing() async throws {
        await stage.registerMFA()
        #expect(await stage.sign().status == "FLOW_ERROR")
        #expect(await stage.status("MPIN_FINISH_DVS", stage.who) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_START_DVS", #"\#(stage.who),"token":"wrong""#) == "IDENTITY_NOT_AUTHORIZED")
        try await stage.registerSigner()
        let signature = try #require(await stage.sign()["signature"])
        #expect(signature["hash"]?.string == MPinStage.hash)
        #expect(try await stage.servers.lab(.post, "verify", signature)["valid"] == .bool(true))
        let other = JSON.object(
            (signature.members ?? []).map { $0.key == "epochTime" ? .init($0.key, .number("7")) : $0 }
        )
        #expect(try await stage.servers.lab(.post, "verify", other)["valid"] == .bool(false))
        let wrong = await stage.sign(pin: "1234")
        #expect(wrong.status == "INCORRECT_PIN")
        #expect(wrong["signature"] == nil)
        #expect(await stage.logInMFA().status == "OK")
    }

    @Test("the token of the app goes to the service, and cannot break its request")
    func authorization() async throws {
        let stage = try await MPinStage("alice+nosign")
        await stage.registerMFA()
        try await stage.registerSigner()
        #expect(await stage.sign().status == "IDENTITY_NOT_AUTHORIZED")
        #expect(await stage.sign(#","authZToken":"MAAS-HMAC-SHA256 x""#).status == "OK")
        #expect(await stage.sign(#","authZToken":"x\r\nHost: evil""#).status == "FLOW_ERROR")
    }

    @Test("an identity that the service asks to renew is renewed, once", arguments: ["login", "sign"])
    func renewal(purpose: String) async throws {
        let stage = try await MPinStage("dora+renew")
        await stage.registerMFA()
        if purpose == "sign" { try await stage.registerSigner() }
        let before = await stage.run("MPIN_USERS")["users"]?.array?.first?["mpinId"]?.string
        if purpose == "login" {
            #expect(await stage.logInMFA().status == "OK")
            let after = await stage.run("MPIN_USERS")["users"]?.array?.first?["mpinId"]?.string
            #expect(after != before)
            #expect(await stage.logInMFA().status == "OK")
            let endless = try await MPinStage("dora+renew+always")
            await endless.registerMFA()
            #expect(await endless.logInMFA().status == "RESPONSE_PARSE_ERROR")
        } else {
            let signature = try #require(await stage.sign()["signature"])
            #expect(try await stage.servers.lab(.post, "verify", signature)["valid"] == .bool(true))
        }
    }

    @Test("a document is verified by its hash")
    func verify() async throws {
        _ = await stage.run("MPIN_INIT")
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        #expect(
            await stage.run("MPIN_VERIFY_DOCUMENT", #""document":"abc","hash":"\#(hash)""#)["verified"] == .bool(true)
        )
        #expect(
            await stage.run("MPIN_VERIFY_DOCUMENT", #""document":"abd","hash":"\#(hash)""#)["verified"] == .bool(false)
        )
        #expect(await stage.status("MPIN_VERIFY_DOCUMENT", #""document":"abc","hash":"5a""#) == "FLOW_ERROR")
        // 200 000 characters
        let long = String(repeating: "a", count: 200_000)
        let sum = try #require(Self.hash(long))
        let verified = await stage.run("MPIN_VERIFY_DOCUMENT", #""document":"\#(long)","hash":"\#(sum)""#)
        #expect(verified["verified"] == .bool(true))
    }

    private static func hash(_ text: String) -> String? {
        (try? DigestAlgorithm.sha256.hash(Array(text.utf8))).map { Hex.encode($0) }
    }

    @Test("the login service of a page is shown before MPIN_INIT, too")
    func serviceBeforeInit() async throws {
        let result = await stage.run("MPIN_SERVICE_DETAILS", #""url":"\#(stage.servers.url)""#)
        #expect(result["serviceDetails"]?["name"]?.string == "Lab")
        #expect(await stage.status("MPIN_USERS") == "FLOW_ERROR")
    }

    @Test("users of two customers, and of MPin, are different users")
    func customers() async throws {
        await stage.makeMFAUser()
        await stage.makeMFAUser(customer: "c2")
        #expect(await stage.run("MPIN_USERS")["users"]?.array?.count == 2)
        _ = await stage.run("MPIN_INIT")
        #expect(await stage.run("MPIN_USERS")["users"]?.array == [])
        #expect(await stage.status("MPIN_SET_CLIENT_ID", #""clientId":"c1""#) == "FLOW_ERROR")
        #expect(await stage.status("MPIN_SIGN", stage.who) == "FLOW_ERROR")
        _ = await stage.run("MPIN_INIT", #""flavour":"MFA""#)
        let url = #""url":"\#(stage.servers.url)""#
        #expect(await stage.status("MPIN_DELETE_USER", #"\#(stage.who),\#(url),"customerId":"c2""#) == "OK")
        #expect(await stage.run("MPIN_USERS")["users"]?.array?.map { $0["customerId"]?.string } == ["c1"])
    }

    @Test("a service that names no addresses has the usual ones")
    func usualAddresses() async throws {
        await stage.registerMFA(at: stage.servers.url("v2defaults"))
        #expect(await stage.logInMFA().status == "OK")
    }

    @Test("what goes wrong at a registration has its status, and the registration can go on")
    func registrationFaults() async throws {
        let faults = [
            ("v2user-500", "MPIN_START_REGISTRATION", "HTTP_SERVER_ERROR"),
            ("v2user-no-regOTT", "MPIN_START_REGISTRATION", "RESPONSE_PARSE_ERROR"),
            ("v2signature-401", "MPIN_CONFIRM_REGISTRATION", "IDENTITY_NOT_VERIFIED"),
            ("v2signature-drop", "MPIN_CONFIRM_REGISTRATION", "NETWORK_ERROR"),
            ("v2secret-500", "MPIN_CONFIRM_REGISTRATION", "HTTP_SERVER_ERROR"),
            ("v2secret-drop", "MPIN_CONFIRM_REGISTRATION", "NETWORK_ERROR"),
            ("v2secret-nojson", "MPIN_CONFIRM_REGISTRATION", "RESPONSE_PARSE_ERROR"),
        ]
        await stage.makeMFAUser(at: stage.servers.url(oneByOne: faults.map(\.0)))
        for name in ["MPIN_START_REGISTRATION", "MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION"] {
            for (fault, command, status) in faults where command == name {
                #expect(await stage.status(name, stage.who) == status, "\(fault)")
            }
            #expect(await stage.status(name, stage.who) == "OK")
        }
        #expect(await stage.logInMFA().status == "OK")
    }

    @Test(
        "what goes wrong at a registration for good says to repeat it",
        arguments: [
            [
                ("v2signature-offcurve-dvsClientSecretShare", "CRYPTO_ERROR"),
                ("v2signature-no-curve", "RESPONSE_PARSE_ERROR"), ("v2signature-foreign", "UNTRUSTED_DOMAIN_ERROR"),
            ],
            [("v2secret-offcurve-dvsClientSecret", "CRYPTO_ERROR"), ("v2secret-408", "REQUEST_EXPIRED")],
        ]
    )
    func repeatedRegistration(faults: [(String, String)]) async throws {
        await stage.makeMFAUser(at: stage.servers.url(oneByOne: faults.map(\.0)))
        #expect(await stage.status("MPIN_START_REGISTRATION", stage.who) == "OK")
        for (fault, status) in faults {
            #expect(await stage.status("MPIN_CONFIRM_REGISTRATION", stage.who) == status, "\(fault)")
            await stage.succeed("MPIN_RESTART_REGISTRATION")
        }
        await stage.succeed("MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION")
    }

    @Test(
        "a badged that ends after each step of a registration goes on, or says to repeat it",
        arguments: [false, true]
    )
    func killed(isMFA: Bool) async throws {
        var stage = self.stage
        let user = stage.who
        func begin() async throws {
            stage = try await MPinStage(after: stage)
            if isMFA { await stage.setMFABackend() } else { #expect(await stage.setBackend() == "OK") }
        }
        for step in ["MPIN_MAKE_USER", "MPIN_START_REGISTRATION", "MPIN_CONFIRM_REGISTRATION"] {
            try await begin()
            #expect(await stage.status(step, user) == "OK")
        }
        try await begin()
        // Only the client secret is lost.
        let result = await stage.run("MPIN_FINISH_REGISTRATION", user)
        #expect(result.status == "FLOW_ERROR")
        #expect(result["errorMessage"]?.string?.contains("MPIN_RESTART_REGISTRATION") == true)
        for again in ["MPIN_RESTART_REGISTRATION", "MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION"] {
            #expect(await stage.status(again, user) == "OK")
        }
        try await begin()
        #expect(await stage.status("MPIN_START_AUTHENTICATION", user) == "OK")
        #expect(await stage.status("MPIN_FINISH_AUTHENTICATION", user) == "OK")
    }

    @Test("after an end of badged during the registration for signing, a new token is needed")
    func killedSigner() async throws {
        await stage.registerMFA()
        try await stage.startSigner()
        let later = try await MPinStage(after: stage)
        await later.setMFABackend()
        let refused = await later.run("MPIN_FINISH_DVS", stage.who)
        #expect(refused.status == "FLOW_ERROR")
        #expect(refused["errorMessage"]?.string?.contains("MPIN_START_DVS") == true)
    }

    @Test("an administrator's domains hold for each client")
    func fixedDomains() async throws {
        let stage = try await MPinStage(domains: ["example.org"])
        _ = await stage.run("MPIN_INIT")
        let url = #""url":"\#(stage.servers.url)""#
        #expect(await stage.status("MPIN_TEST_BACKEND", url) == "UNTRUSTED_DOMAIN_ERROR")
        _ = await stage.run("MPIN_TRUSTED_DOMAINS", #""add":["127.0.0.1"]"#)
        #expect(await stage.status("MPIN_TEST_BACKEND", url) == "UNTRUSTED_DOMAIN_ERROR")
    }

    @Test("no fault at a login costs a try, and the next login succeeds")
    func loginFaults() async throws {
        let faults = [
            ("v2pass1-500", "HTTP_SERVER_ERROR"), ("v2pass1-drop", "NETWORK_ERROR"), ("v2pass1-zero-y", "CRYPTO_ERROR"),
            ("v2pass2-drop", "NETWORK_ERROR"), ("v2pass2-no-authOTT", "RESPONSE_PARSE_ERROR"),
            ("v2authenticate-500", "HTTP_SERVER_ERROR"), ("v2authenticate-drop", "NETWORK_ERROR"),
            ("v2authenticate-409", "CLIENT_SECRET_EXPIRED"),
        ]
        await stage.registerMFA(at: stage.servers.url(oneByOne: faults.map(\.0)))
        // The faults come before the PIN is checked, so two wrong PINs leave one try.
        for (fault, status) in faults { #expect(await stage.logInMFA(pin: "0000").status == status, "\(fault)") }
        #expect(await stage.logInMFA(pin: "0000").status == "INCORRECT_PIN")
        #expect(await stage.logInMFA(pin: "0000")["user"]?["state"]?.string == "REGISTERED")
        #expect(await stage.logInMFA().status == "OK")
    }
}
