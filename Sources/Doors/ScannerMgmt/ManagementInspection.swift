// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Host
import Scanners
import Text

/// Asks the kernel once for its adapters and their settings while no scan runs.
@Loop final class ManagementInspection {
    private let socket: ManagementSocket
    private var reader: ManagementReader?
    private var alarm: Loop.Alarm?
    private var continuation: CheckedContinuation<ScannerStatus, Never>?
    /// Adapters by number; nil: the answer of the kernel is outstanding.
    private var adapters: [UInt16: ManagementAdapterInfo?] = [:]

    private init(_ socket: ManagementSocket, _ continuation: CheckedContinuation<ScannerStatus, Never>) {
        self.socket = socket
        self.continuation = continuation
    }

    private static let noAnswer = ScannerFault(
        .service,
        "the kernel's Bluetooth does not answer",
        advice: "see journalctl -k -g Bluetooth"
    )

    /// Returns the status of the adapters. `started` gets the inspection, so that a scan can end it. After `timeout`
    /// milliseconds without an answer the status has a fault.
    static func status(
        _ socket: ManagementSocket,
        timeout: Int64,
        started: (ManagementInspection) -> Void
    ) async -> ScannerStatus {
        await withCheckedContinuation { continuation in
            let inspection = ManagementInspection(socket, continuation)
            started(inspection)
            inspection.begin(timeout)
        }
    }

    /// Reader and alarm keep this object alive until `end`.
    private func begin(_ timeout: Int64) {
        let reader = ManagementReader(
            socket,
            onPacket: { packet in if let event = ManagementEvent(packet) { self.handle(event) } },
            onClose: { self.end(Self.noAnswer) }
        )
        self.reader = reader
        do throws(SystemError) {
            try reader.begin()
        } catch {
            return end(ScannerFault(.service, Phrase(verbatim: error.description), advice: "restart badged.service"))
        }
        alarm = Loop.Alarm { self.end(Self.noAnswer) }
        alarm?.set(after: timeout)
        if !socket.send(.readIndexList) { end(Self.noAnswer) }
    }

    private func handle(_ event: ManagementEvent) {
        guard case .answer(let command, let index, let status, let result) = event else { return }
        switch command {
        case ManagementCommand.Code.readIndexList:
            for index in ManagementAdapterInfo.list(status, result) ?? [] {
                adapters.updateValue(nil, forKey: index)
                _ = socket.send(.readInfo(index))
            }
        case ManagementCommand.Code.readInfo:
            if let info = ManagementAdapterInfo(status, result) {
                adapters.updateValue(info, forKey: index)
            } else {
                adapters.removeValue(forKey: index)
            }
        default: return
        }
        if adapters.values.allSatisfy({ $0 != nil }) { end() }
    }

    /// Ends the inspection with the adapters that are known, and with the fault if there is one.
    func end(_ fault: ScannerFault? = nil) {
        guard let continuation else { return }
        reader?.end()
        self.continuation = nil
        reader = nil
        alarm = nil
        var status = ScannerStatus(fault: fault)
        status.adapters = adapters.sorted { $0.key < $1.key }.compactMap { index, info in
            info.map { RadioAdapter(name: "hci\(index)", address: $0.address, isPowered: $0.settings.isPowered) }
        }
        if fault == nil {
            if status.adapters.isEmpty {
                status.fault = .noAdapter
            } else if !adapters.values.contains(where: { $0?.isReady == true }) {
                status.fault = .adapterOff
            }
        }
        continuation.resume(returning: status)
    }
}
