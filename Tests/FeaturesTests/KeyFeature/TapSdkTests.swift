// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedOrigoKeys
import Concurrency
import Dispatch
import ServerDoubles
import TestSupport
import Testing
import Text
import Vault

/// A class of an app of the WaveLynx SDK, as its guide shows it: only the import is that of badged. It records its callbacks.
private class MyController: WlWalletControllerDelegate {
    let stream: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init(_ controller: WlWalletController = .shared) {
        (stream, continuation) = AsyncStream.makeStream()
        controller.delegate = self
    }

    func wlWalletController(_ controller: TapSdk.WlWalletController, onEligibilityResult isEligible: Bool) {
        continuation.yield("eligible \(isEligible)")
    }

    func wlWalletController(_ controller: TapSdk.WlWalletController, onProvisioningReady provisioningBlob: String) {
        continuation.yield(provisioningBlob)
    }

    func wlWalletController(_ controller: TapSdk.WlWalletController, onError reason: TapSdk.WlPassResult) {
        continuation.yield(reason.rawValue)
    }

    func wlWalletControllerProvisioningPending(_ controller: TapSdk.WlWalletController) {
        continuation.yield("pending")
    }

    func wlWalletControllerProvisioningSuccess(_ controller: TapSdk.WlWalletController) {
        continuation.yield("success")
    }

    func save(_ controller: WlWalletController, _ reference: String) {
        controller.saveToWallet(
            parentViewController: self,
            thumbnail: [UInt8](),
            displayName: "office",
            description: "a door",
            saveLink: reference
        )
    }
}

@Suite("The WaveLynx SDK on keys of badged", .timeLimit(.minutes(5)))
@Loop struct TapSdkTests {
    @Test("a pass goes through the five steps of the SDK")
    func pass() async throws {
        let stage = try await KeyStage()
        let controller = WlWalletController(
            socketPath: try stage.server.listen(),
            callbackQueue: DispatchQueue(label: "tap")
        )
        let app = MyController(controller)
        var said = app.stream.makeAsyncIterator()
        controller.checkEligibility()
        #expect(await said.next() == "eligible true")
        controller.startPassProvisioning()
        let blob = try #require(await said.next())
        let payload = try #require(IssuerDouble.check(blob: blob), "\(blob)")
        let key = try #require(payload["publicKey"]?.string.flatMap { Hex.decode($0) })
        let thumbprint = PublicKeyText.thumbprint(key)
        app.save(controller, thumbprint)
        #expect(await said.next() == "pending")
        #expect(await said.next() == "provisioningError")
        stage.issuer.enrol(thumbprint)
        app.save(controller, thumbprint)
        #expect(await said.next() == "pending")
        #expect(await said.next() == "success")
        controller.saveToWallet(saveLink: thumbprint)
        #expect(await said.next() == "pending")
        #expect(await said.next() == "alreadyProvisionedOnPhone")
        controller.saveToWallet(saveLink: "")
        #expect(await said.next() == "configInvalid")
        // One key is there; there can be 32.
        for _ in 0..<31 {
            controller.startPassProvisioning()
            #expect(await said.next()?.contains(".") == true)
        }
        controller.startPassProvisioning()
        #expect(await said.next() == "errorGeneratingProvisioningBlob")
        await stage.server.stopListening()
        let nobody = WlWalletController(socketPath: "/nonexistent.sock", callbackQueue: DispatchQueue(label: "tap"))
        nobody.delegate = app
        nobody.checkEligibility()
        #expect(await said.next() == "controllerNotBound")
    }

    @Test("the results are the seven of the SDK")
    func results() {
        let names = [
            "controllerNotBound", "success", "configInvalid", "provisioningError", "alreadyProvisionedOnPhone",
            "alreadyProvisionedOnWatch", "errorGeneratingProvisioningBlob",
        ]
        #expect(WlPassResult.allCases.map(\.rawValue) == names)
    }
}
