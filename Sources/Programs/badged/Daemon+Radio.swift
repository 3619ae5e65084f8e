// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Host
import ScannerBlueZ
import ScannerMgmt
import Scanners

extension Daemon {
    /// The scan for door readers as it is configured; it does nothing until a client scans.
    func makeRadio(_ configuration: RadioConfiguration) -> Radio? {
        let scanners = scanners(configuration)
        guard !scanners.isEmpty else { return nil }
        let limits = RangeLimits(
            configured: Dictionary(
                configuration.limits.compactMap { name, value in OpeningType(name: name).map { ($0, value) } },
                uniquingKeysWith: { $1 }
            ),
            sensitivity: .init(rawValue: configuration.sensitivity.rawValue) ?? .normal
        )
        let encoding = LockServiceCode.Encoding(rawValue: configuration.codeEncoding.rawValue) ?? .binary
        let radio = Radio(
            scanners: scanners,
            clock: MonotonicClock(),
            silence: Milliseconds(configuration.silence) * 1000
        ) {
            ReaderTracker(decoder: AdvertisementDecoder(codeEncoding: encoding), limits: limits)
        }
        radio.log = { Log.notice("\($0)") }
        return radio
    }

    /// Ways to the radio, best first. A new one is one line here and one target.
    private func scanners(_ configuration: RadioConfiguration) -> [any Scanner] {
        let mayDisconnect = configuration.mayDisconnect
        switch configuration.backend {
        case .replay: return configuration.replay.map { [ReplayScanner(path: $0)] } ?? []
        case .mgmt: return [MgmtScanner(socket: management, mayDisconnect: mayDisconnect)]
        case .bluez: return [BlueZScanner(mayDisconnect: mayDisconnect)]
        case .auto:
            let kernel = management.map { [MgmtScanner(socket: $0, mayDisconnect: mayDisconnect)] } ?? []
            return kernel + [BlueZScanner(mayDisconnect: mayDisconnect)]
        }
    }
}
