// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Host
import Scanners
import Text

/// What the kernel reports and answers.
extension MgmtScanner {
    private typealias Code = ManagementCommand.Code
    private typealias Status = ManagementCommand.Status

    func handle(_ packet: Span<UInt8>) {
        let event = ManagementEvent(packet)
        if case .answer(let command, let index, let status, let result) = event {
            power?.answered(command, index, status, result)
            if removeUnwantedMonitor(command, index, status, result) { return }
        }
        guard demand != nil else { return }
        switch event {
        case nil:
            malformed += 1
            status.malformed = malformed
        case .deviceFound(let index, var report, let data):
            // Discoveries of other programs report on adapters that are left out, too.
            guard unused[index] == nil else { return }
            let content = packet.extracting(data)
            report.isContinuation =
                continuations.isContinuation(report, content, adapter: Int(index), at: Loop.now)
            observer?.received(report, content, adapter: Int(index))
        case let event?:
            handle(event)
            update()
        }
    }

    func socketClosed() {
        power?.end()
        unwantedMonitors = []
        waiters.check()
        guard demand != nil else { return }
        fail(ScannerFault(.service, "the kernel's Bluetooth is gone", advice: "modprobe bluetooth"))
    }

    /// Removes a monitor that was added for a scan that has ended; false for all other answers.
    private func removeUnwantedMonitor(_ command: UInt16, _ index: UInt16, _ status: UInt8, _ result: [UInt8]) -> Bool {
        guard command == Code.addPatternsMonitor, unwantedMonitors.remove(index) != nil else { return false }
        if status == Status.success, let handle = Self.handle(result) { send(.removeMonitor(index, handle: handle)) }
        stopReadingWhenDone()
        return true
    }

    private static func handle(_ result: [UInt8]) -> UInt16? {
        result.count >= 2 ? UInt16(result[0]) | UInt16(result[1]) << 8 : nil
    }

    private func handle(_ event: ManagementEvent) {
        switch event {
        case .answer(let command, let index, let status, let result):
            unanswered[Request(command: command, adapter: index)] = nil
            handleAnswer(command, index, status, result)
        case .indexAdded(let index):
            adapters[index] = nil
            unused[index] = nil
            addAdapter(index)
        case .indexRemoved(let index):
            unused[index] = nil
            if adapters.removeValue(forKey: index) != nil { observer?.adapterRemoved(Int(index)) }
        case .newSettings(let index, let mask):
            unused[index]?.isPowered = ManagementSettings(mask: mask).isPowered
            if let adapter = adapters[index], adapter.settingsChanged(ManagementSettings(mask: mask)) {
                switchedOn(adapter)
            }
        case .monitorRemoved(let index, let handle): adapters[index]?.monitorRemoved(handle, patterns)
        case .suspended(let index): adapters[index]?.suspend()
        case .resumed(let index): adapters[index]?.resume(patterns)
        case .connected(let index, let address): observer?.deviceConnected(address, adapter: Int(index))
        case .deviceFound, .other: return
        }
    }

    private func handleAnswer(_ command: UInt16, _ index: UInt16, _ status: UInt8, _ result: [UInt8]) {
        if command == Code.readIndexList { return handleList(status, result) }
        guard let adapter = adapters[index] else { return }
        let isSuccess = status == Status.success
        switch command {
        case Code.readInfo:
            guard let info = ManagementAdapterInfo(status, result) else { return }
            let found = RadioAdapter(name: "hci\(index)", address: info.address, isPowered: info.settings.isPowered)
            guard rules.mayScan(found) else {
                adapters[index] = nil
                unused[index] = found
                return
            }
            adapter.address = info.address
            if adapter.settingsChanged(info.settings) { switchedOn(adapter) }
        case Code.setPowered:
            guard isSuccess, let settings = ManagementSettings(result) else {
                send(.readInfo(index))
                return
            }
            if adapter.powerSwitched(settings) { switchedOn(adapter) }
        case Code.getPHY: adapter.learnedPHY(isSuccess ? PHYs(result) : nil)
        case Code.setPHY: if adapter.changedPHY(isSuccess) { restartScan(of: adapter) }
        case Code.addPatternsMonitor: monitorAdded(to: adapter, status, result)
        case Code.startDiscovery:
            adapter.discoveryStarted(isSuccess)
            if !isWindowOpen || isReserved(index) { adapter.stopDiscovery() }
        case Code.stopDiscovery: adapter.discoveryStopped()
        default: return
        }
    }

    private func handleList(_ status: UInt8, _ result: [UInt8]) {
        guard let list = ManagementAdapterInfo.list(status, result) else {
            fail(ScannerFault(.service, "the kernel does not list its adapters", advice: "modprobe bluetooth"))
            retryAlarm?.set(after: timing.retry)
            return
        }
        hasList = true
        for index in list { addAdapter(index) }
    }

    private func addAdapter(_ index: UInt16) {
        if adapters[index] == nil {
            adapters[index] = ManagementAdapter(index) { [weak self] in self?.send($0) ?? false }
        }
        send(.readInfo(index))
    }

    private func switchedOn(_ adapter: ManagementAdapter) {
        adapter.addMonitor(patterns)
        if usesCodedPHY { adapter.useCodedPHY() }
        openWindow(adapters.values, for: rhythm.window)
    }

    /// The kernel uses other PHYs from the next start of the scan on.
    private func restartScan(of adapter: ManagementAdapter) {
        adapter.renewMonitor(patterns)
        guard adapter.discovery != .off else { return }
        adapter.stopDiscovery()
        openWindow([adapter], for: rhythm.window)
    }

    /// The kernel has not answered in time; an answer is lost when the socket is full.
    func answerLost(_ request: Request) {
        let adapter = adapters[request.adapter]
        switch request.command {
        case Code.readIndexList: send(.readIndexList)
        case Code.readInfo: if let adapter, adapter.address == nil { send(.readInfo(adapter.index)) }
        case Code.startDiscovery: adapter?.discoveryStarted(false)
        case Code.addPatternsMonitor:
            adapter?.monitorRefused(Status.timeout)
            retryAlarm?.set(after: timing.retry)
        default: return
        }
        update()
    }

    private func monitorAdded(to adapter: ManagementAdapter, _ status: UInt8, _ result: [UInt8]) {
        if status == Status.success, let handle = Self.handle(result) {
            fault = nil
            return adapter.monitorAdded(handle)
        }
        adapter.monitorRefused(status)
        switch status {
        case Status.permissionDenied:
            let advice: Phrase = "systemctl restart badged; badged.service needs badged-bluetooth as ExecStartPre="
            fault = ScannerFault(.access, "the kernel refuses to scan", advice: advice, isPermanent: true)
        case Status.unknownCommand, Status.notSupported:
            let advice: Phrase = "set [ble] backend = bluez, or boot Linux 5.8 or later"
            fault = ScannerFault(
                .scan,
                "the kernel does not support advertisement monitors",
                advice: advice,
                isPermanent: true
            )
        default: retryAlarm?.set(after: timing.retry)
        }
    }
}
