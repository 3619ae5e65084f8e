// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import DoorOpening
import DoorTestSupport
import Foundation
import Glibc
import Scanners
import Synchronization
import TestSupport
import Testing
import Text

@testable import BadgedOrigoKeys

/// Messages of the scripted badged.
private enum Message {
    static let scan = #"{"msg":"SCAN","wanted":true,"radio":true}"#
    static let asks = #"{"msg":"AUTO_OPEN","mode":"ask","openingType":"proximity"}"#
    static let reader = #"{"msg":"DOOR_READER","reader":{"id":"pkoc-A","profile":"pkoc","rssi":{"last":-40}}}"#
    static let question =
        #"{"msg":"ASK_OPEN","token":1,"reader":"pkoc-A","openingType":"proximity","expiresMs":10000}"#
    static let begun =
        #"{"msg":"OPENING","token":2,"reader":"pkoc-A","openingType":"proximity","state":"connecting"}"#
    static let fault = #"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#
    static let failed = #"{"msg":"OPENING_RESULT","token":2,"reader":"pkoc-A","status":"readerFailure"}"#
}

@Suite("The Origo SDK on door readers of badged", .timeLimit(.minutes(5)))
@Loop struct OrigoReaderTests {
    private let stage: OrigoStage

    init() async throws { stage = try await OrigoStage() }

    @Test("an app scans, finds the closest reader, and opens it")
    func opens() async throws {
        stage.app.opens = false
        try await stage.setUp()
        #expect(try await stage.call { _, manager in (try? manager.lastAuthenticationInfo()) == nil })
        try await stage.call { app, _ in app.startScanning() }
        #expect(stage.app.lastError == nil)
        #expect(stage.scanner.calls == ["scan performance 2"])
        #expect(try await stage.call { $1.isScanning() })
        stage.advertise(-90)
        #expect(await stage.next() == "appeared")
        let far = try await stage.call { $1.closestReader(withinRangeOf: .proximity) }
        #expect(far == nil)
        stage.advertise()
        // The reader is in range now, so badged asks whether to open it.
        #expect(await stage.next() == "open? proximity")
        let reader = try #require(try await stage.call { $1.closestReader(withinRangeOf: .proximity) })
        #expect(reader.uuid == OrigoStage.readerID && reader.meanRssi() == -35 && reader.isInRange(for: .proximity))
        #expect(reader.supports(.proximity) && reader.supports(.applicationSpecific) && !reader.supports(.motion))
        #expect(reader.supportedOpeningTypes as? [Int] == [1, 8])
        #expect(reader.rssiList().map(\.rssi) == [-35, -35, -35])
        let listed = try #require(try await stage.call { $1.listReaders() }.first)
        #expect(listed.uuid == reader.uuid && listed.rssiHistory().count == 24)
        let chosen = try await stage.call { $1.closestReader(withinRangeOf: .applicationSpecific) }
        #expect(chosen?.uuid == reader.uuid)
        #expect(try await stage.call { $1.closestReader(withinRangeOf: .motion) } == nil)

        try await stage.call { app, _ in app.open(reader, .applicationSpecific) }
        #expect(stage.app.lastError == nil)
        #expect(await stage.next() == "connect applicationSpecific")
        #expect(await stage.next() == "disconnect applicationSpecific success 3 granted")
        let last = try #require(try await stage.call { _, manager in try? manager.lastAuthenticationInfo() })
        #expect(last.authenticationCounter == 1 && !last.isModified)
        #expect(last.lastAuthenticatedOrigoKey?.label == "main building")
        // It cools down.
        try await stage.call { app, _ in app.open(reader, .proximity) }
        #expect(await stage.next() == "no connect proximity busy")

        try await stage.call { $1.stopReaderScan() }
        #expect(stage.scanner.calls.last == "stop")
        #expect(try await stage.call { $1.isScanning() } == false)
        #expect(try await stage.call { $1.listReaders().count } == 0)
    }

    @Test("a wrong scan, and a way of opening that it does not have, are refused")
    func refusals() async throws {
        for types in [[], ["tap"], [0], [3]] as [[any Sendable]] {
            try await stage.call { app, _ in app.startScanning(.optimizePerformance, types) }
            #expect(stage.app.lastError?.code == 1102)
        }
        #expect(stage.scanner.calls.isEmpty)
        try await stage.call { app, _ in app.startScanning(.optimizePowerConsumption, [OrigoKeysOpeningType.motion]) }
        #expect(stage.app.lastError == nil && stage.scanner.calls == ["scan powerSaving 2"])
        try await stage.call { $1.setSupportedOpeningTypes([OrigoKeysOpeningType.proximity.rawValue]) }
        stage.advertise()
        #expect(await stage.next() == "appeared")
        try await stage.call { app, _ in app.open(app.lastReader, .seamless) }
        #expect(stage.app.lastError?.code == 1101)
        #expect(stage.connector.connections == 0)
    }

    @Test("a reader in range is opened when the app agrees, and the app gets the result")
    func automatic() async throws {
        try await stage.setUp()
        try await stage.call { app, _ in app.startScanning() }
        stage.advertise()
        #expect(await stage.next() == "appeared")
        #expect(await stage.next() == "open? proximity")
        #expect(await stage.next() == "connect proximity")
        #expect(await stage.next() == "disconnect proximity success 3 granted")
    }

    @Test("a call does not open a reader that badged opens already, and the app gets the one result")
    func opensOnce() async throws {
        try await stage.setUp()
        stage.connector.holds = true
        try await stage.call { app, _ in app.startScanning() }
        stage.advertise()
        #expect(await stage.next() == "appeared")
        #expect(await stage.next() == "open? proximity")
        await stage.connector.wait(connections: 1)
        try await stage.call { app, _ in app.open(app.lastReader, .proximity) }
        #expect(stage.app.lastError?.code == 401)
        stage.connector.release()
        #expect(await stage.next() == "connect proximity")
        #expect(await stage.next() == "disconnect proximity success 3 granted")
        // The refused call keeps no right; the reader cools down.
        try await stage.call { app, _ in app.open(app.lastReader, .proximity) }
        #expect(stage.app.lastError == nil)
        #expect(await stage.next() == "no connect proximity busy")
    }

    @Test("each call that opens a reader ends once: by its result, or by the end of the connection")
    func callsEndOnce() async throws {
        var peer: ScriptedPeer? = try ScriptedPeer { peer in
            peer.answer("START_SCAN", Message.scan)
            peer.answer("SET_AUTO_OPEN", Message.asks)
            peer.send(Message.reader)
            peer.send(Message.question)
            peer.answer("OPEN_READER", Message.begun)
            peer.answer("ALLOW_OPEN", Message.asks)
            peer.send(Message.failed)
            // An answer that names no reader.
            peer.answer("OPEN_READER", #"{"msg":"OPENING_RESULT","status":"outOfRange"}"#)
            peer.command("OPEN_READER")
            peer.hangUp()
        }
        let app = SampleApp()
        app.origoKeysManager = OrigoKeysManager(
            delegate: app,
            options: [:],
            socketPath: peer?.path,
            callbackQueue: DispatchQueue(label: "callbacks")
        )
        app.connectsWhenAsked = true
        app.startScanning()
        #expect(await app.next() == "appeared")
        #expect(await app.next() == "open? proximity")
        #expect(await app.next() == "no connect proximity readerFailure")
        app.open(app.lastReader, .proximity)
        #expect(app.lastError == nil)
        #expect(await app.next() == "no connect proximity outOfRange")
        app.open(app.lastReader, .proximity)
        // An error or a callback, never both.
        var line = await app.next()
        if app.lastError == nil {
            #expect(line == "no connect proximity bluetoothCommunicationFailed")
            line = await app.next()
        }
        #expect(line == "disappeared")
        let isBusy = app.origoKeysManager?.state.withLock { $0.isBusy }
        #expect(isBusy == false)
        let answers = await peer?.received().filter { $0.contains("ALLOW_OPEN") } ?? []
        #expect(answers.count == 1 && answers.allSatisfy { $0.contains(#""allow":false"#) })
        peer = nil
        app.origoKeysManager?.stopReaderScan()
    }

    @Test("a reader that the app ignores is neither shown nor opened")
    func ignores() async throws {
        stage.app.interacts = false
        try await stage.call { app, _ in app.startScanning() }
        stage.advertise()
        // Once for the reader, and once for its question.
        #expect(await stage.next() == "ignore")
        #expect(await stage.next() == "ignore")
        #expect(stage.connector.connections == 0)
    }

    @Test("a gesture opens the closest reader by motion, if there is one")
    func gesture() async throws {
        try await stage.call { app, _ in app.startScanning() }
        try await stage.call { $1.unlockGesture() }
        #expect(await stage.next() == "gesture")
        #expect(stage.connector.connections == 0)
    }

    @Test("when badged ends during an opening, the opening fails, and the scan continues with a new badged")
    func ends() async throws {
        stage.app.opens = false
        try await stage.setUp()
        try await stage.call { app, _ in app.startScanning() }
        stage.advertise()
        #expect(await stage.next() == "appeared")
        #expect(await stage.next() == "open? proximity")
        stage.connector.holds = true
        try await stage.call { app, _ in app.open(app.lastReader, .proximity) }
        await stage.connector.wait(connections: 1)
        try await stage.call { app, _ in app.open(app.lastReader, .proximity) }
        #expect(stage.app.lastError?.code == 401)
        await stage.server.stopListening()
        #expect(await stage.next() == "no connect proximity bluetoothCommunicationFailed")
        #expect(await stage.next() == "disappeared")
        stage.connector.release()
        #expect(try await stage.call { $1.isScanning() })
        // A new badged at the same path.
        let (scans, scan) = AsyncStream.makeStream(of: Void.self)
        let other = try await OrigoStage()
        other.scanner.onScan = { scan.yield() }
        #expect(rename(other.path, stage.path) == 0)
        for await _ in scans { break }
        other.advertise()
        #expect(await stage.next() == "appeared")
        await other.server.stopListening()
        unlink(stage.path)
    }

    @Test("the pauses between new connections grow until badged serves the app again")
    func pauses() async throws {
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        let mayAnswer = DispatchSemaphore(value: 0)
        let refused = Mutex(0)
        let peer = try ScriptedPeer { peer in
            peer.answer("START_SCAN", Message.scan)
            peer.answer("SET_AUTO_OPEN", Message.asks)
            peer.hangUp()
        } others: { peer in
            let count = refused.withLock { count in
                count += 1
                return count
            }
            guard count > 2 else {
                peer.send(Message.fault)
                return peer.hangUp()
            }
            let command = peer.command("START_SCAN")
            arrival.yield()
            mayAnswer.wait()
            peer.send(Message.scan, answering: command)
            peer.answer("SET_AUTO_OPEN", Message.asks)
            peer.send(Message.reader)
            peer.answer("SET_AUTO_OPEN", Message.asks)
            peer.answer("STOP_SCAN", Message.scan)
        }
        let app = SampleApp()
        app.origoKeysManager = OrigoKeysManager(
            delegate: app,
            options: [:],
            socketPath: peer.path,
            callbackQueue: DispatchQueue(label: "callbacks")
        )
        let manager = try #require(app.origoKeysManager)
        app.startScanning()
        for await _ in arrivals { break }
        // Three pauses have passed: before the two refused connections, and before this one.
        let longest = manager.state.withLock { $0.pause }
        #expect(longest == .milliseconds(800))
        mayAnswer.signal()
        #expect(await app.next() == "appeared")
        let first = manager.state.withLock { $0.pause }
        #expect(first == .milliseconds(100))
        manager.stopReaderScan()
    }

    @Test("time limits are passed on, within the bounds of badged")
    func timeouts() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer(
                "SET_TIMEOUTS",
                #"{"msg":"TIMEOUTS","fragmentMs":50,"apduMs":60000,"connectMs":3200}"#
            )
            peer.hangUp()
        }
        let app = SampleApp()
        let manager = OrigoKeysManager(delegate: app, options: [:], socketPath: peer.path)
        let limits = OrigoKeysTimeoutConfiguration()
        (limits.maxTimeBetweenFragments, limits.maxTimeBetweenApdus) = (-1, 100)
        manager.setTimeoutConfiguration(limits)
        let sent = await peer.received().first ?? ""
        for member in [#""fragmentMs":50"#, #""apduMs":60000"#, #""connectMs":3200"#] {
            #expect(sent.contains(member), "\(sent)")
        }
    }

    @Test(
        "the health of Bluetooth is reported with the codes of the SDK",
        arguments: [
            (nil, []), (ScannerFault.noAdapter, [.bleNotSupported]), (.adapterOff, [.bleTurnedOff]),
            (ScannerFault(.service, "bluetoothd does not run", advice: "x"), [.bleNotSupported]),
        ] as [(ScannerFault?, [OrigoKeysInfoType])]
    )
    func health(_ fault: ScannerFault?, _ types: [OrigoKeysInfoType]) async throws {
        let options: [AnyHashable: Any] = [
            OrigoKeysOptionTargets: "OrigoAppleWallet"
        ]
        let stage = try await OrigoStage(options: options)
        stage.scanner.idle = ScannerStatus(fault: fault)
        #expect(try await stage.call { $1.deviceHealthCheck().map(\.type) } == types)
        #expect(try await stage.call { $1.deviceHasBluetoothTurnedOn() } == types.isEmpty)
        #expect(try await stage.call { $1.deviceSupportsBluetoothLowEnergy() } == !types.contains(.bleNotSupported))
        // An app whose options name functions of a phone gets their codes, too.
        #expect(try await stage.call { $1.healthCheck().map(\.type) } == types + [.secureElementPassNotAvailable])
        #expect(try await stage.call { $1.walletHealthCheck() } == [.secureElementPassNotAvailable])
        #expect(stage.app.createInitializedMobileKeysManager()?.isLocationServiceRegistered() == false)
    }

    @Test(
        "an app hears when it enters and leaves the region of iBeacons",
        arguments: [
            ([OrigoKeysOptionEnableBeaconBLEScan: "YES"], OrigoKeysDefaultBeaconUUID),
            ([OrigoKeysOptionBeaconUUID: ""], OrigoKeysDefaultBeaconUUID),
            (
                [OrigoKeysOptionBeaconUUID: "F2A5E7D0-4C93-4B8F-9A69-31A1CE90223A"],
                "f2a5e7d0-4c93-4b8f-9a69-31a1ce90223a"
            ),
        ]
    )
    func region(_ options: [String: String], _ uuid: String) async throws {
        let stage = try await OrigoStage(options: options)
        #expect(try await stage.call { $1.healthCheck().map(\.type) } == [])
        try await stage.call { app, _ in app.startScanning() }
        stage.beacon("00000000-0000-0000-0000-000000000001", major: 3)
        stage.beacon(uuid, major: 1)
        #expect(await stage.next() == "enter \(uuid)")
        stage.beacon(uuid, major: 2)
        // A reader comes after the second beacon.
        stage.advertise()
        #expect(await stage.next() == "appeared")
        let places = try await stage.call { $1.beacons().map { [$0.beaconMajor, $0.beaconMinor] } }
        #expect(places == [[257, 9], [258, 9]])
        // A beacon is no reader.
        #expect(try await stage.call { $1.listReaders().map(\.uuid) } == [OrigoStage.readerID])
        try await stage.call { $1.stopReaderScan() }
        var end = await stage.next()
        // The reader is opened or refused meanwhile.
        while let line = end, !line.hasPrefix("exit ") { end = await stage.next() }
        #expect(end == "exit \(uuid)")
        #expect(try await stage.call { $1.beacons().count } == 0)
    }

    @Test(
        "keys and readers are objects of Foundation: they are compared, are keys of dictionaries, and describe themselves"
    )
    func objects() async throws {
        try await stage.setUp()
        let keys: [AnyHashable] = try await stage.call { app, _ in app.listKeys() }
        let again = try await stage.call { app, _ in app.listKeys() }
        #expect(keys == again as [AnyHashable] && Set(again + again).count == 1)
        #expect(again.first?.debugDescription.isEmpty == false)
        let number: NSNumber = 1
        #expect([again.first: number].count == 1)
    }
}
