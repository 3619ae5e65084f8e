// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ServerDoubles
import TestSupport
import Testing
import Text
import Vault

private let code = "AB12-CD34-EF56-GH78"

@Suite("Endpoint and issuer", .timeLimit(.minutes(5)))
@Loop struct EndpointTests {
    private let stage: KeyStage

    init() async throws { stage = try await KeyStage() }

    private static let sites: JSON = .array([
        .object([
            .init("siteId", .string("00112233-4455-6677-8899-aabbccddeeff")), .init("legacy", .bool(true)),
            .init("readers", .array([.string(String(repeating: "1", count: 32))])),
        ])
    ])

    private func setUp(_ stage: KeyStage, _ invitation: String = code) async -> JSON {
        let text = String(
            decoding: JSON.object([.init("i", .string(invitation))]).bytes.dropFirst(5).dropLast(),
            as: UTF8.self
        )
        return await stage.ask("SETUP_ENDPOINT", #""invitation":\#(text)"#)
    }

    @Test("an invitation gives a key with sites, validity and name", arguments: [KeyStage.Place.web, .secure, .folder])
    func invitation(_ place: KeyStage.Place) async throws {
        let stage = try await KeyStage(issuer: place)
        stage.issuer.invite(
            code,
            ["label": .string("main building"), "sites": Self.sites, "endDate": .string("2027-01-01T00:00:00Z")]
        )
        try stage.publish()
        let answer = await setUp(stage)
        let key = try #require(answer["key"], "\(answer)")
        #expect(key["label"]?.string == "main building" && key["issuer"]?.string == "acme")
        #expect(key["active"] == .bool(true) && key["origin"]?.string == "invitation")
        #expect(key["endDate"]?.string == "2027-01-01T00:00:00Z" && key["expired"] == .bool(true))
        #expect(key["sites"]?.array?.first?["legacy"] == .bool(true))
        // The same invitation gives the same key again.
        #expect(await setUp(stage)["key"]?["id"] == key["id"])
        #expect(await stage.keys().count == 1)
    }

    @Test("an invitation can be a file or an address of the issuer")
    func otherForms() async throws {
        let file = stage.issuer.invitationFile(["label": .string("side door")])
        let key = await setUp(stage, file)["key"]
        #expect(key?["label"]?.string == "side door")
        #expect(await setUp(stage, file)["key"]?["id"] == key?["id"])
        stage.issuer.invite(code)
        #expect(await setUp(stage, stage.issuer.address + "/invitations/" + code)["ok"] == .bool(true))
        #expect(await stage.keys().count == 2)
        #expect(await setUp(stage, "https://elsewhere.example/invitations/" + code)["error"]?.string == "NotSupported")
    }

    /// A site of Tests/Vectors/pkoc-reader-certificate.json with one of its lists of revoked readers.
    private static func revoking(_ list: String?, issuer: String = "issuer") throws -> JSON {
        let vector = try vectorFile("pkoc-reader-certificate.json")
        let lists = try vector.object("revocationList")
        let site = Array(try lists.bytes("withLocation")[1..<17])
        let key = try vector.object("readerCertificate").object(issuer).bytes("public")
        var members: [JSON.Member] = [
            .init("siteId", .string(Hex.encode(site))), .init("issuerKey", .string(Hex.encode(key))),
        ]
        if let list { members.append(.init("revocations", .string(Hex.encode(try lists.bytes(list))))) }
        return .array([.object(members)])
    }

    @Test("a list of revoked readers is kept until a newer one comes, and one of another issuer is refused")
    func revocations() async throws {
        _ = try await stage.newKey()
        let thumbprint = try #require(await stage.keys().first?["thumbprint"]?.string)
        func update(_ sites: JSON) async throws -> (changed: Int?, readers: Int?) {
            stage.issuer.enrol(thumbprint, ["sites": sites])
            try stage.publish()
            let answer = await stage.ask("UPDATE_ENDPOINT")
            let site = await stage.keys().first?["sites"]?.array?.first
            return (answer["updated"]?.int ?? answer["issued"]?.int, site?["revocations"]?["readers"]?.int)
        }
        _ = try await update(Self.revoking("emptyOlder"))
        #expect(await stage.keys().first?["sites"]?.array?.first?["revocations"]?["readers"]?.int == 0)
        #expect(try await update(Self.revoking("withLocation")).readers == 1)
        #expect(try await update(Self.revoking("emptyOlder")).readers == 1)
        #expect(try await update(Self.revoking(nil)).readers == 1)
        let refused = try await update(Self.revoking("withLocation", issuer: "reader"))
        #expect(refused.changed ?? 0 == 0 && refused.readers == 1)
    }

    @Test("without an issuer an invitation code ends with NotSupported")
    func closedService() async throws {
        let stage = try await KeyStage(issuer: .none)
        let answer = await setUp(stage)
        #expect(answer["error"]?.string == "NotSupported")
        #expect(answer["reason"]?.string == "closedService")
        #expect(await stage.ask("GET_ENDPOINT")["setUp"] == .bool(false))
        #expect(await stage.error("SETUP_ENDPOINT") == "")
        #expect(await stage.error("UPDATE_ENDPOINT") == "NotSupported")
    }

    @Test(
        "a fault of the issuer has its name, and the same invitation works later",
        arguments: [
            (IssuerDouble.Fault.busy, "DeviceSetupFailedRetryError"), (.drop, "ServerCommunicationFailedRetryError"),
            (.half, "ServerCommunicationFailedRetryError"), (.garbled, "DeviceSetupFailedRetryError"),
            (.signature, "DeviceSetupFailedRetryError"), (.huge, "DeviceSetupFailedRetryError"),
            (.otherKey, "DeviceSetupFailedRetryError"), (.redirect, "ServerCommunicationFailed"),
        ]
    )
    func faults(_ fault: IssuerDouble.Fault, _ name: String) async throws {
        stage.issuer.invite(code)
        stage.issuer.fail(fault)
        #expect(await setUp(stage)["error"]?.string == name)
        // A setup that has failed is no setup.
        #expect(await stage.ask("START")["setUp"] == .bool(false))
        #expect(await stage.ask("GET_ENDPOINT")["setUp"] == .bool(false))
        for command in ["GET_KEYS", "NEW_KEY", "UPDATE_ENDPOINT", "WALLET_PREPARE"] {
            #expect(await stage.error(command) == "Endpoint", "\(command)")
        }
        // The issuer may have given the code to the key of the first attempt, so the second one uses the same.
        let vault = Vault(stage.store, now: { stage.clock.now })
        let waiting = try #require(try await vault.keys(of: 1000).first)
        #expect(waiting.pendingUntil != nil && !waiting.isActive)
        let key = await setUp(stage)["key"]
        #expect(key?["id"]?.string == waiting.id && key?["active"] == .bool(true) && key?["pending"] == .bool(false))
        #expect(await stage.keys().count == 1)
        #expect(await stage.ask("GET_ENDPOINT")["setUp"] == .bool(true))
    }

    @Test("with an endpoint a failed invitation leaves a key that is marked as pending")
    func failedInvitation() async throws {
        #expect(await stage.error("SETUP_ENDPOINT") == "")
        stage.issuer.invite(code)
        stage.issuer.fail(.drop)
        #expect(await setUp(stage)["error"]?.string == "ServerCommunicationFailedRetryError")
        let waiting = try #require(await stage.keys().first)
        #expect(waiting["active"] == .bool(false) && waiting["pending"] == .bool(true))
        let id = waiting["id"]?.string ?? ""
        #expect(await stage.error("ACTIVATE_KEY", #""key":"\#(id)""#) == "KeyNotUsable")
        #expect(await setUp(stage)["key"]?["id"]?.string == id)
        #expect(await stage.keys().map { $0["pending"] } == [.bool(false)])
    }

    @Test("a setup without an invitation completes one that has failed")
    func plainSetUp() async throws {
        let stage = try await KeyStage(issuer: .none)
        #expect(await setUp(stage)["error"]?.string == "NotSupported")
        #expect(await stage.error("GET_KEYS") == "Endpoint")
        #expect(await stage.error("SETUP_ENDPOINT") == "")
        #expect(await stage.ask("START")["setUp"] == .bool(true))
        #expect(await stage.error("REMOVE_ENDPOINT", #""confirm":true"#) == "")
        #expect(await stage.error("GET_KEYS") == "Endpoint")
    }

    @Test("a foreign issuer, an unknown code and a used code leave no key behind")
    func refusals() async throws {
        stage.issuer.invite(code)
        for fault in [IssuerDouble.Fault.foreign, .forbidden] {
            stage.issuer.fail(fault)
            #expect(await setUp(stage)["error"]?.string == "InvitationCodeInvalidApplication")
            #expect(await stage.keys().isEmpty)
        }
        let unknown = await setUp(stage, "ZZZZ-ZZZZ-ZZZZ-ZZZZ")
        #expect(unknown["error"]?.string == "InvitationCodeInvalid" && unknown["code"]?.int == 901)
        for wrong in ["ab12-cd34-ef56-gh78", "../../../../etc/passwd", "AB12-CD34-EF56", "a.b.c", ""] {
            #expect(await setUp(stage, wrong)["error"]?.string == "InvitationCodeInvalid", "\(wrong)")
        }
        let stranger = try await KeyStage(trusts: false)
        #expect(
            await setUp(stranger, stage.issuer.invitationFile())["error"]?.string == "InvitationCodeInvalidApplication"
        )
        #expect(await stage.keys().isEmpty)
        #expect(await stranger.keys().isEmpty)
    }

    @Test("an update issues, changes and revokes keys", arguments: [KeyStage.Place.web, .folder])
    func update(_ place: KeyStage.Place) async throws {
        let stage = try await KeyStage(issuer: place)
        _ = try await stage.newKey()
        try stage.publish()
        let thumbprint = try #require(await stage.keys().first?["thumbprint"]?.string)
        func summary() async throws -> [Int?] {
            try stage.publish()
            let answer = await stage.ask("UPDATE_ENDPOINT")
            return ["issued", "updated", "revoked"].map { answer[$0]?.int }
        }
        #expect(try await summary() == [0, 0, 0])
        stage.issuer.enrol(thumbprint, ["label": .string("gate"), "sites": Self.sites])
        #expect(try await summary() == [1, 0, 0])
        #expect(try await summary() == [0, 0, 0])
        stage.issuer.enrol(thumbprint, ["label": .string("garage")])
        #expect(try await summary() == [0, 1, 0])
        #expect(await stage.keys().first?["label"]?.string == "garage")
        // An old file changes nothing.
        stage.issuer.enrol(thumbprint, ["serial": .number("1"), "label": .string("gate")])
        #expect(try await summary() == [0, 0, 0])
        stage.issuer.enrol(thumbprint, ["serial": .number("9"), "revoked": .bool(true)])
        #expect(try await summary() == [0, 0, 1])
        let key = try #require(await stage.keys().first)
        #expect(key["revoked"] == .bool(true) && key["active"] == .bool(false))
        let id = try #require(key["id"]?.string)
        #expect(await stage.error("ACTIVATE_KEY", #""key":"\#(id)""#) == "KeyNotUsable")
        #expect(await stage.ask("GET_ENDPOINT")["lastSync"]?.string == DateText.text(stage.clock.now))
    }

    @Test("an update that fails changes nothing and can be repeated")
    func failedUpdate() async throws {
        _ = try await stage.newKey()
        let thumbprint = try #require(await stage.keys().first?["thumbprint"]?.string)
        stage.issuer.enrol(thumbprint, ["label": .string("gate")])
        stage.issuer.fail(.drop)
        let answer = await stage.ask("UPDATE_ENDPOINT")
        #expect(answer["error"]?.string == "ServerCommunicationFailedRetryError" && answer["code"]?.int == 702)
        #expect(await stage.keys().first?["label"]?.string == "")
        #expect(await stage.ask("GET_ENDPOINT")["lastSync"] == .null)
        #expect(await stage.ask("UPDATE_ENDPOINT")["issued"]?.int == 1)
    }

    @Test("the end of the endpoint deletes all keys")
    func removal() async throws {
        _ = try await stage.newKey()
        #expect(await stage.ask("REMOVE_ENDPOINT", #""confirm":true"#)["msg"]?.string == "ENDPOINT_TERMINATED")
        #expect(await stage.error("GET_KEYS") == "Endpoint")
        #expect(await stage.error("SETUP_ENDPOINT") == "")
        #expect(await stage.keys().isEmpty)
    }

    // MARK: Passes

    @Test(
        "a pass is prepared, enrolled by the backend and saved, by both names of the commands",
        arguments: KeyRecord.Protection.allCases,
        ["PASS", "WALLET"]
    )
    func pass(_ place: KeyRecord.Protection, _ name: String) async throws {
        let stage = try await KeyStage(keys: place)
        #expect(await stage.ask("\(name)_CHECK")["eligible"] == .bool(true))
        let early = await stage.ask("\(name)_PREPARE")
        #expect(early["msg"]?.string == "WALLET_ERROR" && early["reason"]?.string == "controllerNotBound")
        _ = await stage.ask("SETUP_ENDPOINT")
        let blob = try #require(await stage.ask("\(name)_PREPARE", #""nonce":"n-1""#)["blob"]?.string)
        let payload = try #require(IssuerDouble.check(blob: blob))
        #expect(payload["nonce"]?.string == "n-1" && payload["keyType"]?.string == "P-256")
        #expect(payload["protection"]?.string == place.rawValue)
        #expect(payload["deviceId"] == (await stage.ask("GET_ENDPOINT"))["id"])
        let key = try #require(payload["publicKey"]?.string.flatMap { Hex.decode($0) })
        let thumbprint = PublicKeyText.thumbprint(key)
        let none = await stage.ask("\(name)_SAVE", #""reference":"\#(thumbprint)""#)
        #expect(none["reason"]?.string == "provisioningError")
        let file = stage.issuer.enrol(thumbprint, ["sites": Self.sites])
        let saved = await stage.ask("\(name)_SAVE", #""reference":"\#(file)","display":{"displayName":"office"}"#)
        #expect(saved["msg"]?.string == "WALLET_SAVED" && saved["reason"]?.string == "success")
        #expect(saved["key"]?["label"]?.string == "office" && saved["key"]?["active"] == .bool(true))
        #expect(stage.client.hasReceived("WALLET_PENDING"))
        let again = await stage.ask("\(name)_SAVE", #""reference":"\#(thumbprint)""#)
        #expect(again["reason"]?.string == "alreadyProvisionedOnPhone")
        let lost = await stage.ask("\(name)_PREPARE", #""label":7"#)
        #expect(lost["msg"]?.string == "WALLET_ERROR" && lost["reason"]?.string == "configInvalid")
        #expect(await stage.ask("\(name)_SAVE", #""reference":"x""#)["reason"]?.string == "configInvalid")
        #expect(await stage.ask("\(name)_SAVE")["reason"]?.string == "configInvalid")
    }

    @Test("a pass that is not saved within a day is forgotten")
    func lostPass() async throws {
        _ = await stage.ask("SETUP_ENDPOINT")
        let blob = try #require(await stage.ask("WALLET_PREPARE")["blob"]?.string)
        let key = try #require(IssuerDouble.check(blob: blob)?["publicKey"]?.string.flatMap { Hex.decode($0) })
        let file = stage.issuer.enrol(PublicKeyText.thumbprint(key))
        stage.clock.advance(Vault.pendingTime)
        #expect(await stage.ask("WALLET_SAVE", #""reference":"\#(file)""#)["reason"]?.string == "provisioningError")
        #expect(await stage.keys().isEmpty)
    }
}
