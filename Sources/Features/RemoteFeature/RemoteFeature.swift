// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
package import Host
package import ReadersRemote
package import RemoteIFD
import Secrets
package import Server
import Store
import Wire

/// Readers over the network: phones that lend their reader, and the readers of this host that others borrow.
/// docs/protocol/remote.md.
@Loop package final class RemoteFeature: Feature {
    private let store: RemoteStore?
    private let lenders: RemoteLenders?
    private let sharing: RemoteSharing?
    private var sessions: [ObjectIdentifier: Session] = [:]
    private var told: RemoteMessage?
    private static let maximumTries = 3

    /// - Parameters:
    ///   - store: the own key and the pairings; nil where the feature is off.
    ///   - lenders: nil unless `[remote] enabled = yes`.
    ///   - sharing: nil unless `[remote] share = yes`.
    package init(_ store: RemoteStore? = nil, _ lenders: RemoteLenders? = nil, _ sharing: RemoteSharing? = nil) {
        (self.store, self.lenders, self.sharing) = (store, lenders, sharing)
        lenders?.observer = { [weak self] in self?.changed() }
        sharing?.observer = { [weak self] in self?.changed() }
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec("GET_REMOTE", level: .two, permission: .readers) { [self] session, command in
                session.answer(state, to: command)
                return .answered
            },
            CommandSpec("PAIR_READER", level: .two, permission: [.cards, .remote]) { [self] session, command in
                guard session.workflow == nil else { return .badState }
                pairReader(session, command)
                return .answered
            },
            CommandSpec(answering: "SET_PAIRING_CODE", permission: [.cards, .remote]),
            CommandSpec("OPEN_PAIRING", level: .two, permission: [.cards, .remote]) { [self] session, command in
                guard session.workflow == nil else { return .badState }
                openPairing(session, command)
                return .answered
            },
            CommandSpec("REMOVE_REMOTE", level: .two, permission: [.cards, .remote]) { [self] session, command in
                removeRemote(session, command)
                return .answered
            },
        ]
    }

    package func sessionBegan(_ session: Session) {
        sessions[ObjectIdentifier(session)] = session
        if Self.wantsReaders(session) { lenders?.clientCame() }
    }

    package func sessionEnded(_ session: Session) {
        sessions[ObjectIdentifier(session)] = nil
        if Self.wantsReaders(session) { lenders?.clientLeft() }
    }

    private static func wantsReaders(_ session: Session) -> Bool {
        !session.permissions.isDisjoint(with: [.readers, .cards])
    }

    package func health() async -> [HealthCheck] {
        guard let sharing else { return [] }
        guard let fault = sharing.fault else {
            return [HealthCheck("remote share", ok: true, facts: [.init("readers", sharing.settings.readers.count)])]
        }
        return [HealthCheck("remote share", ok: false, cause: fault, advice: "correct [remote] in badged.conf(5)")]
    }

    // MARK: REMOTE

    private var state: RemoteMessage {
        var message = RemoteMessage(isEnabled: lenders != nil, isShared: sharing != nil)
        message.fingerprint = sharing?.fingerprint
        if let lenders {
            message.lenders = Self.devices(lenders)
        }
        if let sharing {
            message.borrowers = sharing.devices.map {
                RemoteMessage.Device(device: $0.device, isPaired: true, isConnected: $0.isConnected)
            }
            message.used = sharing.guest?.usedReaders ?? []
            message.isPairing = sharing.isPairing
        }
        return message
    }

    private static func devices(_ lenders: RemoteLenders) -> [RemoteMessage.Device] {
        let offers = lenders.sightings.map(\.offer)
        let paired = lenders.devices.map { entry in
            RemoteMessage.Device(
                device: entry.device,
                isPaired: true,
                isConnected: entry.isConnected,
                isPairing: offers.first { $0.fingerprint == entry.device.fingerprint }?.isPairing
            )
        }
        let others = offers.filter { offer in !paired.contains { $0.device.fingerprint == offer.fingerprint } }
        return paired
            + others.map {
                let device = RemoteDevice(fingerprint: $0.fingerprint, name: $0.name)
                return RemoteMessage.Device(
                    device: device,
                    isPaired: false,
                    isConnected: false,
                    isPairing: $0.isPairing
                )
            }
    }

    /// Tells clients that a device or a use has changed.
    private func changed() {
        let state = state
        guard told != state else { return }
        told = state
        for session in sessions.values where session.permissions.contains(.readers) && session.level >= .two {
            session.push(state, coalescing: "REMOTE")
        }
    }

    private func refused(_ error: String) -> RemoteMessage {
        var message = state
        message.error = error
        return message
    }

    // MARK: PAIR_READER

    private func pairReader(_ session: Session, _ command: Command) {
        func refuse(_ error: String) { session.answer(PairReaderMessage(success: false, error: error), to: command) }
        guard let lenders, let store else { return refuse("Remote readers are off: set [remote] enabled = yes") }
        guard case .value(let fingerprint) = command.string("fingerprint") else {
            return refuse("Fingerprint cannot be undefined")
        }
        guard let offer = lenders.sightings.first(where: { $0.offer.fingerprint == fingerprint })?.offer else {
            return refuse(
                "No such device announces itself: open its pairing mode, and check that it is in this network"
            )
        }
        if let refusal = session.workflowRefusal() { return refuse(refusal) }
        let device = RemoteDevice(fingerprint: offer.fingerprint, name: offer.name)
        session.start("PAIR_READER", announcedBy: PairReaderMessage(device: device)) { workflow in
            await Self.pair(workflow, device, lenders, store)
        }
    }

    private static func pair(
        _ workflow: Workflow,
        _ device: RemoteDevice,
        _ lenders: RemoteLenders,
        _ store: RemoteStore
    ) async -> PairReaderMessage {
        func failed(_ error: String) -> PairReaderMessage {
            PairReaderMessage(success: false, device: device, error: error)
        }
        let own: String
        do throws(StoreError) {
            own = try await store.identity().fingerprint
        } catch {
            return failed(error.text)
        }
        var error: String?
        for _ in 0..<maximumTries {
            let code: SecretBox
            do throws(Interruption) {
                code = try await workflow.ask(PairingCodePrompt(device: device, ownFingerprint: own, error: error))
            } catch {
                return failed(error == .timedOut ? "No code was entered in time" : "Cancelled")
            }
            switch await lenders.pair(device.fingerprint, code: code) {
            case .paired(let paired):
                workflow.session.server.log(.notice, "paired with '\(paired.name)', \(paired.fingerprint)")
                return PairReaderMessage(success: true, device: paired)
            case .wrongCode: error = "The code is wrong: type the digits that the device shows"
            case .absent: return failed("The device does not announce itself any more")
            case .otherDevice:
                return failed("Another device has answered: somebody in this network may pose as the device")
            case .failed(let reason): return failed(reason)
            }
        }
        return failed("Three wrong codes were entered")
    }

    // MARK: OPEN_PAIRING

    private func openPairing(_ session: Session, _ command: Command) {
        func refuse(_ error: String) { session.answer(OpenPairingMessage(success: false, error: error), to: command) }
        guard let sharing else { return refuse("No reader is shared: set [remote] share = yes") }
        if let refusal = session.workflowRefusal() { return refuse(refusal) }
        session.start("OPEN_PAIRING", announcedBy: OpenPairingMessage()) { workflow in
            // The first start makes the own key.
            await sharing.waitForStart()
            return await Self.open(workflow, sharing)
        }
    }

    private static func open(_ workflow: Workflow, _ sharing: RemoteSharing) async -> OpenPairingMessage {
        func failed(_ error: String) -> OpenPairingMessage { OpenPairingMessage(success: false, error: error) }
        guard !workflow.isCancelled else { return failed("Cancelled") }
        guard let fingerprint = sharing.fingerprint, let opened = try? sharing.openPairing(),
            let end = sharing.pairingEnd
        else {
            return failed(
                sharing.isPairing ? "Another client is pairing: wait until it has finished" : "No reader is shared now"
            )
        }
        let seconds = Int(sharing.settings.pairingTime / 1000)
        let code = PairingCodeMessage.Shown(opened)
        workflow.session.push(PairingCodeMessage(code: code, fingerprint: fingerprint, seconds: seconds))
        switch await sharing.wait(for: end) {
        case .paired(let device):
            workflow.session.server.log(
                .notice,
                "'\(device.name)' may use the shared readers, \(device.fingerprint)"
            )
            return OpenPairingMessage(success: true, device: device)
        case .wrongCodes: return failed("Three wrong codes were entered")
        case .timedOut: return failed("No device has paired in time")
        case .cancelled: return failed("Cancelled")
        case .failed(let reason): return failed(reason)
        }
    }

    // MARK: REMOVE_REMOTE

    private func removeRemote(_ session: Session, _ command: Command) {
        guard case .value(let fingerprint) = command.string("fingerprint") else {
            return session.answer(refused("Fingerprint cannot be undefined"), to: command)
        }
        session.answerLater(to: command) { [self] in
            do throws(StoreError) {
                var isRemoved = false
                if try await lenders?.remove(fingerprint) == true { isRemoved = true }
                if try await sharing?.remove(fingerprint) == true { isRemoved = true }
                return isRemoved ? state : refused("There is no pairing with this device")
            } catch {
                return refused(error.text)
            }
        }
    }
}
