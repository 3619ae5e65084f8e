// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Glibc
import ISO7816
import Readers
import ReadersRemote
import RemoteDevices
import RemoteFeature
import TestSupport
import Testing
import Text

/// What a phone does that lends its reader, other than to answer.
@Suite(.timeLimit(.minutes(5))) @Loop struct PhoneTests {
    private let stage: RemoteStage

    /// Makes a stage whose laptop is paired with the key of the desk, which the phone has from now on.
    init() async throws { stage = try await Self.makeStage() }

    private static func makeStage(
        laptop: (inout RemoteLenders.Settings) -> Void = { _ in }
    ) async throws -> RemoteStage {
        let stage = try await RemoteStage.paired(laptop: laptop)
        stage.sharing.stop()
        await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }
        return stage
    }

    private func lend(_ stage: RemoteStage) async throws -> CardLease {
        let name = "phone NFC (\(try await stage.deskStore.identity().fingerprint.prefix(8)))"
        while !stage.laptop.registry.hasCard(in: name, for: ObjectIdentifier(stage)) {
            await stage.laptop.registry.nextChange()
            try Task.checkCancellation()
        }
        return try await stage.laptop.registry.lend(name, to: ObjectIdentifier(stage), called: "test")
    }

    @Test("A card that leaves during the question of the phone is told at once, and the late answer hurts nobody")
    func cardLeaves() async throws {
        let phone = try await ScriptedPhone(stage)
        let lease = try await lend(stage)
        let keypad = try #require(lease.connection as? any KeypadConnection)
        let question = Task { @Loop () -> CardError? in
            do throws(CardError) {
                _ = try await keypad.establishPACE(KeypadPACERequest(passwordID: 3))
                return nil
            } catch { return error }
        }
        await phone.changes.wait { phone.received.contains { if case .establishPACE = $0 { true } else { false } } }
        phone.tellStatus(hasCard: false)
        #expect(await question.value == .removed)
        // The card is back before the answer to the question.
        let link = phone.link
        phone.tellStatus(hasCard: true)
        phone.send(.establishPACEResponse(handle: "{s}", code: 0xF010_0002, output: [0, 0, 2, 0, 0x31, 0], .ok))
        await lease.release(removingVirtualCard: false)
        let again = try await self.lend(stage)
        let answer = try await again.connection.transmit(#require(CommandAPDU(bytes: [0, 0xA4, 4, 0x0C])))
        #expect(answer.bytes.count == 2)
        #expect(phone.link === link)
        await again.release(removingVirtualCard: false)
        phone.stop()
        await stage.stop()
    }

    @Test("A command whose turn does not come in time fails, and the question of the phone goes on")
    func busy() async throws {
        await self.stage.stop()
        let stage = try await Self.makeStage { $0.turnTime = 1 }
        let phone = try await ScriptedPhone(stage)
        let lease = try await lend(stage)
        let keypad = try #require(lease.connection as? any KeypadConnection)
        let question = Task { @Loop () -> CardError? in
            do throws(CardError) {
                _ = try await keypad.establishPACE(KeypadPACERequest(passwordID: 3))
                return nil
            } catch { return error }
        }
        await phone.changes.wait { phone.received.contains { if case .establishPACE = $0 { true } else { false } } }
        let command = try #require(CommandAPDU(bytes: [0, 0xA4, 4, 0x0C]))
        do throws(CardError) {
            _ = try await lease.connection.transmit(command)
            Issue.record("the phone has got a command during its question")
        } catch {
            #expect(error == .exclusive)
        }
        phone.send(.establishPACEResponse(handle: "{s}", code: 0xF010_0002, output: [0, 0, 2, 0, 0x31, 0], .ok))
        #expect(await question.value == nil)
        let answer = try await lease.connection.transmit(command)
        #expect(answer.bytes.count == 2)
        await lease.release(removingVirtualCard: false)
        phone.stop()
        await stage.stop()
    }

    @Test("The phone gets the progress with the next command, once")
    func progress() async throws {
        let phone = try await ScriptedPhone(stage)
        let lease = try await lend(stage)
        let command = try #require(CommandAPDU(bytes: [0, 0xA4, 4, 0x0C]))
        let before = phone.received.count
        for percent in [nil, 20, nil, 40] {
            if let percent { lease.connection.show(progress: percent) }
            _ = try await lease.connection.transmit(command)
        }
        let texts = phone.received[before...].compactMap { message -> String?? in
            if case .transmit(_, _, let text) = message { .some(text) } else { nil }
        }
        #expect(texts == [nil, "20 %", nil, "40 %"])
        await lease.release(removingVirtualCard: false)
        phone.stop()
        await stage.stop()
    }

    @Test("A phone that has forgotten this host is named to the user, until it is paired again or connected")
    func forgotten() async throws {
        let client = try stage.laptop.connect()
        let phone = try await ScriptedPhone(stage)
        let laptop = phone.trusted
        phone.trusted = []
        let fingerprint = try await stage.deskStore.identity().fingerprint
        func device() async -> JSON? {
            let state = await client.exchange(#"{"cmd":"GET_REMOTE"}"#).last { $0["msg"] == .string("REMOTE") }
            return state?["lenders"]?.array?.first { $0["fingerprint"] == .string(fingerprint) }
        }
        func check() async -> JSON? {
            let health = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
            return health?["checks"]?.array?.first {
                $0["name"]?.string?.hasSuffix("(\(fingerprint.prefix(8)))") == true
            }
        }
        await stage.changes.wait { stage.lenders.isRejecting(fingerprint) }
        #expect(await device()?["refuses"] == .bool(true))
        let found = await check()
        #expect(found?["ok"] == .bool(false))
        #expect(found?["advice"]?.string?.contains("then pair again") == true)
        // A workflow that waits for a card says so, too.
        await client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        var asked = await client.next("INSERT_CARD")
        while asked?["error"] == nil, asked != nil { asked = await client.next("INSERT_CARD") }
        #expect(asked?["error"]?.string?.contains("refuses this host") == true)
        await client.send(#"{"cmd":"CANCEL"}"#)
        // The pairing stays, and a connection clears the state.
        phone.trusted = laptop
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        #expect(await device()?["refuses"] == nil)
        #expect(await check() == nil)
        phone.stop()
        await stage.stop()
    }

    @Test("A single refusal, and one by somebody without the key of the phone, are not told")
    func strangersRefuse() async throws {
        let fingerprint = try await stage.deskStore.identity().fingerprint
        let stranger = try Announcer(fingerprint, name: "desk", to: stage.lenders.port)
        await stranger.closes(8)
        #expect(!stage.lenders.isRejecting(fingerprint))
        stranger.stop()
        await stage.stop()
    }

    @Test("An address in the announcement is tried beside the sender, and the one that answers is kept")
    func addresses() async throws {
        // 127.0.0.1 is the sender; the phone says that it has another address, too.
        let phone = try await ScriptedPhone(stage, hosts: [.four(0x7F00_0002), .four(0x7F00_0003)])
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        _ = try await lend(stage)
        phone.stop()
        await stage.stop()
    }

    @Test("Announcements with the fingerprint of the phone and other addresses do not delay it")
    func copies() async throws {
        let fingerprint = try await stage.deskStore.identity().fingerprint
        // Nobody reads from these connections, so each attempt lasts until the limit of ten minutes.
        let traps = try (0..<12).map { _ in try PortSocket(.connections, port: 0, interface: "lo") }
        var caught: [Int32] = []
        for trap in traps {
            try trap.whenReady {
                while let (socket, _) = trap.accept() { caught.append(socket) }
                stage.changes.notify()
            }
        }
        let sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        var next = 0
        func announce() {
            let offer = Announcer.offer(fingerprint, "copy", traps[next % traps.count].port)
            sender.send(offer, to: RemoteAddress(host: .loopback, port: stage.lenders.port))
            next += 1
        }
        let alarm = Repetition(every: 5, announce)
        await stage.changes.wait { caught.count >= 8 }
        let phone = try await ScriptedPhone(stage)
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        alarm.stop()
        for trap in traps { trap.close() }
        for socket in caught { close(socket) }
        phone.stop()
        await stage.stop()
    }
}

/// Calls a function again and again.
@Loop final class Repetition {
    private var alarm: Loop.Alarm?

    init(every milliseconds: Int64, _ body: @escaping @Loop () -> Void) {
        let alarm = Loop.Alarm { [weak self] in
            body()
            self?.alarm?.set(after: milliseconds)
        }
        self.alarm = alarm
        alarm.set(after: 0)
    }

    func stop() { alarm?.cancel() }
}
