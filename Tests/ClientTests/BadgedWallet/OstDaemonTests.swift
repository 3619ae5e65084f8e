// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedOSTWallet
import Dispatch
import TestSupport
import Testing
import Text

@Suite("BadgedOSTWallet with badged and its virtual Keycard", .timeLimit(.minutes(5))) struct OstDaemonTests {
    private static let words = "legal winner thank year wave sausage worth useful legal winner thank yellow"

    /// badged with a store, and a card that the library inserts.
    private struct Bench {
        let daemon: RunningDaemon
        let workflows: OstWorkflows

        init(_ card: String) async throws {
            let folder = try TemporaryFolder()
            let state = ["STATE_DIRECTORY": folder.path]
            daemon = try await RunningDaemon(["--no-ble"], in: folder, environment: state)
            workflows = OstWorkflows(
                socketPath: daemon.path,
                callbackQueue: DispatchQueue(label: "callbacks"),
                virtualCard: VirtualCardInsertion(card: try JSON(Array(card.utf8)))
            )
        }
    }

    @Test("All nine callbacks occur: a new card, its words, and a QR code with a wrong PIN")
    func nineCallbacks() async throws {
        let bench = try await Bench(#"{"kind":"keycard","initialised":false}"#)
        let app = OstCardApp(["12", "123456"])
        bench.workflows.setupDevice(userId: "u", tokenId: "t", delegate: app)
        #expect(await app.end() == "flowComplete setupDevice device true", "\(app.lines.all)")
        #expect(app.lines.all.contains("showPuk 12"))
        #expect(app.lines.all.contains("verifyMnemonics 3"))
        let beyond = ["insertCard", "getNewPin", "showPuk", "verifyMnemonics"]
        #expect(
            app.lines.all.map { String($0.prefix { $0 != " " }) }.filter { !beyond.contains($0) } == [
                "pinValidated", "showPaperWallet", "registerDevice", "requestAcknowledged", "flowComplete",
            ]
        )
        let other = try await Bench(#"{"kind":"keycard","words":"\#(Self.words)"}"#)
        let signer = OstApp(["000000", "123456"])
        let payload = #"{"dd":"RD","ddv":"2.0.0","d":{"da":"0x9858EfFD232B4033E47d90003D41EC34EcaEda94"}}"#
        other.workflows.performQRAction(userId: "u", payload: payload, delegate: signer)
        #expect(await signer.end() == "flowComplete revokeDevice device true", "\(signer.lines.all)")
        #expect(
            signer.lines.all.map { String($0.prefix { $0 != " " }) } == [
                "verifyData", "getPin", "invalidPin", "pinValidated", "flowComplete",
            ]
        )
        let interrupted = OstApp(agrees: false)
        other.workflows.performQRAction(userId: "u", payload: payload, delegate: interrupted)
        #expect(await interrupted.end().hasPrefix("flowInterrupted revokeDevice userCanceled"))
        let lines = app.lines.all + signer.lines.all + interrupted.lines.all
        let names = Set(lines.map { String($0.prefix { $0 != " " }) }).subtracting(beyond)
        #expect(names.count == 9, "\(names)")
    }

    @Test(
        "Without OstCardDelegate no card gets a PUK or words that nobody has seen",
        arguments: [#"{"kind":"keycard","initialised":false}"#, #"{"kind":"keycard"}"#]
    )
    func noCardDelegate(card: String) async throws {
        let bench = try await Bench(card)
        let app = OstApp(["123456"])
        bench.workflows.setupDevice(userId: "u", tokenId: "t", delegate: app)
        let end = await app.end()
        #expect(end.hasPrefix("flowInterrupted setupDevice unsupportedWorkflow: the card "), "\(end)")
        #expect(app.lines.all == [end], "no PIN is asked for")
        // The card is as it was, so another app sets it up.
        let owner = OstCardApp(["123456"])
        bench.workflows.setupDevice(userId: "u", tokenId: "t", delegate: owner)
        #expect(await owner.end() == "flowComplete setupDevice device true", "\(owner.lines.all)")
        #expect(owner.lines.all.contains("showPaperWallet 12"))
    }

    @Test("Words restore a card; a device that the server registers with another address ends the workflow")
    func restore() async throws {
        let bench = try await Bench(#"{"kind":"keycard","initialised":false}"#)
        let app = OstCardApp(["123456"])
        bench.workflows.authorizeCurrentDeviceWithMnemonics(
            userId: "u",
            mnemonics: Self.words.split(separator: " ").map(String.init),
            delegate: app
        )
        #expect(await app.end() == "flowComplete authorizeDeviceWithMnemonics device true", "\(app.lines.all)")
        let other = try await Bench(#"{"kind":"keycard","words":"\#(Self.words)"}"#)
        let wrong = OstApp(["123456"]) { _ in ["address": "0x0000000000000000000000000000000000000000"] }
        other.workflows.setupDevice(userId: "u", tokenId: "t", delegate: wrong)
        #expect(await wrong.end().hasPrefix("flowInterrupted setupDevice wrongDeviceAddress"), "\(wrong.lines.all)")
    }

    @Test("The PIN is changed; a blocked PIN needs OstCardDelegate, which gives the PUK")
    func pins() async throws {
        let bench = try await Bench(#"{"kind":"keycard","words":"\#(Self.words)"}"#)
        let app = OstApp(["123456"])
        bench.workflows.resetPin(
            userId: "u",
            passPhrasePrefix: "",
            oldUserPin: "000000",
            newUserPin: "222222",
            delegate: app
        )
        #expect(await app.end() == "flowComplete resetPin card true", "\(app.lines.all)")
        #expect(app.lines.all.contains("invalidPin u"))
        let card = #"{"kind":"keycard","words":"\#(Self.words)","retryCounter":0}"#
        let blocked = OstApp()
        let locked = try await Bench(card)
        locked.workflows.resetPin(
            userId: "u",
            passPhrasePrefix: "",
            oldUserPin: "123456",
            newUserPin: "222222",
            delegate: blocked
        )
        #expect(
            await blocked.end().hasPrefix("flowInterrupted resetPin maxUserValidatedCountReached"),
            "\(blocked.lines.all)"
        )
        let owner = OstCardApp(["987654321098"])
        let last = try await Bench(card)
        last.workflows.resetPin(
            userId: "u",
            passPhrasePrefix: "",
            oldUserPin: "123456",
            newUserPin: "222222",
            delegate: owner
        )
        #expect(await owner.end() == "flowComplete resetPin card true", "\(owner.lines.all)")
        #expect(owner.lines.all.contains("getPuk 5"))
    }

    @Test("What a card or badged cannot do is refused by name")
    func refusals() async throws {
        let bench = try await Bench(#"{"kind":"keycard"}"#)
        let app = OstApp()
        bench.workflows.getDeviceMnemonics(userId: "u", delegate: app)
        #expect(await app.end().hasPrefix("flowInterrupted getDeviceMnemonics mnemonicsNotStored"))
        bench.workflows.logoutAllSessions(userId: "u", delegate: app)
        #expect(await app.end().hasPrefix("flowInterrupted logoutAllSessions unsupportedWorkflow"))
        bench.workflows.initiateDeviceRecovery(
            userId: "u",
            recoverDeviceAddress: "0x0",
            userPin: "123456",
            passphrasePrefix: "",
            delegate: app
        )
        #expect(await app.end().hasPrefix("flowInterrupted initiateDeviceRecovery unsupportedWorkflow"))
        bench.workflows.abortDeviceRecovery(userId: "u", userPin: "123456", passphrasePrefix: "", delegate: app)
        #expect(await app.end().hasPrefix("flowInterrupted abortDeviceRecovery unsupportedWorkflow"))
        bench.workflows.updateBiometricPreference(userId: "u", enable: true, delegate: app)
        #expect(await app.end().hasPrefix("flowInterrupted updateBiometricPreference unsupportedWorkflow"))
        bench.workflows.performQRAction(userId: "u", payload: "nonsense", delegate: app)
        #expect(await app.end().hasPrefix("flowInterrupted performQRAction invalidQRCode"))
    }

    @Test("A session key is kept by the app, and a challenge is signed")
    func session() async throws {
        let bench = try await Bench(#"{"kind":"keycard","words":"\#(Self.words)"}"#)
        let app = OstCardApp(["123456"])
        bench.workflows.addSession(userId: "u", spendingLimit: "1000", expireAfterInSecs: 3600, delegate: app)
        #expect(await app.end() == "flowComplete addSession session true", "\(app.lines.all)")
        #expect(app.lines.all.contains("keepSessionKey 64"))
        let other = try await Bench(#"{"kind":"keycard","words":"\#(Self.words)"}"#)
        let user = OstApp()
        other.workflows.activateUser(
            userId: "u",
            userPin: "123456",
            passphrasePrefix: "",
            spendingLimit: "1",
            expireAfterInSecs: 60,
            delegate: user
        )
        #expect(await user.end() == "flowComplete activateUser user true", "\(user.lines.all)")
        #expect(user.lines.all.first?.hasPrefix("verifyData activateUser user Activate the user u: ") == true)
    }
}
