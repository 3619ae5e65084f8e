// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// The connection of an emulated USB device to a kernel with vhci_hcd: USB/IP over a socket pair.
/// Linux, Documentation/usb/usbip_protocol.rst.
final class USBCable: Sendable {
    /// The kernel's numbers for speeds.
    enum Speed: Int { case full = 2, high = 3 }

    /// A transfer that the host requests: USBIP_CMD_SUBMIT.
    struct Transfer: Sendable {
        let sequence: UInt32
        let endpoint: UInt32
        let isToHost: Bool
        let length: Int
        /// 8 bytes, used only on endpoint 0.
        let setup: [UInt8]
        /// The data from the host.
        let data: [UInt8]
    }

    enum Request: Sendable {
        case submitted(Transfer)
        /// The host cancels the transfer `cancelled`: USBIP_CMD_UNLINK.
        case unlinked(sequence: UInt32, cancelled: UInt32)
    }

    private let socket: Int32
    private let isCut = Mutex(false)

    /// Attaches a device to this port of the kernel.
    init(port: Int, speed: Speed) throws(EmulatedUSBBoard.SetupError) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw EmulatedUSBBoard.SetupError(text: "socketpair: \(String(cString: strerror(errno)))")
        }
        socket = ends[0]
        defer { close(ends[1]) }
        let path = "/sys/devices/platform/vhci_hcd.0/attach"
        let line = Array("\(port) \(ends[1]) 1 \(speed.rawValue)\n".utf8)
        let file = open(path, O_WRONLY | O_CLOEXEC)
        guard file >= 0, write(file, line, line.count) == line.count else {
            let reason = String(cString: strerror(errno))
            if file >= 0 { close(file) }
            throw EmulatedUSBBoard.SetupError(text: "\(path): \(reason)")
        }
        close(file)
    }

    deinit { close(socket) }

    /// Detaches the device.
    func cut() {
        isCut.withLock { $0 = true }
        shutdown(socket, Int32(SHUT_RDWR))
    }

    // MARK: Packets

    /// Waits for the next request; nil after `cut`.
    func next() -> Request? {
        guard let head = receive(48) else { return nil }
        func number(_ offset: Int) -> UInt32 { head[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }
        let sequence = number(4)
        guard number(0) == 1 else { return .unlinked(sequence: sequence, cancelled: number(20)) }
        let isToHost = number(12) == 1
        let length = Int(number(24))
        guard let data = isToHost ? [] : receive(length) else { return nil }
        return .submitted(
            Transfer(
                sequence: sequence,
                endpoint: number(16),
                isToHost: isToHost,
                length: length,
                setup: Array(head[40...]),
                data: data
            )
        )
    }

    /// Ends a transfer, with the data for the host; nil: the endpoint stalls.
    func answer(_ transfer: Transfer, _ data: [UInt8]?) {
        let length = transfer.isToHost ? data?.count ?? 0 : transfer.length
        // EPIPE.
        let status = UInt32(bitPattern: data == nil ? -32 : 0)
        let body = [3, transfer.sequence, 0, 0, 0, status, UInt32(length), 0, 0, 0, 0, 0]
        send(Self.bytes(body) + (transfer.isToHost ? data ?? [] : []))
    }

    func confirmUnlink(_ sequence: UInt32, wasWaiting: Bool) {
        // ECONNRESET: the transfer is not answered.
        let status = UInt32(bitPattern: wasWaiting ? -104 : 0)
        send(Self.bytes([4, sequence, 0, 0, 0, status, 0, 0, 0, 0, 0, 0]))
    }

    private static func bytes(_ words: [UInt32]) -> [UInt8] {
        words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
    }

    private func send(_ bytes: [UInt8]) {
        isCut.withLock { isCut in
            var unsent = bytes[...]
            while !isCut, !unsent.isEmpty {
                let sent = unsent.withUnsafeBytes {
                    Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard sent > 0 else { return }
                unsent = unsent.dropFirst(sent)
            }
        }
    }

    private func receive(_ count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count < count {
            let received = recv(socket, &buffer, min(buffer.count, count - bytes.count), 0)
            guard received > 0 else { return nil }
            bytes += buffer[..<received]
        }
        return bytes
    }
}
