// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Concurrency
import Text

/// Switches the power of one adapter of bluetoothd: org.bluez.Adapter1. It has its own connection, because the
/// connection of the scan ends with the scan.
@Loop final class BlueZPower: PowerSwitch {
    private let address: String
    private let path: String
    private var bus: SystemBus?
    /// Called with the answer to the call in progress.
    private var waiting: SystemBus.Answer?

    init(_ address: String, _ path: String) { (self.address, self.path) = (address, path) }

    isolated deinit { bus?.close() }

    func isInUse() async -> Bool {
        let prefix = path + "/"
        return await ask(.managedObjects) { answer in
            guard let answer, answer.kind == .return else { return true }
            // An answer that cannot be decoded may contain a connection.
            return (try? Self.hasConnection(answer, below: prefix)) ?? true
        }
    }

    func setPower(_ isOn: Bool) async -> PowerOutcome {
        // The administrator may not want that bluetoothd is started.
        let isRunning = await ask(.nameOwner, arguments: { $0.append(BlueZName.service) }) { $0?.kind == .return }
        guard isRunning else { return .failed }
        return await ask(
            BusMethod(path, BlueZName.properties, "Set"),
            arguments: { message in
                message.append(BlueZName.adapter)
                message.append("Powered")
                message.container("v", "b") { message.append(isOn) }
            },
            read: { [path] answer in
                if answer?.kind == .return { return .done }
                // A bluetoothd that has just started does not know the adapter yet.
                let isUnknown = answer?.errorName?.hasPrefix("org.freedesktop.DBus.Error.Unknown") == true
                return isUnknown && !HostAdapters.exists(BlueZAdapter(path: path).name) ? .removed : .failed
            }
        )
    }

    private static func hasConnection(
        _ message: BusMessage,
        below prefix: String
    ) throws(Malformed) -> Bool {
        var result = false
        var objects = try BusObjects(message)
        while let (path, name) = try objects.next() {
            guard name == BlueZName.device, path.hasPrefix(prefix) else {
                try message.skip("a{sv}")
                continue
            }
            var device = BlueZDevice()
            try device.read(message)
            if device.isConnected { result = true }
        }
        return result
    }

    /// Calls a method and returns what `read` makes of the answer; nil: there is no answer.
    private func ask<Result: Sendable>(
        _ method: BusMethod,
        arguments: (BusMessage) -> Void = { _ in },
        read: @escaping @Loop (BusMessage?) -> Result
    ) async -> Result {
        guard let bus = connection() else { return read(nil) }
        return await withCheckedContinuation { continuation in
            waiting = { continuation.resume(returning: read($0)) }
            let isSent = bus.call(method, arguments: arguments) { [weak self] in self?.answered($0) }
            if !isSent { answered(nil) }
        }
    }

    /// Completes the call in progress. The end of the bus may follow an answer and has no effect then.
    private func answered(_ answer: BusMessage?) {
        let waiting = waiting
        self.waiting = nil
        waiting?(answer)
    }

    private func connection() -> SystemBus? {
        if bus == nil {
            bus = try? SystemBus(address: address)
            bus?.onEnd = { [weak self] in
                self?.bus = nil
                self?.answered(nil)
            }
        }
        return bus
    }
}
