// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import ReadersRemote
import ReadersVirtual
import RemoteDevices
import TestSupport
import VirtualEID

/// A phone with the key of the desk and a virtual card. The test decides whom it trusts and when its card leaves.
@Loop final class ScriptedPhone {
    /// The devices that may connect.
    var trusted: Set<String>
    /// What the laptop has sent about the card.
    private(set) var received: [IFDMessage] = []
    /// The connections that were refused, because the phone does not know their certificate.
    private(set) var refusals = 0
    let changes = Changes()
    private let card: VirtualCard
    private let server: PortSocket
    private let identity: RemoteIdentity
    private var alarm: Loop.Alarm?
    private(set) var link: RemoteLink?

    /// Announces itself to the laptop of a stage, with these hosts in its announcements.
    init(_ stage: RemoteStage, hosts: [RemoteAddress.Host] = []) async throws {
        card = try VirtualEIDDescription().makeCard()
        server = try PortSocket(.connections, port: 0, interface: nil)
        identity = try await stage.deskStore.identity()
        trusted = [try await stage.laptopStore.identity().fingerprint]
        let sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        let laptop = RemoteAddress(host: .loopback, port: stage.lenders.port)
        let offer = Offer.encode(
            name: "phone",
            certificate: identity.encodedCertificate,
            port: server.port,
            isPairing: false,
            hosts: hosts
        )
        try server.whenReady { [weak self] in self?.accept() }
        let alarm = Loop.Alarm { [weak self] in
            sender.send(offer, to: laptop)
            self?.alarm?.set(after: 20)
        }
        self.alarm = alarm
        alarm.set(after: 0)
    }

    /// The port of the phone.
    var port: UInt16 { server.port }

    private func accept() {
        while let (socket, _) = server.accept() {
            let link = RemoteLink.serve(socket, identity, .paired(trusted: trusted), times: RemoteStage.patient)
            Task { @Loop [weak self] in
                for await event in link.events {
                    switch event {
                    case .message(let bytes):
                        self?.link = link
                        await self?.answer(bytes)
                    case .ended(.untrusted): self?.refusals += 1
                    case .opened, .ended: break
                    }
                    self?.changes.notify()
                }
            }
        }
    }

    func send(_ message: IFDMessage) { link?.send(IFDEnvelope(context: "{c}", message).encode(.two)) }

    func tellStatus(hasCard: Bool) { send(.status(IFDStatus(slot: "NFC", hasKeypad: true, hasCard: hasCard))) }

    private func answer(_ bytes: [UInt8]) async {
        guard let message = try? IFDEnvelope(bytes).message else { return }
        received.append(message)
        switch message {
        case .establishContext: send(.establishContextResponse(deviceName: "phone", .ok))
        case .getStatus: tellStatus(hasCard: true)
        case .connect: send(.connectResponse(handle: "{s}", .ok))
        case .disconnect(let handle): send(.disconnectResponse(handle: handle, .ok))
        case .transmit(let handle, let apdu, _):
            guard case .answer(let answer) = await card.exchange(apdu) else { return }
            send(.transmitResponse(handle: handle, apdu: answer, .ok))
        default: break
        }
    }

    func stop() {
        alarm?.cancel()
        link?.close()
        server.close()
    }
}
