// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import RemoteIFD
package import Secrets
package import Store

extension RemoteLenders {
    /// The outcome of a pairing.
    package enum Pairing: Sendable, Equatable {
        case paired(RemoteDevice)
        case wrongCode
        /// There is no announcement of the device.
        case absent
        /// The device has another certificate than its announcement says.
        case otherDevice
        case failed(String)
    }

    /// Pairs with a device that announces itself. The code is that on its screen.
    package func pair(_ fingerprint: String, code: SecretBox) async -> Pairing {
        guard let sighting = seen[fingerprint], isFresh(sighting) else { return .absent }
        guard paired[fingerprint] != nil || paired.count < RemoteStore.maximumDevices else {
            return .failed("too many devices are paired: remove one")
        }
        let identity: RemoteIdentity
        do throws(StoreError) {
            identity = try await store.identity()
        } catch {
            return .failed(error.text)
        }
        self.identity = identity
        let link = RemoteLink.connect(
            to: sighting.address,
            interface: sighting.interface,
            identity,
            .pairing(code: code),
            times: settings.times
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
                guard found == fingerprint else { return .otherDevice }
                device = RemoteDevice(fingerprint: found, name: sighting.offer.name)
                limit.set(after: settings.times.setUp)
                let version: IFDVersion = sighting.offer.versions.contains(.two) ? .two : .zero
                let context = IFDMessage.establishContext(protocolName: version.rawValue, deviceName: settings.name)
                link.send(IFDEnvelope(context: nil, context).encode(version))
            case .message(let bytes):
                if case .establishContextResponse(let name, .ok) = try? IFDEnvelope(bytes).message {
                    device?.name = name
                }
                link.close()
            case .ended(let ending):
                guard let device else { return Self.failure(ending) }
                do throws(StoreError) {
                    try await store.add(device, .lender)
                } catch {
                    return .failed(error.text)
                }
                paired[fingerprint] = device
                pauses = pauses.filter { $0.key.fingerprint != fingerprint }
                observer()
                return .paired(device)
            }
        }
        return .failed("the connection has ended")
    }

    private static func failure(_ ending: RemoteLink.Ending) -> Pairing {
        switch ending {
        case .wrongCode: .wrongCode
        case .refused, .untrusted: .failed("the device refuses the connection: open its pairing mode again")
        case .unreachable: .failed("the device does not answer")
        case .closed, .silent: .failed("the connection has ended")
        case .violation: .failed("the device violates the protocol")
        case .failed(let reason): .failed(reason)
        }
    }

    /// Removes a pairing and ends its connection.
    /// - Returns: false if there is no such pairing.
    package func remove(_ fingerprint: String) async throws(StoreError) -> Bool {
        guard paired[fingerprint] != nil else { return false }
        try await store.remove(fingerprint, .lender)
        paired[fingerprint] = nil
        links[fingerprint]?.close()
        observer()
        return true
    }
}
