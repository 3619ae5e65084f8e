// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ReadersRemote
import Text

extension Lenders {
    /// Milliseconds for TCP, and then for TLS, where there are more places to try.
    private static let placeTime: Int64 = 2000

    /// Pairs with a device that announces itself, and reports the outcome. badged keeps the pairing.
    func pair(_ id: UInt32, _ fingerprint: String, _ code: SecretBox) {
        pairings[id] = Task { @Loop in
            let outcome = await pair(fingerprint, code)
            pairings[id] = nil
            report(RemoteReport.paired(id: id, outcome))
        }
    }

    func stopPairing(_ id: UInt32) { pairings[id]?.cancel() }

    private func pair(_ fingerprint: String, _ code: SecretBox) async -> RemotePairing {
        guard let sighting = seen[fingerprint], isFresh(sighting) else { return .absent }
        guard let identity else { return .failed("the own key is missing") }
        // An announcement may be a copy. A place that is not the device ends before it learns anything about the code.
        guard let digits = code.take() else { return .failed("the code is missing") }
        var (outcome, times) = (RemotePairing.absent, settings.times)
        if sighting.places.count > 1 { times.setUp = min(times.setUp, Self.placeTime) }
        for place in sighting.places {
            outcome = await pair(sighting.offer, at: place, SecretBox(digits.clone()), identity, times)
            switch outcome {
            case .paired, .wrongCode: return outcome
            case .absent, .otherDevice, .failed: if Task.isCancelled { return outcome }
            }
        }
        return outcome
    }

    private func pair(
        _ offer: Offer,
        at place: Place,
        _ code: SecretBox,
        _ identity: RemoteIdentity,
        _ times: LinkTimes
    ) async -> RemotePairing {
        let link = RemoteLink.connect(
            to: place.address,
            interface: place.interface,
            identity,
            .pairing(code: code, device: offer.fingerprint),
            times: times
        )
        let limit = Loop.Alarm { link.close() }
        defer {
            limit.cancel()
            // A cancelled pairing leaves the link open otherwise.
            link.close()
        }
        var device: RemoteDevice?
        for await event in link.events {
            switch event {
            case .opened(let found):
                device = RemoteDevice(fingerprint: found, name: offer.name)
                limit.set(after: settings.times.setUp)
                let version: IFDVersion = offer.versions.contains(.two) ? .two : .zero
                let context = IFDMessage.establishContext(protocolName: version.rawValue, deviceName: settings.name)
                link.send(IFDEnvelope(context: nil, context).encode(version))
            case .message(let bytes):
                switch try? IFDEnvelope(bytes).message {
                case .establishContextResponse(let name, .ok): device?.name = name
                case .establishContextResponse:
                    return .failed("the device could not store the pairing: its display or its log says why")
                default: break
                }
                link.close()
            case .ended(let ending):
                guard let device else { return Self.failure(ending) }
                startAgain(device.fingerprint)
                return .paired(device)
            }
        }
        return .failed("the connection has ended")
    }

    private static func failure(_ ending: RemoteLink.Ending) -> RemotePairing {
        switch ending {
        case .wrongCode: .wrongCode
        case .untrusted: .otherDevice
        case .refused, .rejected: .failed("the device refuses the connection: open its pairing mode again")
        case .unreachable: .failed("the device does not answer")
        case .closed, .silent: .failed("the connection has ended")
        case .violation: .failed("the device violates the protocol")
        case .failed(let reason): .failed(Phrase(verbatim: reason))
        }
    }
}
