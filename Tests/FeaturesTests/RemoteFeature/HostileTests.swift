// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Host
import ReadersRemote
import ReadersVirtual
import RemoteDevices
import TestSupport
import Testing
import Text
import VirtualEID

/// Unpaired devices in the network, and paired devices that violate the protocol.
@Suite(.timeLimit(.minutes(5))) @Loop struct HostileTests {
    @Test("Closed connections do not end a pairing: the phone is connected again when it is back")
    func closedConnections() async throws {
        let cable = try Cable()
        let stage = try await RemoteStage.paired(cable: cable)
        let phone = try await stage.deskStore.identity().fingerprint
        try await stage.desk.insert()
        try await stage.seesCard()
        cable.isPlugged = false
        cable.cut(before: 0)
        // The removal of the card is the message that is lost.
        await stage.desk.withdraw()
        await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }
        let stranger = try Announcer(phone, name: "desk", to: stage.lenders.port)
        // AusweisApp2 1.26.2 gives a device up after seven.
        await stranger.closes(12)
        #expect(stage.lenders.devices.map(\.device.fingerprint) == [phone])
        #expect(try await stage.laptopStore.devices(.lender).map(\.fingerprint) == [phone])
        stranger.stop()
        cable.isPlugged = true
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        await stage.stop()
    }

    @Test("Two phones of one name are two devices, and a phone that answers in place of the other is not paired")
    func sameName() async throws {
        let stage = try await RemoteStage()
        let (open, client, code, real) = try await stage.openPairing()
        let port = try #require(stage.lenders.sightings.first { $0.device.fingerprint == real }?.port)
        let other = String(repeating: "ab", count: 32)
        let sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        let offer = Announcer.offer(other, "desk", port, isPairing: true)
        sender.send(offer, to: RemoteAddress(host: .loopback, port: stage.lenders.port))
        await stage.changes.wait { stage.lenders.sightings.count == 2 }
        let state = await client.exchange(#"{"cmd":"GET_REMOTE"}"#).last { $0["msg"] == .string("REMOTE") }
        let devices = state?["lenders"]?.array ?? []
        #expect(devices.map { $0["name"] } == [.string("desk"), .string("desk")])
        #expect(Set(devices.compactMap { $0["fingerprint"]?.string }) == [real, other])
        // The connection goes to the real desk, whose certificate is not that of the announcement.
        await stage.enterCode(code, of: other, by: client)
        let end = await client.next("PAIR_READER")
        #expect(end?["success"] == .bool(false))
        #expect(end?["error"]?.string?.hasPrefix("Another device has answered") == true)
        open.close()
        #expect(try await stage.laptopStore.devices(.lender).isEmpty)
        await stage.stop()
    }

    @Test("Invalid messages of a paired device, and messages of another context, do not reach the card")
    func nonsense() async throws {
        let cable = try Cable()
        let stage = try await RemoteStage.paired(cable: cable)
        try await stage.insertWithoutLaptop(cable)
        let before = await stage.desk.readers?.cardState(in: "Simulator")?.apdus
        let raw = try await RawBorrower(stage, cable)
        raw.send(.getStatus(slot: ""), "")
        #expect(
            await raw.ask(.establishContext(protocolName: "IFDInterface_WebSocket_v1", deviceName: "x"), nil) == .no
        )
        let context = try #require(await raw.establishContext())
        #expect(await raw.establishContext() == nil)
        for text in ["{", "[]", #"{"msg":"IFDOther"}"#, #"{"msg":5}"#] {
            raw.link.send(Array(text.utf8))
            #expect(await raw.next() == .error(.failed(.unknownAPIFunction)), "\(text)")
        }
        raw.send(.connect(slot: "Simulator"), "{other}")
        #expect(
            await raw.ask(.connect(slot: "Simulator 2"), context)
                == .connectResponse(handle: "Simulator 2", .failed(.unknownSlot))
        )
        guard case .connectResponse(let handle, .ok)? = await raw.ask(.connect(slot: "Simulator"), context) else {
            throw RemoteStage.StageError(text: "the card is not lent")
        }
        let command: [UInt8] = [0x00, 0xA4, 0x00, 0x0C, 0x02, 0x3F, 0x00]
        let invalid = IFDMessage.transmitResponse(handle: "{x}", apdu: [], .failed(.invalidSlotHandle))
        #expect(await raw.ask(.transmit(handle: "{x}", apdu: command), context) == invalid)
        #expect(
            await raw.ask(.transmit(handle: handle, apdu: []), context)
                == .transmitResponse(handle: handle, apdu: [], .failed(.unknownError))
        )
        let broken = #"{"msg":"IFDTransmit","ContextHandle":"\#(context)","SlotHandle":"\#(handle)","InputAPDU":"zz"}"#
        raw.link.send(Array(broken.utf8))
        #expect(await raw.next() == .error(.failed(.unknownError)))
        #expect(
            await raw.ask(.disconnectResponse(handle: handle, .ok), context) == .error(.failed(.unknownAPIFunction))
        )
        raw.link.close()
        await cable.nextAnnouncement()
        // Messages that were recorded in the first connection are refused in the second one.
        let second = try await RawBorrower(stage, cable)
        let fresh = try #require(await second.establishContext())
        #expect(fresh != context)
        second.send(.transmit(handle: handle, apdu: command), context)
        #expect(
            await second.ask(.transmit(handle: handle, apdu: command), fresh)
                == .transmitResponse(handle: handle, apdu: [], .failed(.invalidSlotHandle))
        )
        #expect(await stage.desk.readers?.cardState(in: "Simulator")?.apdus == before)
        await stage.stop()
    }
}

extension IFDMessage {
    /// The answer to a context that is refused.
    fileprivate static let no = IFDMessage.establishContextResponse(deviceName: "desk", .failed(.unknownError))
}
