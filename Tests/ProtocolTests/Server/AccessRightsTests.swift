// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import EService
import Server
import TestSupport
import Testing
import Text

@Suite("RUN_AUTH and the access rights", .timeLimit(.minutes(5)))
struct AccessRightsTests {
    @Test(
        "RUN_AUTH without a URL that has a host is refused and starts no workflow",
        arguments: [
            ("", "tcTokenURL cannot be undefined"),
            (#","tcTokenURL":5"#, "Invalid tcTokenURL"),
            (#","tcTokenURL":null"#, "Invalid tcTokenURL"),
            (#","tcTokenURL":["https://a"]"#, "Invalid tcTokenURL"),
            (#","tcTokenURL":"""#, "Validation of tcTokenURL failed"),
            (#","tcTokenURL":"not a url""#, "Validation of tcTokenURL failed"),
            (#","tcTokenURL":"https://""#, "Validation of tcTokenURL failed"),
            (#","tcTokenURL":"https:///path""#, "Validation of tcTokenURL failed"),
            (#","tcTokenURL":"https://:8443/path""#, "Validation of tcTokenURL failed"),
            (#","tcTokenURL":"https://user@/path""#, "Validation of tcTokenURL failed"),
            (#","tcTokenURL":"127.0.0.1:1""#, "Validation of tcTokenURL failed"),
            (#","tcTokenURL":"/a//b""#, "Validation of tcTokenURL failed"),
            (#","tcTokenURL":"https://a\nb/""#, "Validation of tcTokenURL failed"),
            (#","reader":7,"tcTokenURL":"https://dienst.example/t""#, "Invalid name"),
        ]
    )
    @Loop func refused(members: String, error: String) async throws {
        let fixture = try await Fixture(at: .idle)
        let answers = await fixture.client.exchange(#"{"cmd":"RUN_AUTH","request":1\#(members)}"#)
        #expect(
            answers == [
                .object([.init("error", .string(error)), .init("msg", .string("AUTH")), .init("request", .number("1"))])
            ]
        )
        #expect(await fixture.client.exchange(#"{"cmd":"GET_STATUS"}"#) == [Moment.idle.status])
    }

    @Test("ACCESS_RIGHTS lists the SDK's names, highest right first, and the values for verifications")
    @Loop func everything() async throws {
        let service = TestService { plan in
            plan.required = AccessRights([
                .readFamilyName, .readAddress, .ageVerification, .restrictedIdentification, .writeAddress,
            ])
            // The right to read the sex has no name in the SDK; the server does not request it.
            plan.optional = AccessRights([.readSex, .readDateOfBirth, .communityIDVerification, .readFamilyName])
            plan.auxiliaryData = AuxiliaryData([
                .dateOfBirth: Array("20081122".utf8), .dateOfExpiry: Array("20261121".utf8),
                .communityID: [0x02, 0x76, 0x05],
            ])
            plan.transactionInfo = "a deal"
        }
        let fixture = try await Fixture(service: service)
        let rights = await fixture.client.ask(Fixture.runAuth, "ACCESS_RIGHTS")
        let expected: JSON = #"""
            {"aux":{"ageVerificationDate":"2008-11-22","communityId":"027605","requiredAge":"17","validityDate":"2026-11-21"},"chat":{"effective":["WriteAddress","Address","DateOfBirth","FamilyName","Pseudonym","AddressVerification","AgeVerification"],"optional":["DateOfBirth","AddressVerification"],"required":["WriteAddress","Address","FamilyName","Pseudonym","AgeVerification"]},"msg":"ACCESS_RIGHTS","transactionInfo":"a deal"}
            """#
        #expect(rights == expected)
        #expect(
            await fixture.client.exchange(#"{"cmd":"GET_ACCESS_RIGHTS","request":[1]}"#)
                == [expected.with("request", .array([.number("1")]))]
        )
    }

    @Test("developer mode needs a line in badged.conf, which the refusal names")
    @Loop func developerMode() async throws {
        let server = try await TestServer(allowsDeveloperMode: false)
        let client = try server.connect()
        let command = #"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t","developerMode":true}"#
        let refused = await client.ask(command, "AUTH")
        #expect(refused?["error"]?.string?.contains("developer_mode = yes in [eid]") == true)
        #expect(await client.ask(Fixture.runAuth, "ACCESS_RIGHTS") != nil)
    }

    @Test("verifications without a reference value are not requested")
    @Loop func noValues() async throws {
        let rights = AccessRights([.ageVerification, .communityIDVerification, .readFamilyName])
        let fixture = try await Fixture(service: TestService { $0.required = rights })
        let message = await fixture.client.ask(Fixture.runAuth, "ACCESS_RIGHTS")
        #expect(message?["chat"]?["required"] == .array([.string("FamilyName")]))
        #expect(message?["aux"] == nil)
    }

    @Test("all rights of the certificate are optional when the service names none")
    @Loop func neither() async throws {
        let fixture = try await Fixture(
            service: TestService { plan in
                (plan.required, plan.optional) = (nil, nil)
                plan.rights = AccessRights([.readFamilyName, .readSex, .canAllowed])
            }
        )
        let message = await fixture.client.ask(Fixture.runAuth, "ACCESS_RIGHTS")
        let chat = #"{"effective":["FamilyName","CanAllowed"],"optional":["FamilyName","CanAllowed"],"required":[]}"#
        #expect(try message?["chat"] == JSON(chat.utf8))
    }

    @Test(
        "an invalid `chat` is refused with the SDK's error text and changes nothing",
        arguments: [
            ("", "'chat' cannot be undefined"),
            (#","chat":null"#, "Invalid 'chat' data"),
            (#","chat":"GivenNames""#, "Invalid 'chat' data"),
            (#","chat":{}"#, "Invalid 'chat' data"),
            (#","chat":[1]"#, "Entry in 'chat' data needs to be string"),
            (#","chat":["GivenNames",null]"#, "Entry in 'chat' data needs to be string"),
            (#","chat":["givenNames"]"#, "Entry in 'chat' data is invalid"),
            (#","chat":[""]"#, "Entry in 'chat' data is invalid"),
            (#","chat":["FamilyName"]"#, "Entry in 'chat' data is not available"),
            (#","chat":["DateOfBirth"]"#, "Entry in 'chat' data is not available"),
        ]
    )
    @Loop func wrongChoice(members: String, error: String) async throws {
        let fixture = try await Fixture(at: .accessRights)
        let before = try #require(await fixture.client.exchange(#"{"cmd":"GET_ACCESS_RIGHTS"}"#).first)
        let answers = await fixture.client.exchange(#"{"cmd":"SET_ACCESS_RIGHTS"\#(members)}"#)
        #expect(answers == [before.with("error", .string(error))])
        #expect(await fixture.client.exchange(#"{"cmd":"GET_ACCESS_RIGHTS"}"#) == [before])
    }

    @Test("without optional rights every `chat` is refused, also an empty one")
    @Loop func nothingOptional() async throws {
        let fixture = try await Fixture(service: TestService { $0.optional = [] })
        _ = await fixture.client.ask(Fixture.runAuth, "ACCESS_RIGHTS")
        for chat in ["[]", #"["GivenNames"]"#, #"["nonsense"]"#] {
            let answers = await fixture.client.exchange(#"{"chat":\#(chat),"cmd":"SET_ACCESS_RIGHTS"}"#)
            #expect(answers.map { $0["error"] } == [.string("No optional access rights available")])
        }
    }

    @Test("each SET_ACCESS_RIGHTS replaces the previous selection")
    @Loop func choice() async throws {
        let fixture = try await Fixture(at: .accessRights)
        for (chat, effective) in [
            ("[]", ["Address", "FamilyName"]),
            (#"["GivenNames","GivenNames"]"#, ["Address", "FamilyName", "GivenNames"]),
            ("[]", ["Address", "FamilyName"]),
        ] {
            let answers = await fixture.client.exchange(#"{"chat":\#(chat),"cmd":"SET_ACCESS_RIGHTS","request":1}"#)
            #expect(answers.map { $0["chat"]?["effective"] } == [.array(effective.map(JSON.string))])
            #expect(answers.first?["request"] == .number("1"))
        }
    }

    @Test("CERTIFICATE contains the subject, the issuer and the purpose")
    @Loop func certificate() async throws {
        let fixture = try await Fixture(at: .accessRights)
        let message = try #require(await fixture.client.exchange(#"{"cmd":"GET_CERTIFICATE","request":1}"#).first)
        #expect(message["msg"] == .string("CERTIFICATE") && message["request"] == .number("1"))
        let description = message["description"]
        #expect(description?["subjectName"] == .string("Testdienst"))
        #expect(description?["subjectUrl"] == .string("https://dienst.example"))
        #expect(description?["issuerName"] == .string("badged test DV"))
        #expect(description?["issuerUrl"] == .string("https://dv.example"))
        #expect(description?["purpose"] == .string("Test"))
        #expect(description?["termsOfUsage"]?.string?.contains("Am Prüfstand 1") == true)
        #expect(message["validity"] == #"{"effectiveDate":"2024-01-01","expirationDate":"2039-12-31"}"#)
    }

    @Test("ACCEPT is valid once, and the rights cannot be changed after it")
    @Loop func accept() async throws {
        let fixture = try await Fixture(at: .accessRights)
        let answers = await fixture.client.exchange(
            #"{"cmd":"ACCEPT","request":1}"#,
            #"{"cmd":"ACCEPT","request":2}"#,
            #"{"chat":[],"cmd":"SET_ACCESS_RIGHTS"}"#
        )
        #expect(
            Array(answers.filter { $0["msg"] == .string("BAD_STATE") }) == [
                #"{"error":"ACCEPT","msg":"BAD_STATE","request":2}"#,
                #"{"error":"SET_ACCESS_RIGHTS","msg":"BAD_STATE"}"#,
            ]
        )
    }

    @Test("SET_PIN of RUN_AUTH requires six digits; five would be a transport PIN")
    @Loop func sixDigits() async throws {
        let fixture = try await Fixture(at: .accessRights)
        try await fixture.server.insert(.card())
        _ = await fixture.client.ask(#"{"cmd":"ACCEPT"}"#, "ENTER_PIN")
        let answers = await fixture.client.exchange(#"{"cmd":"SET_PIN","value":"12345"}"#)
        #expect(answers.map { $0["error"] } == [.string("You must provide 6 digits")])
    }
}
