// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedTapSdk
import Concurrency
import Dispatch
import IssuerDouble
import Synchronization
import TestSupport
import Testing
import Text
import Vault

/// Hears the results of a controller.
private final class Listener: WlWalletControllerDelegate {
    private let stream: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func onEligibilityResult(_ isEligible: Bool) { continuation.yield("eligible \(isEligible)") }
    func onProvisioningReady(_ provisioningBlob: String) { continuation.yield(provisioningBlob) }
    func onProvisioningPending() { continuation.yield("pending") }
    func onProvisioningSuccess() { continuation.yield("success") }
    func onError(_ result: WlPassResult) { continuation.yield(result.rawValue) }

    func next() async -> String? {
        for await event in stream { return event }
        return nil
    }
}

@Suite("The WaveLynx SDK on keys of badged", .timeLimit(.minutes(5)))
@Loop struct TapSdkTests {
    @Test("a pass goes through the five steps of the SDK")
    func pass() async throws {
        let stage = try await Stage()
        let controller = WlWalletController(
            socketPath: try stage.server.listen(),
            callbackQueue: DispatchQueue(label: "tap")
        )
        let listener = Listener()
        controller.delegate = listener
        controller.checkEligibility()
        #expect(await listener.next() == "eligible true")
        controller.startPassProvisioning()
        let blob = try #require(await listener.next())
        let payload = try #require(IssuerDouble.check(blob: blob), "\(blob)")
        let key = try #require(payload["publicKey"]?.string.flatMap { Hex.decode($0) })
        let thumbprint = PublicKeyText.thumbprint(key)
        controller.saveToWallet(displayName: "office", saveLink: thumbprint)
        #expect(await listener.next() == "pending")
        #expect(await listener.next() == "provisioningError")
        stage.issuer.enrol(thumbprint)
        controller.saveToWallet(displayName: "office", saveLink: thumbprint)
        #expect(await listener.next() == "pending")
        #expect(await listener.next() == "success")
        controller.saveToWallet(saveLink: thumbprint)
        #expect(await listener.next() == "pending")
        #expect(await listener.next() == "alreadyProvisionedOnPhone")
        controller.saveToWallet(saveLink: "")
        #expect(await listener.next() == "configInvalid")
        await stage.server.stopListening()
        let nobody = WlWalletController(socketPath: "/nonexistent.sock", callbackQueue: DispatchQueue(label: "tap"))
        nobody.delegate = listener
        nobody.checkEligibility()
        #expect(await listener.next() == "controllerNotBound")
    }
}
