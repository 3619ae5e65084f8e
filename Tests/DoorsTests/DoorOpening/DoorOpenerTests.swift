// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Concurrency
import Crypto
import DoorReaders
import DoorTestSupport
import Testing
import Text
import Vault

@testable import DoorOpening

@Suite("Opening a reader in software", .timeLimit(.minutes(5)))
@Loop struct DoorOpenerTests {
    private let connector = ModelConnector(ModelReader(signer: siteScalar))

    private static let siteScalar = [UInt8](repeating: 5, count: 32)
    private static let address = DeviceAddress(bits: 0xC000_0000_0001, isRandom: true)

    /// Limits that a busy machine does not reach: the key signs in the loop of all tests.
    private static let patient: OpeningTimeouts = {
        var timeouts = OpeningTimeouts()
        timeouts.apdu = 240_000
        return timeouts
    }()

    private static func credentials(isLegacy: Bool = false, key: (any CredentialKey)? = nil) throws -> [DoorCredential]
    {
        let site = try DoorSite(
            identifier: Array(repeating: 0x51, count: 16),
            siteKey: ModelReader.key(siteScalar).publicKey.uncompressed,
            isLegacy: isLegacy
        )
        return [
            DoorCredential(id: "other", key: BrokenKey(), sites: [], lastUpdate: 0),
            DoorCredential(id: "door", key: try key ?? ModelKey(), sites: [site], lastUpdate: 1),
        ]
    }

    @Test("a reader grants in both flows, in both dialects, also at MTU 23")
    func grants() async throws {
        for isEncrypted in [true, false] {
            for (dialect, information, mtu) in [
                (PKOCFraming.Dialect.fragments, [UInt8]([3, 1, 0, 0, 0, 1]), 23),
                (.fragments, [3, 1, 0, 0, 0, 1], 517),
                (.whole, [3, 0, 0, 0, 1], 185), (.whole, [3, 1, 0, 0, 0, 1], 185),
            ] {
                var reader = ModelReader(signer: Self.siteScalar)
                (reader.isEncrypted, reader.information) = (isEncrypted, information)
                let connector = ModelConnector(reader)
                (connector.dialect, connector.mtu) = (dialect, mtu)
                var states: [OpeningState] = []
                let opener = DoorOpener(connector)
                let result = await opener.open(
                    Self.address,
                    adapter: 0,
                    try Self.credentials(isLegacy: !isEncrypted),
                    Self.patient
                ) { states.append($0) }
                #expect(result == OpeningResult(.success, decision: .granted, payload: [3], key: "door"))
                #expect(states == [.connecting, .connected, .authenticating])
                #expect(connector.reader.visitors == [try ModelKey().publicKey])
                await opener.waitUntilIdle()
                #expect(connector.open == 0)
            }
        }
    }

    @Test("a reader that supports only the flow without encryption gets no key unless its site is legacy")
    func noDowngrade() async throws {
        var reader = ModelReader(signer: Self.siteScalar)
        reader.isEncrypted = false
        let connector = ModelConnector(reader)
        connector.reader.fault = .silentAfterGreeting
        let result = await DoorOpener(connector).open(Self.address, adapter: 0, try Self.credentials(), Self.patient)
        #expect(result.status == .readerTimedOutAPDU)
        // The reader has received an ephemeral key only.
        #expect(connector.reader.received.allSatisfy { $0.first == 0x07 })
        #expect(connector.reader.visitors.isEmpty)
    }

    @Test(
        "a faulty reader ends the opening, gets no key, and is disconnected",
        arguments: [
            (ModelReader.Fault.wrongSiteKey, OpeningStatus.readerFailure), (.garbledProof, .readerFailure),
            (.replayedGreeting, .readerFailure), (.cutGreeting, .readerFailure),
            (.silentAfterGreeting, .readerTimedOutAPDU), (.earlyGrant, .readerFailure), (.refusal, .readerFailure),
        ]
    )
    func faults(_ fault: ModelReader.Fault, _ status: OpeningStatus) async throws {
        connector.reader.fault = fault
        let opener = DoorOpener(connector)
        let result = await opener.open(Self.address, adapter: 0, try Self.credentials(), Self.patient)
        await opener.waitUntilIdle()
        #expect((result.status, result.decision) == (status, .unknown))
        #expect(result.reason != nil)
        #expect(connector.reader.visitors.isEmpty)
        #expect(connector.open == 0)
    }

    @Test("a reader that stays silent after the credential and a lost reader have different results")
    func lost() async throws {
        let opener = DoorOpener(connector)
        connector.reader.fault = .silentAtEnd
        let silent = await opener.open(Self.address, adapter: 0, try Self.credentials(), Self.patient)
        #expect(silent.status == .readerTimedOutAPDU)
        for number in 1...2 {
            connector.isLostAfter = number
            let result = await opener.open(Self.address, adapter: 0, try Self.credentials(), Self.patient)
            #expect(result.status == .bluetoothCommunicationFailed)
        }
        connector.isLostAfter = nil
        connector.failure = .timedOut
        #expect(await opener.open(Self.address, adapter: 0, try Self.credentials(), Self.patient).status == .timedOut)
        connector.failure = .failed("no adapter")
        let failed = await opener.open(Self.address, adapter: 0, try Self.credentials(), Self.patient)
        #expect(failed == OpeningResult(.bluetoothCommunicationFailed, reason: "no adapter"))
        await opener.waitUntilIdle()
        #expect(connector.open == 0)
    }

    @Test("answers of the reader become a status and a decision")
    func answers() async throws {
        let expected: [UInt8: (OpeningStatus, AccessDecision)] = [
            0: (.success, .unknown), 1: (.success, .unknown), 2: (.success, .denied), 3: (.success, .granted),
            5: (.readerFailure, .unknown), 6: (.readerFailure, .unknown), 7: (.readerFailure, .unknown),
            8: (.success, .denied), 77: (.readerFailure, .unknown),
        ]
        for (code, (status, decision)) in expected {
            let connector = ModelConnector(ModelReader(signer: Self.siteScalar))
            connector.reader.code = code
            let opener = DoorOpener(connector)
            let result = await opener.open(Self.address, adapter: 0, try Self.credentials(), Self.patient)
            #expect((result.status, result.decision, result.payload) == (status, decision, [code]))
        }
    }

    @Test(
        "a reader that answers before it has seen the credential has failed, whatever it answers",
        arguments: [0, 2, 5, 8] as [UInt8]
    )
    func earlyAnswers(_ code: UInt8) async throws {
        (connector.reader.fault, connector.reader.code) = (.earlyAnswer, code)
        let opener = DoorOpener(connector)
        let result = await opener.open(Self.address, adapter: 0, try Self.credentials(), Self.patient)
        await opener.waitUntilIdle()
        #expect((result.status, result.decision, result.payload) == (.readerFailure, .unknown, [code]))
        #expect(connector.reader.visitors.isEmpty)
    }

    @Test("a key that cannot sign, and a reader without fragments at MTU 23, end the opening")
    func ends() async throws {
        let opener = DoorOpener(connector)
        let broken = try Self.credentials(key: BrokenKey())
        let unsigned = await opener.open(Self.address, adapter: 0, broken, Self.patient)
        #expect(unsigned.status == .keyNotFound && unsigned.reason == "the key is gone")
        (connector.dialect, connector.mtu) = (.whole, 23)
        let result = await opener.open(Self.address, adapter: 0, try Self.credentials(), Self.patient)
        #expect(result.status == .bluetoothCommunicationFailed)
        #expect(result.reason?.description.contains("MTU of 23") == true)
        await opener.waitUntilIdle()
        #expect(connector.open == 0)
    }

    @Test("the result does not wait for the end of the connection, but a new opening of the same reader does")
    func slowEnd() async throws {
        connector.holdsEnds = true
        let opener = DoorOpener(connector)
        let credentials = try Self.credentials()
        #expect(await opener.open(Self.address, adapter: 0, credentials, Self.patient).status == .success)
        #expect(connector.open == 1)
        let other = DeviceAddress(bits: 0xC000_0000_0002, isRandom: true)
        #expect(await opener.open(other, adapter: 0, credentials, Self.patient).status == .success)
        #expect(connector.addresses == [Self.address, other])
        var states: [OpeningState] = []
        let again = Task { @Loop in
            await opener.open(Self.address, adapter: 0, credentials, Self.patient) { state in
                states.append(state)
                // The opening has begun, and waits.
                if state == .connecting { Task { @Loop in connector.release() } }
                if state == .connected { #expect(connector.open == 1) }
            }
        }
        #expect(await again.value.status == .success)
        #expect(states == [.connecting, .connected, .authenticating])
        await opener.waitUntilIdle()
        #expect(connector.open == 0)
        #expect(connector.connections == 3)
    }

    @Test("a piece, a write and a signature that do not come in time have different results")
    func timeLimits() async throws {
        let opener = DoorOpener(connector)
        let credentials = try Self.credentials()
        (connector.cutsGreeting, connector.mtu) = (true, 23)
        let cut = await opener.open(Self.address, adapter: 0, credentials, Self.patient)
        #expect(cut.status == .readerTimedOutFragment)
        connector.cutsGreeting = false
        connector.refusesWrites = true
        #expect(await opener.open(Self.address, adapter: 0, credentials, Self.patient).status == .readerTimedOutBLE)
        connector.refusesWrites = false
        var timeouts = OpeningTimeouts()
        timeouts.apdu = 50
        let slow = try Self.credentials(key: SlowKey())
        let late = await opener.open(Self.address, adapter: 0, slow, timeouts)
        #expect((late.status, late.key) == (.deviceTimedOutAPDU, "door"))
        await opener.waitUntilIdle()
        #expect(connector.reader.visitors.isEmpty && connector.open == 0)
    }

    @Test("all pieces of a message must come within the time of one message")
    func slowPieces() async throws {
        (connector.cutsGreeting, connector.mtu) = (true, 23)
        var timeouts = Self.patient
        timeouts.fragment = timeouts.apdu + 1
        let result = await DoorOpener(connector).open(Self.address, adapter: 0, try Self.credentials(), timeouts)
        #expect(result.status == .readerTimedOutAPDU)
        #expect(connector.waits.count > 2 && connector.waits.allSatisfy { $0 <= timeouts.apdu })
    }

    @Test("an adapter opens one reader at a time, another adapter opens another one")
    func busy() async throws {
        connector.holds = true
        let opener = DoorOpener(connector)
        let credentials = try Self.credentials()
        let first = Task { @Loop in await opener.open(Self.address, adapter: 0, credentials, Self.patient) }
        await connector.wait(connections: 1)
        #expect(await opener.open(Self.address, adapter: 0, credentials, Self.patient).status == .busy)
        connector.release()
        await opener.waitUntilIdle()
        #expect(connector.open == 0)
        #expect(await first.value.status == .success)
        #expect(await opener.open(Self.address, adapter: 0, credentials, Self.patient).status == .success)
        #expect(connector.connections == 2)
    }
}
