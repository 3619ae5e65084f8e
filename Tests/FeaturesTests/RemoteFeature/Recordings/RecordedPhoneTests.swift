// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Glibc
import ISO7816
import Readers
import ReadersRemote
import ReadersVirtual
import RemoteDevices
import TestSupport
import Testing
import Text
import VirtualEID

/// AusweisApp2 as the phone: its recorded answers go to a badged that borrows the reader.
@Suite(.timeLimit(.minutes(5))) @Loop struct RecordedPhoneTests {
    @Test(
        "badged asks as the recorded client did, and understands what AusweisApp2 has answered",
        arguments: ["server-basic", "server-comfort", "server-comfort-wrong-pin"]
    )
    func replay(_ name: String) async throws {
        let cable = try Cable()
        let stage = try await RemoteStage.paired(cable: cable)
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        cable.isPlugged = false
        cable.cut(before: 0)
        try await stage.desk.insert()
        await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }

        let phone = try await RecordedPhone(Recording(name), stage)
        let reader = "vm Virtual PCD 00 00 (\(try await stage.deskStore.identity().fingerprint.prefix(8)))"
        while !stage.laptop.registry.hasCard(in: reader, for: ObjectIdentifier(stage)) {
            await stage.laptop.registry.nextChange()
        }
        phone.begin()
        let lease = try await stage.laptop.registry.lend(reader, to: ObjectIdentifier(stage), called: "stage")
        for (request, answer) in phone.recorded {
            switch request["msg"]?.string {
            case "IFDTransmit":
                let bytes = Hex.decode(request["InputAPDU"]?.string ?? "") ?? []
                let command = try #require(CommandAPDU(bytes: bytes))
                let response = try await lease.connection.transmit(command)
                #expect(Hex.encode(response.bytes) == answer["ResponseAPDU"]?.string)
            case "IFDEstablishPACEChannel":
                let keypad = try #require(lease.connection as? any KeypadConnection)
                let input = try #require(PACEChannel.request(Hex.decode(request["InputData"]?.string ?? "") ?? []))
                let result = try await keypad.establishPACE(input)
                #expect(result.outcome == (answer["ResultCode"] == .string("00000000") ? .established : .wrongPassword))
                guard result.outcome == .established else { continue }
                #expect(Hex.encode(PACEChannel.output(result)) == answer["OutputData"]?.string)
            case "IFDModifyPIN":
                let keypad = try #require(lease.connection as? any KeypadConnection)
                let status = try await keypad.modifyPIN()
                #expect(Hex.encode([status.sw1, status.sw2]) == answer["OutputData"]?.string)
            default: break
            }
        }
        await lease.release(removingVirtualCard: false)
        #expect(phone.failures.isEmpty, "\(phone.failures)")
        #expect(phone.isUsedUp)
        phone.stop()
        await stage.stop()
    }
}

/// A phone that answers as AusweisApp2 did. Before `begin` it holds a virtual card, so that badged recognises it.
@Loop private final class RecordedPhone {
    /// The requests about the connected card and their answers, without those that open and close the connection.
    let recorded: [(request: JSON, answer: JSON)]
    private(set) var failures: [String] = []
    private let status: JSON
    private let card: VirtualCard
    private let server: PortSocket
    private let identity: RemoteIdentity
    private let trusted: String
    private let announcer: Loop.Alarm
    private var link: RemoteLink?
    private var position: Int?
    /// The members of version 2 that badged does not send.
    private static let unused: Set<String> = ["ExpectedPINLength", "PreferredPinLength", "DisplayText"]

    init(_ recording: Recording, _ stage: RemoteStage) async throws {
        recorded = recording.exchanges.compactMap { request, answers in
            let names = ["IFDTransmit", "IFDEstablishPACEChannel", "IFDModifyPIN"]
            guard let name = request["msg"]?.string, names.contains(name), let answer = answers.first else {
                return nil
            }
            return (request, answer)
        }
        status = try #require(recording.lines.last { $0.name == "IFDStatus" }).message
        card = try VirtualEIDDescription().makeCard()
        server = try PortSocket(.connections, port: 0, interface: "lo")
        identity = try await stage.deskStore.identity()
        trusted = try await stage.laptopStore.identity().fingerprint
        let sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        let offer = Offer.encode(
            name: "vm",
            certificate: identity.encodedCertificate,
            port: server.port,
            isPairing: false
        )
        let laptop = RemoteAddress(host: .loopback, port: stage.lenders.port)
        announcer = Loop.Alarm { sender.send(offer, to: laptop) }
        try server.whenReady { [weak self] in self?.accept() }
        announcer.set(after: 0)
    }

    func begin() { position = 0 }

    func stop() { link?.close() }

    var isUsedUp: Bool { position == recorded.count }

    private func accept() {
        guard let (socket, _) = server.accept() else { return }
        let link = RemoteLink.serve(socket, identity, .paired(trusted: [trusted]), times: RemoteStage.patient)
        self.link = link
        Task { @Loop [weak self] in
            for await event in link.events {
                if case .message(let bytes) = event { await self?.answer(bytes, link) }
            }
        }
    }

    private func send(_ json: JSON, _ link: RemoteLink, handle: String = "{s}") {
        let members = (json.members ?? []).map { member in
            switch member.key {
            case "ContextHandle": JSON.Member(member.key, .string("{c}"))
            case "SlotHandle": JSON.Member(member.key, .string(handle))
            default: member
            }
        }
        link.send(JSON.object(members).bytes)
    }

    private func send(_ message: IFDMessage, _ link: RemoteLink) {
        link.send(IFDEnvelope(context: "{c}", message).encode(.two))
    }

    private func answer(_ bytes: [UInt8], _ link: RemoteLink) async {
        guard let message = try? IFDEnvelope(bytes).message, let json = try? JSON(bytes) else { return }
        switch message {
        case .establishContext: send(.establishContextResponse(deviceName: "vm", .ok), link)
        case .getStatus:
            // The desktop program says that it has no keypad, although it asks for the PIN.
            let hasKeypad = recorded.contains { $0.request["msg"] == .string("IFDEstablishPACEChannel") }
            let members = (status.members ?? []).map { member in
                member.key == "PINPad" ? JSON.Member("PINPad", .bool(hasKeypad)) : member
            }
            send(JSON.object(members), link)
        case .connect: send(.connectResponse(handle: "{s}", .ok), link)
        case .disconnect: send(.disconnectResponse(handle: "{s}", .ok), link)
        case .transmit(_, let apdu, _) where position == nil:
            guard case .answer(let answer) = await card.exchange(apdu) else { return }
            send(.transmitResponse(handle: "{s}", apdu: answer, .ok), link)
        default:
            guard let index = position, index < recorded.count else { return failures.append("\(message)") }
            position = index + 1
            let (request, answer) = recorded[index]
            if json.comparable() != request.comparable(without: Self.unused) { failures.append("\(message)") }
            send(answer, link)
        }
    }
}
