// SPDX-License-Identifier: Apache-2.0

// The names of the options of `OrigoKeysManager`. badged needs none of them: it identifies an application by its user.

public let OrigoKeysOptionApplicationId = "OrigoKeysOptionApplicationId"
/// The version of the application.
public let OrigoKeysOptionVersion = "OrigoKeysOptionVersion"
/// The UUID of the iBeacons that mark the region of the readers, which is watched while the app scans. `default` or an
/// empty text is `OrigoKeysDefaultBeaconUUID`. An extended delegate hears when the region is entered and left.
public let OrigoKeysOptionBeaconUUID = "OrigoKeysOptionBeaconUUID"
/// Whether the region is watched: `true` or `YES`. Without `OrigoKeysOptionBeaconUUID` it is the default region.
public let OrigoKeysOptionEnableBeaconBLEScan = "OrigoKeysOptionEnableBeaconBLEScan"
/// The UUID of the default region.
public let OrigoKeysDefaultBeaconUUID = "00009999-0000-1000-8000-00177a000002"
/// The certificate of a key service. Has no effect: `[keys] authorities` in badged.conf(5).
public let OrigoKeysOptionTSMPublicCert = "OrigoKeysOptionTSMPublicCert"
/// The address of a key service. Has no effect: `[keys] issuer` in badged.conf(5).
public let OrigoKeysOptionTSMBaseURL = "OrigoKeysOptionTSMBaseURL"
/// A key of a key service. Has no effect.
public let OrigoKeysOptionCustomSetupAkeKey = "OrigoKeysOptionCustomSetupAkeKey"
/// A sensor of a phone. Has no effect: a program calls `unlockGesture()`.
public let OrigoKeysOptionMotionManager = "OrigoKeysOptionMotionManager"
/// A number for statistics. Has no effect.
public let OrigoKeysOptionCustomEventValue = "OrigoKeysOptionCustomEventValue"
/// Whether a phone hides its payment cards. Has no effect.
public let OrigoKeysOptionSuppressApplePay = "OrigoKeysOptionSuppressApplePay"
/// Where keys are kept. `healthCheck` says when this names a wallet of a phone.
public let OrigoKeysOptionTargets = "OrigoKeysOptionTargets"
/// A task of a phone. Has no effect.
public let OrigoKeysOptionBackgroundTaskID = "OrigoKeysOptionBackgroundTaskID"
/// Whether the phone advertises. Has no effect.
public let OrigoKeysOptionPeripheralMode = "OrigoKeysOptionPeripheralMode"
