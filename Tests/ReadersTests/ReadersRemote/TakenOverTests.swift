// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import Glibc
import Host
import ISO7816
import Readers
import ReadersRemote
import Store
import TestSupport
import Testing
import Text

/// What a badged-remote can do that somebody has taken over. docs/hardening.md, badged-remote.
@Suite("badged-remote in strange hands", .timeLimit(.minutes(5))) @Loop struct TakenOverTests {
    nonisolated private static let phone = RemoteDevice(
        fingerprint: String(repeating: "cd", count: 32),
        name: "phone"
    )
    nonisolated private static let stranger = RemoteDevice(
        fingerprint: String(repeating: "ab", count: 32),
        name: "stranger"
    )

    /// A program in the place of badged-remote, which sends bytes of a script when badged wants readers.
    private final class StandIn: Sendable {
        let path: String
        private let folder: TemporaryFolder
        private let listener: Int32

        init(_ script: @escaping @Sendable (RemoteRequest) -> [[UInt8]]) throws {
            folder = try TemporaryFolder()
            path = "\(folder.path)/remote.sock"
            listener = try UnixSocket.listen(on: path, type: SOCK_SEQPACKET)
            _ = startThread("stand-in") { [listener] in
                while case let run = accept(listener, nil, nil), run >= 0 {
                    Self.send(DriverReport.hello(program: "badged-remote", version: Version.current).bytes, run)
                    var buffer = [UInt8](repeating: 0, count: DriverMessage.maximumSize)
                    while case let count = recv(run, &buffer, buffer.count, 0), count > 0 {
                        let message = Array(buffer.prefix(count))
                        if message == Heartbeat.message {
                            Self.send(message, run)
                        } else if let request = RemoteRequest(bytes: message) {
                            for answer in script(request) { Self.send(answer, run) }
                        }
                    }
                    close(run)
                }
                close(listener)
            }
        }

        func end() { shutdown(listener, Int32(SHUT_RDWR)) }

        private static func send(_ message: [UInt8], _ run: Int32) {
            _ = Glibc.send(run, message, message.count, Int32(MSG_NOSIGNAL))
        }
    }

    /// The lenders of a store that has the pairing with the phone.
    private func lenders(
        _ standIn: StandIn,
        others: Int = 0
    ) async throws -> (lenders: RemoteLenders, folder: TemporaryFolder) {
        let folder = try TemporaryFolder()
        let store = RemoteStore(StateStore(folder: folder))
        try await store.add(Self.phone, .lender)
        for number in 0..<others {
            let fingerprint = String(repeating: "0", count: 60) + String(1000 + number)
            try await store.add(RemoteDevice(fingerprint: fingerprint, name: "phone"), .lender)
        }
        return (
            RemoteLenders(store, RemoteLenders.Settings(name: "desk"), RemoteDriver(socket: standIn.path)), folder
        )
    }

    nonisolated private static func added(_ name: String) -> [UInt8] {
        DriverReport.event(.added(ReaderDescription(name: name, hasKeypad: true))).bytes
    }

    nonisolated private static let own = "phone NFC (cdcdcdcd)"

    @Test("a reader is shown as remote, whatever the program says")
    func reader() async throws {
        let standIn = try StandIn { request in
            if case .borrow = request { [Self.added(Self.own)] } else { [] }
        }
        let (lenders, folder) = try await lenders(standIn)
        var events = lenders.backend.events.makeAsyncIterator()
        lenders.clientCame()
        var description: ReaderDescription?
        while description == nil, let event = await events.next(isolation: #isolation) {
            if case .added(let reader) = event { description = reader }
        }
        #expect(description?.name == Self.own)
        #expect(description?.isRemote == true && description?.hasKeypad == true)
        await lenders.backend.close()
        standIn.end()
        withExtendedLifetime(folder) {}
    }

    enum Misdeed: CaseIterable {
        case malformed, unknownKind, unknownReport, tooLong, localName, strangersName
        case terminalName, lendingThatNobodyWants, answerToNothing

        var messages: [[UInt8]] {
            switch self {
            case .malformed: [[33, 0, 0]]
            case .unknownKind: [[99, 1]]
            case .unknownReport: [[63]]
            case .tooLong: [[UInt8](repeating: 33, count: DriverMessage.maximumSize + 1)]
            case .localName: [TakenOverTests.added("REINER SCT cyberJack RFID basis 00 00")]
            case .strangersName: [TakenOverTests.added("phone NFC (abababab)")]
            case .terminalName: [TakenOverTests.added("\u{1B}[2J (cdcdcdcd)")]
            case .lendingThatNobodyWants: [DriverRequest.look(sources: []).bytes]
            case .answerToNothing: [Heartbeat.message, Heartbeat.message]
            }
        }
    }

    @Test("a program that breaks a rule ends, and its readers leave", arguments: Misdeed.allCases)
    func rules(misdeed: Misdeed) async throws {
        let standIn = try StandIn { request in
            if case .borrow = request { [Self.added(Self.own)] + misdeed.messages } else { [] }
        }
        let (lenders, folder) = try await lenders(standIn)
        var events = lenders.backend.events.makeAsyncIterator()
        lenders.clientCame()
        var seen: [String] = []
        while let event = await events.next(isolation: #isolation) {
            switch event {
            case .added(let reader): seen.append("added \(reader.name)")
            case .removed(let name): seen.append("removed \(name)")
            case .health(let checks) where checks.contains { !$0.ok }:
                #expect(checks.first?.advice?.contains("ended unexpectedly") == true)
                seen.append("fault")
            default: break
            }
            if seen.last == "fault" { break }
        }
        #expect(seen == ["added \(Self.own)", "removed \(Self.own)", "fault"])
        #expect(lenders.port == 0 && lenders.sightings.isEmpty)
        await lenders.backend.close()
        standIn.end()
        withExtendedLifetime(folder) {}
    }

    @Test("two pairings at once do not make one more than badged-remote takes")
    func fullTable() async throws {
        let standIn = try StandIn { request in
            switch request {
            case .borrow:
                var state = LendersState()
                state.port = 1
                return [RemoteReport.lenders(state).bytes]
            case .pair(let id, Self.stranger.fingerprint, _):
                return [RemoteReport.paired(id: id, .paired(Self.stranger)).bytes]
            default: return []
            }
        }
        let (lenders, folder) = try await lenders(standIn, others: RemoteMessage.maximumDevices - 2)
        let changes = Changes()
        lenders.observer = { changes.notify() }
        let events = lenders.backend.events
        lenders.clientCame()
        await changes.wait { lenders.port == 1 }
        func pair(_ fingerprint: String) async -> RemotePairing {
            await lenders.pair(fingerprint, code: SecretBox(Secret("1234".utf8)))
        }
        // A device that does not answer.
        let waiting = Task.immediate { @Loop in await pair(String(repeating: "ef", count: 32)) }
        #expect(await pair(Self.stranger.fingerprint) == .failed("too many devices are paired: remove one"))
        waiting.cancel()
        #expect(await waiting.value == .failed("the pairing was cancelled"))
        // The place is free again.
        #expect(await pair(Self.stranger.fingerprint) == .paired(Self.stranger))
        #expect(lenders.devices.count == RemoteMessage.maximumDevices)
        await lenders.backend.close()
        standIn.end()
        withExtendedLifetime((folder, events)) {}
    }

    @Test("a pairing with another device than the user has chosen is not kept", arguments: [true, false])
    func pairing(isRight: Bool) async throws {
        let standIn = try StandIn { request in
            guard case .pair(let id, _, _) = request else { return [] }
            return [RemoteReport.paired(id: id, .paired(isRight ? Self.phone : Self.stranger)).bytes]
        }
        let (lenders, folder) = try await lenders(standIn)
        let events = lenders.backend.events
        lenders.clientCame()
        var outcome = RemotePairing.failed("does not run")
        // The program is started when the pairings are read.
        while case .failed(let reason) = outcome, reason.contains("does not run"), !Task.isCancelled {
            outcome = await lenders.pair(Self.phone.fingerprint, code: SecretBox(Secret("1234".utf8)))
        }
        if isRight {
            #expect(outcome == .paired(Self.phone))
        } else {
            #expect(outcome == .failed("badged-remote has ended: try again"))
        }
        #expect(lenders.devices.map(\.device) == [Self.phone])
        await lenders.backend.close()
        standIn.end()
        withExtendedLifetime((folder, events)) {}
    }
}
