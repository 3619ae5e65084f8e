// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Concurrency
import Text

/// Asks bluetoothd once for its adapters while no scan runs. This does not start bluetoothd.
@Loop final class BlueZInspection {
    private var bus: SystemBus?
    private var alarm: Loop.Alarm?
    private var continuation: CheckedContinuation<ScannerStatus, Never>?
    private let hasAdapter: Bool

    private init(_ continuation: CheckedContinuation<ScannerStatus, Never>, hasAdapter: Bool) {
        self.continuation = continuation
        self.hasAdapter = hasAdapter
    }

    /// Returns the status of the adapters. `hasAdapter` is whether the kernel has an adapter; without one bluetoothd
    /// does not run, which is no fault. After `timeout` milliseconds without an answer the status has a fault.
    static func status(
        _ place: SystemBus.Place,
        hasAdapter: Bool,
        timeout: Int64 = 2000
    ) async -> ScannerStatus {
        await withCheckedContinuation { continuation in
            BlueZInspection(continuation, hasAdapter: hasAdapter).begin(place, timeout)
        }
    }

    /// The connection and the alarm keep this object alive until `end`.
    private func begin(_ place: SystemBus.Place, _ timeout: Int64) {
        do throws(BusFailure) {
            let bus = try SystemBus(place)
            self.bus = bus
            bus.onEnd = { self.end(BlueZFault.bus(.noBus)) }
        } catch {
            return end(BlueZFault.bus(error))
        }
        alarm = Loop.Alarm { self.end(BlueZFault.noAnswer) }
        alarm?.set(after: timeout)
        bus?.call(.nameOwner, arguments: { $0.append(BlueZName.service) }, answer: { self.handleOwner($0) })
    }

    private func handleOwner(_ answer: BusMessage?) {
        guard answer?.kind == .return else { return end(hasAdapter ? ScannerFault.noService : ScannerFault.noAdapter) }
        bus?.call(.managedObjects, answer: { self.handleObjects($0) })
    }

    private func handleObjects(_ answer: BusMessage?) {
        guard let answer, answer.kind == .return else { return end(BlueZFault.refused(answer)) }
        var adapters: [BlueZAdapter] = []
        do throws(Malformed) {
            var objects = try BusObjects(answer)
            while let (path, name) = try objects.next() {
                guard name == BlueZName.adapter else {
                    try answer.skip("a{sv}")
                    continue
                }
                var adapter = BlueZAdapter(path: path)
                try adapter.read(answer)
                adapters.append(adapter)
            }
        } catch {
            return end(BlueZFault.unknownFormat)
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
        bus = nil
        alarm = nil
        continuation?.resume(returning: status)
        continuation = nil
    }
}
