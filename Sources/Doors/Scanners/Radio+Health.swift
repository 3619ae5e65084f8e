// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
package import Host
import Text

/// The checks of the radio in GET_HEALTH.
extension Radio {
    /// Checks the radio. While no client scans, the scanners are inspected, which starts and changes nothing.
    package func checks() async -> [HealthCheck] {
        let strangers = await connections?.strangers(endsUnused: false) ?? []
        return await ownChecks()
            + strangers.map { reader in
                HealthCheck(
                    "bluetoothReaders",
                    ok: false,
                    cause: "the reader \(reader.address) is connected to \(reader.adapter), but not by badged",
                    advice:
                        "while it is connected, its door opens for nobody else: bluetoothctl disconnect \(reader.address)"
                )
            }
    }

    private func ownChecks() async -> [HealthCheck] {
        if demand == nil {
            if inspection == nil { inspection = Task { @Loop in await self.inspect() } }
            let status = await inspection?.value
            inspection = nil
            // A scan that has started meanwhile has the newer status.
            if demand == nil {
                return allScanners.isEmpty ? [] : Self.checks(status?.fault) + adapterChecks(status ?? ScannerStatus())
            }
        }
        return scanChecks
    }

    /// The status of the first scanner that has no permanent fault.
    private func inspect() async -> ScannerStatus? {
        var status: ScannerStatus?
        for scanner in allScanners {
            let new = await scanner.inspect()
            status = new
            guard demand == nil, new.fault?.isPermanent == true else { break }
        }
        return status
    }

    /// What badged.conf asks of adapters and they cannot give. Without adapters nothing is known of them.
    private func adapterChecks(_ status: ScannerStatus) -> [HealthCheck] {
        let present = status.adapters + status.unused
        guard !present.isEmpty else { return [] }
        var checks: [HealthCheck] = []
        func fault(_ name: String, _ cause: Phrase, _ advice: Phrase) {
            checks.append(HealthCheck(name, ok: false, cause: cause, advice: advice))
        }
        let missing = configuration.adapters.rules.map(\.adapter).filter { name in !present.contains { name.names($0) }
        }
        if !missing.isEmpty {
            let found = present.map { "\($0.name) (\($0.address))" }.joined(separator: ", ")
            fault(
                "bluetoothAdapters",
                "[ble] adapters names \(missing.map(\.text).joined(separator: ", ")), but this computer has \(found)",
                "correct [ble] adapters in badged.conf, or plug the adapter in"
            )
        }
        if !status.withoutCodedPHY.isEmpty {
            fault(
                "bluetoothCodedPHY",
                "\(status.withoutCodedPHY.joined(separator: ", ")) does not receive on the coded PHY",
                "it needs [ble] backend = mgmt and an adapter whose btmgmt phy shows LECODEDRX; without it: coded_phy = no"
            )
        }
        let devices = status.adapters.compactMap { USBReset.Device(adapter: $0.name) }
        if configuration.mayResetUSB, let locked = devices.first(where: { !$0.mayReset }) {
            fault(
                "bluetoothUSB",
                "badged may not write to \(locked.node), so it cannot reset this adapter",
                "give the device to group badged-devices by a udev rule: docs/door-readers.md, Faults and recovery"
            )
        }
        return checks
    }

    /// The checks in the order of their dependencies. After a failed check, the state of the following ones is unknown.
    private static func checks(_ fault: ScannerFault?, errorAgo: Milliseconds? = nil) -> [HealthCheck] {
        var hasFailed = false
        return [ScannerFault.Kind.service, .access, .adapter].map { kind in
            if hasFailed, let fault { return HealthCheck(kind.rawValue, unknownWithout: fault.kind.rawValue) }
            guard let fault, fault.kind == kind else { return HealthCheck(kind.rawValue, ok: true) }
            hasFailed = true
            let state = HealthCheck.Fact("state", fault == .adapterOff ? "off" : "missing")
            return HealthCheck(
                kind.rawValue,
                ok: false,
                isOptional: isMissing(fault),
                cause: fault.text,
                advice: advice(fault),
                errorAgo: errorAgo,
                facts: kind == .adapter ? [state] : []
            )
        }
    }

    /// Whether this host has no Bluetooth at all. A recording that `[ble] replay` names is never optional.
    private static func isMissing(_ fault: ScannerFault) -> Bool {
        switch fault.kind {
        case .adapter: fault == .noAdapter
        case .service: !fault.isConfigured && !HostAdapters.anyExists()
        case .access, .scan: false
        }
    }

    private var scanChecks: [HealthCheck] {
        guard let scanner = scanners.first else { return [] }
        let status = scanner.status
        let errorAgo = state.errorSince.map { clock.now - $0 }
        var checks = Self.checks(status.fault, errorAgo: errorAgo)
        let scan = ScannerFault.Kind.scan.rawValue
        if let fault = status.fault, fault.kind != .scan {
            checks.append(HealthCheck(scan, unknownWithout: fault.kind.rawValue))
        } else {
            let (cause, advice) = (status.fault?.text, scanAdvice(status.fault))
            let age = advice.flatMap { _ in errorAgo }
            checks.append(HealthCheck(scan, ok: advice == nil, cause: cause, advice: advice, errorAgo: age))
        }
        let report: Phrase =
            "\(status.malformed) messages could not be read: report this with the versions of Linux and BlueZ"
        let isWell = status.malformed == 0
        checks.append(HealthCheck("bluetoothMessages", ok: isWell, advice: isWell ? nil : report))
        let count = tracker.fragmentedSenders
        let fragments: Phrase =
            "\(count) senders look like readers only in later fragments of their advertisements, and are ignored; "
            + "the kernel does not join fragments: let the readers send shorter advertisements, with the service first"
        checks.append(HealthCheck("bluetoothFragments", ok: count == 0, advice: count == 0 ? nil : fragments))
        return checks + adapterChecks(status)
    }

    /// nil: the scan works.
    private func scanAdvice(_ fault: ScannerFault?) -> Phrase? {
        if let fault { return fault.advice }
        guard let silence = silenceMonitor.silence else { return nil }
        let seconds = (clock.now - silence.since) / 1000
        return silence.adapters.isEmpty
            ? "no advertisement was received for \(seconds) s: check that a reader is near and that the adapter works"
            : "\(silence.names) received nothing for \(seconds) s, but other adapters did: unplug it, then plug it in"
    }
}
