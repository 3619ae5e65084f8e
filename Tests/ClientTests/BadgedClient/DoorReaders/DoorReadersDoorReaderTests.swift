// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Host
import Scanners
import Server
import TestSupport
import Testing

@testable import BadgedClient

/// A server on a socket, with a radio that the test plays.
@Loop private struct RadioFixture {
    let server: TestServer
    let path: String
    let scanner = ScriptedScanner()
    let clock = ManualClock()
    private let radio: Radio

    init(permissions: Permissions = .all) async throws {
        radio = Radio(scanners: [scanner], clock: clock)
        server = try await TestServer(readers: 0, permissions: permissions, radio: radio)
        path = try server.listen()
    }

    static let listening = ScannerStatus(
        isListening: true,
        adapters: [RadioAdapter(name: "hci0", address: "00:11:22:33:44:55", isPowered: true)]
    )

    /// Plays an advertisement of a Seos-style reader.
    func receive(_ number: UInt64, code: UInt8 = 2, _ rssi: Int8) {
        let data: [UInt8] = [17, 0x07, code, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0]
        scanner.receive(data, from: DeviceAddress(bits: 0xC000_0000_0000 | number, isRandom: true), rssi)
    }
}

extension DaemonConnection {
    /// The next message of this type.
    fileprivate func next<Message: ServerMessage>(_: Message.Type) async -> Message? {
        for await event in events {
            if let message = event.message as? Message { return message }
        }
        return nil
    }

    fileprivate func nextDoorReader() async -> BadgedClient.DoorReader? { await next(BadgedClient.DoorReader.self) }
}

@Suite("Door readers with the library", .timeLimit(.minutes(5))) struct DoorReaderTests {
    @Test("A scan shows the radio, a reader, the list, the closest reader and a loss, until it ends")
    @Loop func scan() async throws {
        let fixture = try await RadioFixture()
        let badged = try await DaemonConnection.connect(to: fixture.path)
        #expect(try await badged.scanStatus() == ScanStatus(isWanted: false, isListening: false))
        let begun = try await badged.startScan()
        #expect(begun.isWanted && !begun.isListening && begun.error == nil)
        #expect(fixture.scanner.calls == ["scan powerSaving 2"])
        fixture.scanner.change(RadioFixture.listening)
        #expect(await badged.next(ScanStatus.self)?.isListening == true)
        #expect(try await badged.closestDoorReader(for: "motion") == .nobody(reason: "none"))

        fixture.receive(1, -60)
        let reader = try #require(await badged.nextDoorReader())
        #expect(reader.id == "seos-C0:00:00:00:00:01")
        #expect((reader.profile, reader.lockServiceCode, reader.lastRSSI) == ("seos", 2, -60))
        #expect(Set(reader.openingTypes) == ["motion", "proximity"] && reader.inRange == [] && reader.isActive)
        fixture.clock.advance(100)
        fixture.receive(1, -60)
        // A change of `inRange` is reported at once.
        #expect(await badged.nextDoorReader()?.inRange == ["motion"])
        fixture.receive(2, -90)
        #expect(await badged.nextDoorReader()?.inRange == [])
        #expect(try await badged.doorReaders().map(\.lastRSSI) == [-60, -90])
        let closest = try await badged.closestDoorReader(for: "motion")
        if case .reader(let closest) = closest { #expect(closest.id == reader.id) } else { Issue.record("\(closest)") }
        #expect(try await badged.closestDoorReader(for: "proximity") == .nobody(reason: "outOfRange"))
        #expect(try await badged.closestDoorReader(for: "enhancedTap") == .nobody(reason: "notSupported"))

        fixture.clock.advance(11_000)
        #expect(await badged.next(DoorReaderLost.self) != nil)
        #expect(try await badged.doorReaders() == [])
        #expect(try await badged.doorReaders(activeOnly: false).map(\.isActive) == [false, false])
        #expect(try await badged.stopScan().isWanted == false)
        #expect(fixture.scanner.calls.last == "stop")
        await fixture.server.stopListening()
    }

    @Test("Every option reaches the scan")
    @Loop func options() async throws {
        let fixture = try await RadioFixture()
        let badged = try await DaemonConnection.connect(to: fixture.path)
        try await badged.startScan(
            ScanOptions(
                mode: .performance,
                openingTypes: ["motion"],
                lockServiceCodes: [9, 7],
                profiles: ["seos"],
                updates: .seconds(2),
                advertisements: .raw
            )
        )
        #expect(fixture.scanner.calls == ["scan performance 7+9"])
        fixture.receive(1, code: 2, -60)
        fixture.receive(3, code: 7, -61)
        let advertisement = await badged.next(Advertisement.self)
        #expect(advertisement?.address == "C0:00:00:00:00:01" && advertisement?.addressType == "static")
        #expect(advertisement?.rssi == -60 && advertisement?.data.first == 17 && advertisement?.data.count == 18)
        // The first reader has another code.
        #expect(await badged.nextDoorReader()?.lockServiceCode == 7)
        // The next update comes after two seconds.
        fixture.clock.advance(1_000)
        fixture.receive(3, code: 7, -71)
        #expect(try await badged.doorReaders().map(\.lastRSSI) == [-71])
        fixture.clock.advance(1_000)
        #expect(await badged.nextDoorReader()?.lastRSSI == -71)
        await fixture.server.stopListening()
    }

    @Test(
        "A wrong option is refused with its name, and the scan stays as it was",
        arguments: [
            (
                ScanOptions(openingTypes: ["door"]),
                "openingTypes must be a list of 1 to 1000 values, each proximity, motion, seamless, applicationSpecific or enhancedTap"
            ),
            (
                ScanOptions(openingTypes: []),
                "openingTypes must be a list of 1 to 1000 values, each proximity, motion, seamless, applicationSpecific or enhancedTap"
            ),
            (
                ScanOptions(lockServiceCodes: [0]),
                "lockServiceCodes must be a list of 0 to 1000 values, each a whole number from 1 to 16777215"
            ),
            (
                ScanOptions(profiles: ["telepathy"]),
                "profiles must be a list of 1 to 1000 values, each seos, pkoc, aliro, ccc, ibeacon or eddystone"
            ),
            (ScanOptions(updates: .seconds(61)), "updates must be a whole number from 0 to 60000"),
            (ScanOptions(updates: .seconds(-1)), "updates must be a whole number from 0 to 60000"),
        ]
    )
    @Loop func refused(options: ScanOptions, error: String) async throws {
        let fixture = try await RadioFixture()
        let badged = try await DaemonConnection.connect(to: fixture.path)
        await #expect(throws: ClientError.refused(error)) { try await badged.startScan(options) }
        #expect(try await badged.scanStatus().isWanted == false)
        try await badged.startScan()
        // A refusal must not look like a fault of the running scan.
        await #expect(throws: ClientError.refused(error)) { try await badged.startScan(options) }
        #expect(try await badged.scanStatus().isWanted)
        await #expect(
            throws: ClientError.refused(
                "openingType must be proximity, motion, seamless, applicationSpecific or enhancedTap"
            )
        ) {
            try await badged.closestDoorReader(for: "door")
        }
        await fixture.server.stopListening()
    }

    @Test("A radio that does not work is no refusal: the scan is wanted, and its fault has an age")
    @Loop func fault() async throws {
        let fixture = try await RadioFixture()
        let badged = try await DaemonConnection.connect(to: fixture.path)
        try await badged.startScan()
        let fault = ScannerFault(.service, "bluetoothd does not run", advice: "systemctl start bluetooth")
        fixture.scanner.change(ScannerStatus(fault: fault))
        let status = await badged.next(ScanStatus.self)
        #expect(status?.error?.contains("systemctl start bluetooth") == true)
        fixture.clock.advance(500)
        let again = try await badged.startScan()
        #expect(again.isWanted && again.error == status?.error && again.errorAge == .milliseconds(500))
        await fixture.server.stopListening()
    }

    @Test("A user without the permission to scan is refused")
    @Loop func denied() async throws {
        let fixture = try await RadioFixture(permissions: [.readers])
        let badged = try await DaemonConnection.connect(to: fixture.path)
        func denied(_ command: String) -> ClientError {
            .accessDenied(command: command, missing: ["scan"], granted: ["readers"])
        }
        await #expect(throws: denied("START_SCAN")) { try await badged.startScan() }
        await #expect(throws: denied("GET_DOOR_READER_LIST")) { try await badged.doorReaders() }
        await fixture.server.stopListening()
    }
}
