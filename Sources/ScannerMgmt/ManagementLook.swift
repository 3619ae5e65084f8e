// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Loop
import Scanners

/// A look at the kernel's adapters while nobody scans: asks for their settings once and reads no more.
@Loop final class ManagementLook {
    private let socket: ManagementSocket
    private var registration: Loop.Registration?
    private var alarm: Loop.Alarm?
    private var continuation: CheckedContinuation<ScannerStatus, Never>?
    private var buffer: [UInt8] = []
    /// By number; nil: asked about.
    private var adapters: [UInt16: ManagementAdapterInfo?] = [:]

    private init(_ socket: ManagementSocket, _ continuation: CheckedContinuation<ScannerStatus, Never>) {
        (self.socket, self.continuation) = (socket, continuation)
    }

    /// Milliseconds after which what is known is all there is.
    private static let patience: Int64 = 2000

    /// Looks; `started` gets the look, to end it when a scan begins.
    static func status(
        _ socket: ManagementSocket,
        started: (ManagementLook) -> Void
    ) async -> ScannerStatus {
        await withCheckedContinuation { continuation in
            let look = ManagementLook(socket, continuation)
            started(look)
            look.begin()
        }
    }

    /// What waits holds this object: registration and alarm, until `end`.
    private func begin() {
        // What has piled up is old.
        while let count = socket.receive(&buffer), count > 0 {}
        do throws(SystemError) {
            registration = try Loop.watch(socket.descriptor, .read) { _ in self.readable() }
            alarm = try Loop.Alarm { self.end() }
        } catch {
            return end()
        }
        alarm?.set(after: Self.patience)
        if !socket.send(.readIndexList) { end() }
    }

    private func readable() {
        while continuation != nil, let count = socket.receive(&buffer) {
            guard count > 0 else { return end() }
            guard
                case .answer(let command, let index, let status, let result)? =
                    ManagementEvent(buffer.span.extracting(0..<count))
            else { continue }
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
            default: continue
            }
        }
    }

    func end() {
        registration?.cancel()
        (registration, alarm) = (nil, nil)
        var status = ScannerStatus()
        status.adapters = adapters.sorted { $0.key < $1.key }.compactMap { index, info in
            info.map { RadioAdapter(name: "hci\(index)", address: $0.address, isPowered: $0.isPowered) }
        }
        if status.adapters.isEmpty {
            status.fault = .noAdapter
        } else if !adapters.values.contains(where: { $0?.isReady == true }) {
            status.fault = .adapterOff
        }
        continuation?.resume(returning: status)
        continuation = nil
    }
}
