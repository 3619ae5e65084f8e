// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Scanners

/// A look at bluetoothd while nobody scans: asks for its adapters once and hangs up. Neither it nor the bus starts
/// anything for that.
@Loop final class BlueZLook {
    private var bus: SystemBus?
    private var alarm: Loop.Alarm?
    private var continuation: CheckedContinuation<ScannerStatus, Never>?
    private let hasAdapter: Bool

    private init(_ continuation: CheckedContinuation<ScannerStatus, Never>, hasAdapter: Bool) {
        (self.continuation, self.hasAdapter) = (continuation, hasAdapter)
    }

    /// Looks: with `hasAdapter` false, where the kernel has no adapter at all, bluetoothd has no reason to run; after
    /// `patience` milliseconds it is taken for hung.
    static func status(
        _ place: SystemBus.Place,
        hasAdapter: Bool,
        patience: Int64 = 2000
    ) async -> ScannerStatus {
        await withCheckedContinuation { continuation in
            BlueZLook(continuation, hasAdapter: hasAdapter).begin(place, patience)
        }
    }

    /// What waits holds this object: bus and alarm, until `end`.
    private func begin(_ place: SystemBus.Place, _ patience: Int64) {
        do throws(SystemBus.Failure) {
            let bus = try SystemBus(place)
            self.bus = bus
            bus.onEnd = { self.end(BlueZFault.noBus) }
        } catch {
            return end(error == .noLibrary ? BlueZFault.noLibrary : BlueZFault.noBus)
        }
        alarm = Loop.Alarm {
            self.end(ScannerFault(.service, "bluetoothd does not answer", advice: "systemctl restart bluetooth"))
        }
        alarm?.set(after: patience)
        // A call to the service itself would start it.
        bus?.call(
            BlueZName.bus,
            BlueZName.busPath,
            BlueZName.bus,
            "GetNameOwner",
            { $0.append(BlueZName.service) },
            answer: { self.takeOwner($0) }
        )
    }

    private func takeOwner(_ answer: BusMessage?) {
        guard answer?.kind == .return else {
            return end(hasAdapter ? BlueZFault.noService : ScannerFault.noAdapter)
        }
        bus?.ask(BlueZName.service, "/", BlueZName.objects, "GetManagedObjects") { answer in
            self.takeObjects(answer)
        }
    }

    private func takeObjects(_ answer: BusMessage?) {
        guard let answer, answer.kind == .return else { return end(BlueZFault.refused(answer)) }
        var adapters: [BlueZAdapter] = []
        do throws(BusMessage.Malformed) {
            try answer.eachInterface { path, name throws(BusMessage.Malformed) in
                guard name == BlueZName.adapter else { return try answer.skip("a{sv}") }
                var adapter = BlueZAdapter(path: path)
                try adapter.read(answer)
                adapters.append(adapter)
            }
        } catch {
            return end(BlueZFault.unknownForm)
        }
        var status = ScannerStatus(adapters: adapters.sorted { $0.path < $1.path }.map { $0.shown() })
        if adapters.isEmpty {
            status.fault = .noAdapter
        } else if !adapters.contains(where: \.isPowered) {
            status.fault = .adapterOff
        }
        end(status)
    }

    private func end(_ fault: ScannerFault) { end(ScannerStatus(fault: fault)) }

    private func end(_ status: ScannerStatus) {
        bus?.close()
        (bus, alarm) = (nil, nil)
        continuation?.resume(returning: status)
        continuation = nil
    }
}
