// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorOpening
import Foundation
import Host
import KeyFeature
import ServerDoubles
import TestSupport
import Testing
import Text

@testable import BadgedOrigoKeys

@Suite("The Origo SDK on keys of badged", .timeLimit(.minutes(5)))
@Loop struct OrigoKeyTests {
    @Test("an app sets up its endpoint, uses its keys, and removes all")
    func wholeLife() async throws {
        let stage = try await OrigoStage()
        try await stage.call { $1.startup() }
        #expect(await stage.next() == "startup")
        #expect(try await stage.call { app, _ in app.isEndpointSetup() } == false)
        #expect(stage.app.lastError?.code == OrigoKeysErrorCode.endpoint.rawValue)
        #expect(try await stage.call { app, _ in app.listKeys().count } == 0)
        #expect(stage.app.lastError?.domain == "Endpoint")
        try await stage.setUp()
        #expect(try await stage.call { app, _ in app.isEndpointSetup() })
        let key = try #require(try await stage.call { app, _ in app.listKeys().first })
        #expect(stage.app.lastError == nil)
        #expect((key.label, key.issuer, key.keyType) == ("main building", "acme", "pkoc"))
        #expect(key.active && !key.isExpired() && !key.supportsOTP())
        #expect(key.uniqueIdentifier() == key.keyId && key.credentialType == 0)
        let info = try await stage.call { $1.endpointInfo(nil) }
        #expect(info.isSetup && info.seosId != 0 && info.allocatedFileSystemSize == 32 * 32 * 1024)
        #expect(try await stage.call { $1.getOrigoEndPointID() } == info.id)
        #expect(try await stage.call { $1.apiVersion() } == "0.0.0")

        try await stage.call { _, manager in try? manager.deactivateOrigo(key) }
        #expect(try await stage.call { app, _ in app.listKeys().first?.active } == false)
        try await stage.call { _, manager in try? manager.activateOrigoKey(key) }
        #expect(try await stage.call { app, _ in app.listKeys().first?.active } == true)

        let content = Data([1, 2, 3])
        #expect(try await stage.call { app, _ in app.store(content, key, tag: 0x5F21) } == content)
        #expect(try await stage.call { $1.endpointInfo(nil).currentTopOfFileSystem } == 5)
        _ = try await stage.call { app, _ in app.store(content, key, tag: 0x10000) }
        #expect(stage.app.lastError?.code == OrigoKeysErrorCode.invalidParameter.rawValue)

        stage.issuer.revoke(key.externalId)
        try await stage.call { $1.updateEndpoint() }
        #expect(await stage.next() == "update 0 0 1")
        #expect(try await stage.call { app, _ in app.listKeys().first?.active } == false)
        #expect(try await stage.call { $1.endpointInfo(nil).lastServerSyncDate } != nil)
        try await stage.call { $1.unregisterEndpoint() }
        #expect(await stage.next() == "terminated")
        #expect(try await stage.call { app, _ in app.isEndpointSetup() } == false)
    }

    @Test("each one-time code differs from the one before")
    func codes() async throws {
        let stage = try await OrigoStage()
        try await stage.setUp()
        let client = try stage.server.connect()
        // The secret of RFC 4226, Appendix D.
        let secret = "hex:3132333435363738393031323334353637383930"
        #expect(await client.ask(#"{"cmd":"NEW_KEY","protocol":"otp","value":"\#(secret)"}"#, "KEY") != nil)
        let key = try #require(
            try await stage.call { app, _ in app.listKeys().first { $0.supportsOTP() } },
            "the client is of the same user"
        )
        for (number, code) in ["755224", "287082"].enumerated() {
            let made = try await stage.call { app, _ in app.code(of: key) }
            #expect((made.code, made.next) == (code, UInt(number + 1)))
        }
        let pair = try #require(try await stage.call { app, _ in app.listKeys().first { !$0.supportsOTP() } })
        #expect(try await stage.call { app, _ in app.code(of: pair).code } == "")
        #expect(stage.app.lastError?.domain == "KeyNotUsable")
    }

    @Test("a fault of the issuer has its name, and a RetryError takes the same invitation again")
    func faults() async throws {
        let stage = try await OrigoStage()
        let code = OrigoStage.code
        try await stage.call { $1.setupEndpoint(code) }
        #expect(await stage.next() == "no setup InvitationCodeInvalid 901")
        stage.issuer.invite(code)
        stage.issuer.fail(.busy)
        try await stage.call { $1.setupEndpoint(code) }
        let retry = OrigoKeysErrorCode.deviceSetupFailedRetry.rawValue
        #expect(await stage.next() == "no setup DeviceSetupFailedRetryError \(retry)")
        try await stage.call { $1.setupEndpoint(code) }
        #expect(await stage.next() == "setup")
        stage.issuer.fail(.drop)
        try await stage.call { $1.updateEndpoint() }
        #expect(await stage.next() == "no update 702")
        try await stage.call { $1.setupEndpoint(code, target: .OrigoAppleWallet) }
        let wallet = OrigoKeysErrorCode.secureElement.rawValue
        #expect(await stage.next() == "no setup secureElement \(wallet)")
    }

    @Test("a second call is refused until the callback of the first")
    func busy() async throws {
        let stage = try await OrigoStage()
        try await stage.call { _, manager in
            manager.startup()
            manager.startup()
        }
        #expect(Set([await stage.next(), await stage.next()]) == ["startup", "no startup 401"])
        try await stage.call { $1.startup() }
        #expect(await stage.next() == "startup")
    }

    @Test("without badged, and without permission, every call says why")
    func unreachable() async throws {
        let stage = try await OrigoStage(permissions: .all.subtracting(.keys))
        let denied = OrigoKeysErrorCode.daemonUnavailable.rawValue
        try await stage.call { $1.startup() }
        #expect(await stage.next() == "no startup \(denied)")
        #expect(try await stage.call { app, _ in app.listKeys().count } == 0)
        #expect(stage.app.lastError?.localizedDescription.contains("does not allow GET_KEYS") == true)
        await stage.server.stopListening()
        try await stage.call { $1.updateEndpoint() }
        #expect(await stage.next() == "no update \(denied)")
        #expect(try await stage.call { $1.apiVersion() } == "")
        #expect(try await stage.call { $1.healthCheck().map(\.type) } == [.bleNotSupported])
        try await stage.call { app, _ in app.startScanning() }
        #expect(stage.app.lastError?.code == denied)
        #expect(try await stage.call { $1.isScanning() } == false)
    }

    @Test("each error of badged has a number of its own or that of the SDK")
    func numbers() {
        for name in KeyCode.allCases {
            let number = name.code ?? OrigoKeysErrorCode(name: name.rawValue).rawValue
            #expect(OrigoKeysErrorCode(rawValue: number) != nil)
            #expect(number != OrigoKeysErrorCode.unknown.rawValue, "\(name)")
        }
        let error: any Error = NSError(.apiIsBusy, "busy")
        #expect((error as NSError).code == 401 && error.localizedDescription == "busy")
    }

    @Test("what badged does not have is empty, and numbers are those of the SDK")
    func constants() throws {
        let info = OrigoKeysEndpointInfo()
        #expect(info.environmentType == .local && info.getEnvironmentName() == "local")
        #expect([info.seosAppletVersion, info.fileSystemAppletVersion, info.toolsAppletVersion] == ["", "", ""])
        #expect(OrigoEnvironmentType.local.rawValue == 4)
        let begun = Date(timeIntervalSince1970: 5)
        let summary = OrigoKeysEndpointUpdateSummary(#"{"durationMs":1500}"#, begun: begun)
        #expect(summary.updateDate == begun && summary.updateDuration == 1.5)
        #expect(OrigoKeysInfo(type: .bleTurnedOff, description: "off").intValue == 2)
        #expect(OrigoKeysWalletInfoType.allCases.map(\.rawValue) == [0, 1])
        let reader = try #require(OrigoKeysReader(#"{"id":"r","name":"Door","lastSeen":2000,"rssi":{"last":-40}}"#))
        #expect(reader.localName == "Door" && reader.lastRSSIUpdate == Date(timeIntervalSince1970: 2))
        #expect(reader.readerType == .blePeripheral)
        #expect(reader.optionalScanResponseData == nil && reader.readerPSN == nil)
        #expect(OrigoKeysOpeningResult(.success).connectionDuration == 0)
        #expect(OrigoKeysTimeoutConfiguration().maxConnectionTime == 3.2)
    }

    @Test("an app may set every option of the SDK, and say what made it open a reader")
    func options() async throws {
        let names = [
            OrigoKeysOptionTSMPublicCert, OrigoKeysOptionTSMBaseURL, OrigoKeysOptionCustomSetupAkeKey,
            OrigoKeysOptionMotionManager, OrigoKeysOptionCustomEventValue, OrigoKeysOptionBackgroundTaskID,
            OrigoKeysOptionPeripheralMode,
        ]
        let stage = try await OrigoStage(options: Dictionary(uniqueKeysWithValues: names.map { ($0, "x") }))
        try await stage.call { $1.startup() }
        #expect(await stage.next() == "startup")
        let reason = try await stage.call { _, manager in
            manager.unlockOpeningType = OrigoKeysUnlockOpeningType.widget
            return manager.unlockOpeningType
        }
        #expect(reason == .widget)
    }

    @Test("the eighteen names of an opening are the statuses of the SDK, in its order")
    func statuses() {
        let numbers = OpeningStatus.allCases.map { OrigoKeysOpeningStatusType(name: $0.rawValue).rawValue }
        #expect(numbers == Array(0...17))
    }
}
