// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners

/// A look at the kernel's adapters while nobody scans: asks for their settings once and reads no more.
@Loop final class ManagementLook {
    private let socket: ManagementSocket
    private var registration: Loop.Registration?
    private var alarm: Loop.Alarm?
    private var continuation: CheckedContinuation<ScannerStatus, Never>?
    private var packets = ManagementPackets()
    /// By number; nil: asked about.
    private var adapters: [UInt16: ManagementAdapterInfo?] = [:]

    private init(_ socket: ManagementSocket, _ continuation: CheckedContinuation<ScannerStatus, Never>) {
        (self.socket, self.continuation) = (socket, continuation)
    }

    private static let noAnswer =
        ScannerFault(.service, "the kernel's Bluetooth does not answer", advice: "journalctl -k -g Bluetooth says more")

    /// Looks; `started` gets the look, to end it when a scan begins. After `patience` milliseconds the kernel is taken for
    /// hung.
    static func status(
        _ socket: ManagementSocket,
        patience: Int64,
        started: (ManagementLook) -> Void
    ) async -> ScannerStatus {
        await withCheckedContinuation { continuation in
            let look = ManagementLook(socket, continuation)
            started(look)
            look.begin(patience)
        }
    }

    /// What waits holds this object: registration and alarm, until `end`.
    private func begin(_ patience: Int64) {
        // What has piled up is old.
        socket.drain(&packets)
        do throws(SystemError) {
            registration = try Loop.watch(socket.descriptor, .read) { _ in self.readable() }
        } catch {
            return end(ScannerFault(.service, error.description, advice: "restart badged.service"))
        }
        alarm = Loop.Alarm {
            // It may be badged that had no time.
            self.readable()
            self.end(Self.noAnswer)
        }
        alarm?.set(after: patience)
        if !socket.send(.readIndexList) { end(Self.noAnswer) }
    }

    private func readable() {
        repeat {
            socket.receive(&packets)
            for index in 0..<packets.count where continuation != nil {
                let range = packets.range(index)
                guard !range.isEmpty else { return end(Self.noAnswer) }
                if let event = ManagementEvent(packets.bytes.span.extracting(range)) { take(event) }
            }
            // The kernel answers at once.
        } while continuation != nil && packets.count > 0
    }

    private func take(_ event: ManagementEvent) {
        guard case .answer(let command, let index, let status, let result) = event else { return }
        switch command {
        case ManagementCommand.Code.readIndexList:
            for index in ManagementAdapterInfo.list(status, result) {
                adapters.updateValue(nil, forKey: index)
                _ = socket.send(.readInfo(index))
            }
            if adapters.isEmpty { end() }
        case ManagementCommand.Code.readInfo:
            if let info = ManagementAdapterInfo(status, result) {
                adapters[index] = info
            } else {
                adapters[index] = nil
            }
            if adapters.values.allSatisfy({ $0 != nil }) { end() }
        default: return
        }
    }

    /// With what is known so far, or with what kept it from being known.
    func end(_ fault: ScannerFault? = nil) {
        guard let continuation else { return }
        registration?.cancel()
        (self.continuation, registration, alarm) = (nil, nil, nil)
        var status = ScannerStatus(fault: fault)
        status.adapters = adapters.sorted { $0.key < $1.key }.compactMap { index, info in
            info.map { RadioAdapter(name: "hci\(index)", address: $0.address, isPowered: $0.isPowered) }
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
