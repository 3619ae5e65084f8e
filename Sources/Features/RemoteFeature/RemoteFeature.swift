// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
package import Host
package import ReadersRemote
package import Server
import Store
import Text

/// Readers over the network: phones that lend their reader, and the readers of this host that others borrow.
/// docs/protocol/remote.md.
@Loop package final class RemoteFeature: Feature {
    private let store: RemoteStore?
    private let lenders: RemoteLenders?
    private let sharing: RemoteSharing?
    private var sessions: [ObjectIdentifier: Session] = [:]
    private var reported: RemoteStateMessage?
    private static let maximumTries = 3
    /// A flood of announcements causes no more messages than this pause allows.
    private let reportPause: Int64
    private var nextReport = Int64.min
    private lazy var reportAlarm = Loop.Alarm { [weak self] in self?.report() }

    /// - Parameters:
    ///   - store: the own key and the pairings; nil where the feature is off.
    ///   - lenders: nil unless `[remote] enabled = yes`.
    ///   - sharing: nil unless `[remote] share = yes`.
    ///   - reportPause: milliseconds between two REMOTE messages that were not asked for.
    package init(
        _ store: RemoteStore? = nil,
        _ lenders: RemoteLenders? = nil,
        _ sharing: RemoteSharing? = nil,
        reportPause: Int64 = 500
    ) {
        self.store = store
        self.lenders = lenders
        self.sharing = sharing
        self.reportPause = reportPause
        lenders?.observer = { [weak self] in self?.changed() }
        sharing?.observer = { [weak self] in self?.changed() }
    }

    package var commands: [CommandSpec] {
        let pairing: Permissions = [.cards, .remote]
        return [
            CommandSpec("GET_REMOTE", RemoteStateMessage.name, level: .two, permission: .readers) { [self] _ in
                Reply(state)
            },
            CommandSpec(
                "PAIR_READER",
                PairingMessage.name,
                level: .two,
                permission: pairing,
                isForIdle: true,
                refusal: { failure, _ in Reply(PairingMessage(success: false, error: failure.message)) },
                pairReader
            ),
            CommandSpec(answering: "SET_PAIRING_CODE", permission: pairing),
            CommandSpec(
                "OPEN_PAIRING",
                "OPEN_PAIRING",
                level: .two,
                permission: pairing,
                isForIdle: true,
                refusal: { failure, _ in
                    Reply(PairingMessage(msg: "OPEN_PAIRING", success: false, error: failure.message))
                },
                openPairing
            ),
            CommandSpec(
                "REMOVE_REMOTE",
                RemoteStateMessage.name,
                level: .two,
                permission: pairing,
                refusal: stateRefusal,
                removeRemote
            ),
        ]
    }

    private func stateRefusal(_ failure: Failure, _: Session) -> Reply {
        var message = state
        message.error = failure.message
        return Reply(message)
    }

    package func sessionBegan(_ session: Session) {
        sessions[ObjectIdentifier(session)] = session
        if Self.wantsReaders(session.permissions) { lenders?.clientCame() }
        sharing?.tryAgain()
    }

    package func sessionEnded(_ session: Session) {
        sessions[ObjectIdentifier(session)] = nil
        if Self.wantsReaders(session.permissions) { lenders?.clientLeft() }
    }

    package func permissionsChanged(_ session: Session, from old: Permissions) {
        let (did, does) = (Self.wantsReaders(old), Self.wantsReaders(session.permissions))
        if does, !did { lenders?.clientCame() }
        if did, !does { lenders?.clientLeft() }
    }

    private static func wantsReaders(_ permissions: Permissions) -> Bool {
        !permissions.isDisjoint(with: [.readers, .cards])
    }

    package func health() async -> [HealthCheck] {
        await lenders?.tryAgain()?.value
        let pairings = lenders?.health ?? []
        guard let sharing else { return pairings }
        let name = "remote share"
        await sharing.tryAgain()?.value
        await sharing.check()
        if let fault = sharing.fault {
            return pairings + [HealthCheck(name, ok: false, cause: fault.cause, advice: fault.advice)]
        }
        let facts = [HealthCheck.Fact("readers", sharing.settings.readers.count)]
        guard let (count, source, advice) = sharing.flood else {
            return pairings + [HealthCheck(name, ok: true, facts: facts)]
        }
        return pairings + [
            HealthCheck(
                name,
                ok: false,
                cause: "a flood of connections, most of them from \(source): \(count) came to nothing",
                advice: advice,
                facts: facts
            )
        ]
    }

    // MARK: REMOTE

    private var state: RemoteStateMessage {
        var message = RemoteStateMessage(isEnabled: lenders != nil, isShared: sharing != nil)
        message.fingerprint = sharing?.fingerprint
        if let lenders {
            message.lenders = Self.devices(lenders)
        }
        if let sharing {
            message.borrowers = sharing.devices.map {
                RemoteStateMessage.Device(device: $0.device, isPaired: true, isConnected: $0.isConnected)
            }
            message.used = sharing.usedReaders
            message.isPairing = sharing.isPairing
        }
        return message
    }

    private static func devices(_ lenders: RemoteLenders) -> [RemoteStateMessage.Device] {
        let sightings = lenders.sightings
        let paired = lenders.devices.map { entry in
            RemoteStateMessage.Device(
                device: entry.device,
                isPaired: true,
                isConnected: entry.isConnected,
                isPairing: sightings.first { $0.device.fingerprint == entry.device.fingerprint }?.isPairing,
                isRefusing: lenders.isRejecting(entry.device.fingerprint)
            )
        }
        let others = sightings.filter { sighting in
            !paired.contains { $0.device.fingerprint == sighting.device.fingerprint }
        }
        return paired
            + others.map {
                RemoteStateMessage.Device(
                    device: $0.device,
                    isPaired: false,
                    isConnected: false,
                    isPairing: $0.isPairing
                )
            }
    }

    /// Sends REMOTE after a change: at once, or the newest state when the pause between two messages is over.
    private func changed() {
        if Loop.now >= nextReport { report() } else { reportAlarm.set(after: nextReport - Loop.now) }
    }

    private func report() {
        let state = state
        guard reported != state else { return }
        reported = state
        nextReport = Loop.now + reportPause
        for session in sessions.values where session.permissions.contains(.readers) && session.level >= .two {
            session.push(state, coalescing: "REMOTE")
        }
    }

    // MARK: PAIR_READER

    private func pairReader(_ call: Call) throws(Failure) -> Reply {
        guard let lenders, let store else {
            throw Failure(.remote, "Remote readers are off", advice: "set [remote] enabled = yes")
        }
        let fingerprint = Hex.encode(try call.arguments.hash("fingerprint"))
        guard let device = lenders.sightings.first(where: { $0.device.fingerprint == fingerprint })?.device else {
            throw Failure(
                .remote,
                "No such device announces itself",
                advice: "open its pairing mode, and check that it is in this network"
            )
        }
        func refusal(_ failure: Failure) -> Reply {
            Reply(PairingMessage(success: false, device: device, error: failure.message))
        }
        let started = PairingMessage(device: device)
        return .workflow("PAIR_READER", announcedBy: started, refusal: refusal) { workflow throws(Failure) in
            Reply(try await Self.pair(workflow, device, lenders, store))
        }
    }

    private static func pair(
        _ workflow: Workflow,
        _ device: RemoteDevice,
        _ lenders: RemoteLenders,
        _ store: RemoteStore
    ) async throws(Failure) -> PairingMessage {
        let own = try await store.identity().fingerprint
        var error: Phrase?
        for _ in 0..<maximumTries {
            let code = try await workflow.ask(PairingCodePrompt(device: device, ownFingerprint: own, error: error))
            switch await lenders.pair(device.fingerprint, code: code) {
            case .paired(let paired):
                workflow.session.log(.notice, "paired with '\(paired.name)', \(paired.fingerprint)")
                return PairingMessage(success: true, device: paired)
            case .wrongCode: error = "The code is wrong: type the digits that the device shows"
            case .absent: throw Failure(.remote, "The device does not announce itself any more")
            case .otherDevice:
                throw Failure(
                    .remote,
                    "Another device has answered",
                    advice: "somebody in this network may pose as the device"
                )
            case .failed(let reason): throw Failure(.remote, reason)
            }
        }
        throw Failure(.remote, "Three wrong codes were entered")
    }

    // MARK: OPEN_PAIRING

    private func openPairing(_ call: Call) throws(Failure) -> Reply {
        guard let sharing else {
            throw Failure(.remote, "No reader is shared", advice: "set [remote] share = yes")
        }
        return .workflow("OPEN_PAIRING", announcedBy: PairingMessage(msg: "OPEN_PAIRING")) { workflow throws(Failure) in
            // The first start generates the own key.
            await sharing.waitForStart()
            await sharing.tryAgain()?.value
            return Reply(try await Self.open(workflow, sharing))
        }
    }

    private static func open(_ workflow: Workflow, _ sharing: RemoteSharing) async throws(Failure) -> PairingMessage {
        guard !workflow.isCancelled else { throw .cancelled }
        guard let fingerprint = sharing.fingerprint,
            let opened = try cryptography(sharing.openPairing()),
            let end = sharing.pairingEnd
        else {
            throw Failure(
                .remote,
                sharing.isPairing ? "Another client is pairing: wait until it has finished" : "No reader is shared now"
            )
        }
        let seconds = Int(sharing.settings.pairingTime / 1000)
        workflow.session.push(
            WrittenMessage("PAIRING_CODE", isSecret: true) { object in
                object.key("code")
                opened.withBytes { object.ascii($0) }
                object.member("fingerprint", fingerprint)
                object.member("seconds", seconds)
            }
        )
        switch await sharing.wait(for: end) {
        case .paired(let device):
            workflow.session.log(.notice, "'\(device.name)' may use the shared readers, \(device.fingerprint)")
            return PairingMessage(msg: "OPEN_PAIRING", success: true, device: device)
        case .wrongCodes: throw Failure(.remote, "Three wrong codes were entered")
        case .timedOut: throw Failure(.timedOut, "No device has paired in time")
        case .cancelled: throw .cancelled
        case .failed(let reason): throw Failure(.remote, reason)
        }
    }

    // MARK: REMOVE_REMOTE

    private func removeRemote(_ call: Call) async throws(Failure) -> Reply {
        let fingerprint = Hex.encode(try call.arguments.hash("fingerprint"))
        guard let store else {
            throw Failure(.remote, "Remote readers are off", advice: "set [remote] enabled = yes or share = yes")
        }
        try await store.changes.run { () throws(Failure) in
            guard try await store.remove(fingerprint) else {
                throw Failure(.remote, "There is no pairing with this device")
            }
            lenders?.removed(fingerprint)
            sharing?.removed(fingerprint)
        }
        // The last pairing may have gone that needs a key which is damaged.
        lenders?.tryAgain()
        sharing?.tryAgain()
        return Reply(state)
    }
}

extension Failure.Code {
    /// A pairing, or a command for one, has failed.
    fileprivate static let remote = Self("Remote")
}
