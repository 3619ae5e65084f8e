// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import DoorReaders
import Text

/// What bluetoothd has to offer at one moment.
package struct BlueZHost: Sendable {
    package private(set) var adapters: [BlueZAdapter] = []

    /// Asks bluetoothd, and does not start it; nil: it does not run, or does not answer in time.
    @Loop package static func ask(_ bus: SystemBus, within limit: Milliseconds) async -> BlueZHost? {
        let isRunning = await bus.result(
            of: .nameOwner,
            within: limit,
            arguments: { $0.append(BlueZName.service) },
            read: { _ in true }
        )
        guard isRunning == true else { return nil }
        return await bus.result(of: .managedObjects, within: limit) { try? BlueZHost($0) }
    }

    private init(_ answer: BusMessage) throws(Malformed) {
        var found: [String: BlueZAdapter] = [:]
        var objects = try BusObjects(answer)
        while let (path, name) = try objects.next() {
            switch name {
            case BlueZName.adapter: try found[path, default: BlueZAdapter(path: path)].read(answer)
            case BlueZName.advertisingManager:
                found[path, default: BlueZAdapter(path: path)].advertises = true
                try answer.skip("a{sv}")
            default: try answer.skip("a{sv}")
            }
        }
        adapters = found.values.sorted { $0.path < $1.path }
    }
}
