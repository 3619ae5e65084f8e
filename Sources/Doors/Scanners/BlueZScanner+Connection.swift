// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Concurrency
import DoorReaders
import Text

/// The connection to the bus, and attempts to connect again.
extension BlueZScanner {
    private static let longestPause: Int64 = 30_000
    /// The pauses that are not doubled: a bluetoothd that has just started refuses for 11 s.
    private static let shortPauses = 6

    func open() {
        do throws(BusFailure) {
            let bus = try SystemBus(place)
            bus.onMessage = { [weak self] message in self?.handle(message) }
            bus.onEnd = { [weak self] in self?.connectionLost() }
            self.bus = bus
            monitors = BlueZMonitorRegistration(bus, demand?.profiles ?? []) { [weak self] path in
                guard let discovery = self?.discoveries[path] else { return }
                discovery.monitorsStarted()
                // A discovery that started before the monitors must start again to use them.
                if discovery.state == .on { discovery.restart() }
                self?.update()
            }
            addMatch("type='signal',sender='\(BlueZName.service)'")
            addMatch("type='signal',sender='\(BlueZName.bus)',member='NameOwnerChanged',arg0='\(BlueZName.service)'")
            readObjects()
        } catch {
            let fault = BlueZFault.bus(error)
            if fault.isPermanent { fail(fault) } else { connectionLost() }
        }
    }

    /// A socket that a test has handed over is closed with its bus, and its number may be that of another file now.
    private var isHandedOver: Bool { if case .connection = place { true } else { false } }

    func reopen() -> Bool {
        guard !isHandedOver else { return false }
        bus?.close()
        forgetObjects()
        open()
        return true
    }

    private func addMatch(_ rule: String) {
        bus?.call(.addMatch, arguments: { $0.append(rule) })
    }

    private func connectionLost() {
        forgetObjects()
        fail(BlueZFault.bus(.noBus))
        retryLater()
    }

    /// Forgets the connection and everything that was read over it.
    func forgetObjects() {
        reportRemovedAdapters()
        bus = nil
        monitors = nil
        owner = nil
        adapters = [:]
        unused = [:]
        discoveries = [:]
        devices = BlueZDevices()
        reading = []
    }

    private func reportRemovedAdapters() {
        for adapter in adapters.values { observer?.adapterRemoved(adapter.number) }
    }

    /// Tries again after a pause: to connect, to read the objects, or to start discoveries. The pauses are 1, 2, 2, 2, 2, 2,
    /// 4, 8, 16 and 30 s.
    func retryLater() {
        // Several adapters may be refused at the same time.
        guard demand != nil, retryAlarm == nil else { return }
        let doublings = failures < Self.shortPauses ? min(failures, 1) : failures - Self.shortPauses + 2
        let pause = min(timing.retry << Int64(min(doublings, 10)), Self.longestPause)
        failures += 1
        retryAlarm = Loop.Alarm { [weak self] in self?.retry() }
        retryAlarm?.set(after: pause)
    }

    private func retry() {
        retryAlarm = nil
        guard demand != nil else { return }
        if bus == nil {
            if !isHandedOver { open() }
        } else if owner == nil {
            readObjects()
        } else {
            retryDiscoveries()
        }
    }

    private func readObjects() {
        bus?.call(.managedObjects, answer: { [weak self] answer in self?.handleObjects(answer) })
    }

    private func handleObjects(_ answer: BusMessage?) {
        guard demand != nil else { return }
        guard let answer, answer.kind == .return else {
            fail(BlueZFault.refused(answer))
            return retryLater()
        }
        owner = answer.sender
        failures = 0
        retryAlarm = nil
        fault = nil
        do throws(Malformed) {
            var objects = try BusEntries(answer, "oa{sa{sv}}")
            while try objects.next() { try readInterfaces(of: try answer.string("o"), answer, isNew: false) }
        } catch {
            fail(BlueZFault.unknownFormat)
        }
        update()
    }

    /// bluetoothd was started or has ended.
    func ownerChanged(to new: String) {
        guard new != owner else { return }
        reportRemovedAdapters()
        owner = nil
        adapters = [:]
        unused = [:]
        discoveries = [:]
        devices = BlueZDevices()
        reading = []
        monitors?.forgetAll()
        if new.isEmpty {
            fail(BlueZFault.serviceEnded)
        } else {
            readObjects()
        }
    }
}
