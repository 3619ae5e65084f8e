// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import KeyFeature
import ServerDoubles
import Store
import TestSupport
import Testing
import Text

/// The names that no other test produces.
@Suite("Names of errors of the Origo and WaveLynx SDKs", .timeLimit(.minutes(5)))
@Loop struct ErrorNameTests {
    @Test(
        "a store that cannot be used has the name of its fault",
        arguments: [
            (Failure.storeUnavailable("no disk"), KeyCode.deviceNotEligible),
            (.storeExposed("/state"), .deviceNotEligible), (.storeNewer, .incompatible),
            (.storeDamaged("x"), .storageUnreadable), (.storeFailed("x"), .internalError),
        ]
    )
    func store(_ error: Failure, _ name: KeyCode) async throws {
        let stage = try await KeyStage(store: StateStore { () throws(Failure) in throw error })
        for command in ["START", "GET_KEYS", "SETUP_ENDPOINT"] {
            let answer = await stage.ask(command)
            #expect(answer["error"]?.string == name.rawValue)
            #expect(answer["code"]?.int == name.code)
        }
    }

    @Test("while the issuer is asked, another command for the endpoint is refused")
    func busy() async throws {
        let stage = try await KeyStage()
        let code = "AB12-CD34-EF56-GH78"
        stage.issuer.invite(code)
        stage.issuer.fail(.held)
        await stage.client.send(#"{"cmd":"SETUP_ENDPOINT","invitation":"\#(code)"}"#)
        await stage.issuer.heldRequest()
        let other = try stage.server.connect(uid: 1000)
        let refused = await stage.ask("UPDATE_ENDPOINT", by: other)
        #expect(refused["error"]?.string == "SDKBusy" && refused["code"]?.int == 401)
        // The endpoint of another user is another one.
        #expect(await stage.error("SETUP_ENDPOINT", by: try stage.server.connect(uid: 1001)) == "")
        stage.issuer.release()
        #expect(await stage.client.next()?["ok"] == .bool(true))
    }

    @Test("an enrolment file for the key of another user sets up nothing")
    func foreignKey() async throws {
        let stage = try await KeyStage()
        let file = stage.issuer.enrol(String(repeating: "A", count: 43))
        #expect(await stage.error("SETUP_ENDPOINT", #""invitation":"\#(file)""#) == "DeviceSetupFailed")
        #expect(await stage.keys().isEmpty)
    }

    @Test("without room for its key a pass has no blob")
    func noBlob() async throws {
        let stage = try await KeyStage()
        for _ in 0..<32 { _ = try await stage.newKey() }
        let answer = await stage.ask("WALLET_PREPARE")
        #expect(answer["reason"]?.string == "errorGeneratingProvisioningBlob")
        #expect(answer["error"]?.string == "StorageFull")
    }
}
