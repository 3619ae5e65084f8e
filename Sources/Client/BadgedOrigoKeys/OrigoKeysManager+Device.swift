// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Foundation
import Synchronization

/// What this computer has, and what only a phone has.
extension OrigoKeysManager {
    // MARK: Health

    /// Returns what this computer lacks for what the app uses; empty if all is well.
    public func healthCheck() -> [OrigoKeysInfo] {
        var found = deviceHealthCheck()
        if wantsPhoneWallet { found.append(Self.noWallet) }
        return found
    }

    /// Returns what this computer lacks to reach readers over Bluetooth.
    public func deviceHealthCheck() -> [OrigoKeysInfo] {
        let checks: [HealthCheck]
        do throws(NSError) {
            checks = try bluetoothChecks()
        } catch {
            return [.init(type: .bleNotSupported, description: error.localizedDescription)]
        }
        guard let fault = checks.first(where: { !$0.isOK && !$0.isUnknown }) else {
            let isMissing = checks.isEmpty
            return isMissing ? [.init(type: .bleNotSupported, description: "badged runs without Bluetooth")] : []
        }
        let isOff = fault.state == "off"
        let text = [fault.cause, fault.advice].compactMap { $0 }.joined(separator: "; ")
        return [.init(type: isOff ? .bleTurnedOff : .bleNotSupported, description: text)]
    }

    private func bluetoothChecks() throws(NSError) -> [HealthCheck] {
        let checks = try calls.wait { [self] in try await calls.connection().health() }
        return checks.filter { ["bluetooth", "bluetoothAccess", "bluetoothAdapter"].contains($0.name) }
    }

    /// Whether there is an adapter that badged can use; it may be switched off.
    public func deviceSupportsBluetoothLowEnergy() -> Bool {
        !deviceHealthCheck().contains { $0.type == .bleNotSupported }
    }

    /// Whether there is an adapter that is switched on.
    public func deviceHasBluetoothTurnedOn() -> Bool { deviceHealthCheck().isEmpty }

    // MARK: Only on a phone

    private static let noWallet = OrigoKeysInfo(
        type: .secureElementPassNotAvailable,
        description: "badged has no phone wallet; it keeps keys in its own store"
    )

    /// Always says that there is no wallet of a phone.
    public func walletHealthCheck() -> [OrigoKeysWalletInfoType] { [.secureElementPassNotAvailable] }

    /// Always false: badged does not see whether a screen is locked.
    public func isDeviceEnforcementEnabled() -> Bool { false }

    /// Returns the places for keys: the store of badged.
    public func getAvailableTargets() -> [OrigoKeysTarget] { [.OrigoSDK] }

    /// Sets up the endpoint. A target in a wallet of a phone ends with the error `secureElement`.
    public func setupEndpoint(_ invitationCode: String, target: OrigoKeysTarget) {
        guard target == .OrigoSDK else {
            return notify {
                $0.origoKeysDidFail(toSetupEndpoint: NSError(.secureElement, Self.noWallet.description))
            }
        }
        setupEndpoint(invitationCode)
    }

    /// Always empty: there is no wallet of a phone.
    public func listWalletPasses() -> [Any] { [] }

    /// Always empty: there is no wallet of a phone.
    public func listWalletRemotePasses() -> [Any] { [] }

    /// Always false: this is a service of the vendor.
    public func isLocationServiceRegistered() -> Bool { false }

    /// Always nil: this is a service of the vendor.
    public func getLocationHandler() -> (any OrigoLocationHandler)? { nil }

    /// What made the app open a reader. badged does not need it.
    public var unlockOpeningType: OrigoKeysUnlockOpeningType {
        get { state.withLock { $0.unlockOpeningType } }
        set { state.withLock { $0.unlockOpeningType = newValue } }
    }
}

/// The locations of a service of the vendor. badged has none.
public protocol OrigoLocationHandler: AnyObject {}
