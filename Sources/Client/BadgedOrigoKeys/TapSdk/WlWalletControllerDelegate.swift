// SPDX-License-Identifier: Apache-2.0

/// Receives the results of a `WlWalletController`, on its callback queue.
public protocol WlWalletControllerDelegate: AnyObject {
    func wlWalletController(_ controller: WlWalletController, onEligibilityResult isEligible: Bool)
    /// The app sends the blob to its backend, which answers with a reference.
    func wlWalletController(_ controller: WlWalletController, onProvisioningReady provisioningBlob: String)
    func wlWalletController(_ controller: WlWalletController, onError reason: WlPassResult)
    func wlWalletControllerProvisioningPending(_ controller: WlWalletController)
    func wlWalletControllerProvisioningSuccess(_ controller: WlWalletController)
}

/// How a call ends. The names are those of the WaveLynx SDK.
public enum WlPassResult: String, Sendable, CaseIterable {
    /// badged cannot be reached, or its store cannot be used.
    case controllerNotBound
    case success
    /// The reference has a wrong form, or there is no issuer.
    case configInvalid
    case provisioningError
    /// The pass is in the store of badged already.
    case alreadyProvisionedOnPhone
    /// Never occurs: badged has no watch.
    case alreadyProvisionedOnWatch
    case errorGeneratingProvisioningBlob
}

/// The name of the module of the WaveLynx SDK, for apps that write `TapSdk.WlPassResult`.
public enum TapSdk {
    public typealias WlWalletController = BadgedOrigoKeys.WlWalletController
    public typealias WlWalletControllerDelegate = BadgedOrigoKeys.WlWalletControllerDelegate
    public typealias WlPassResult = BadgedOrigoKeys.WlPassResult
}
