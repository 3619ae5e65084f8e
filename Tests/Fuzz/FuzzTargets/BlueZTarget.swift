// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Dispatch
import DoorReaders
import Glibc
import Scanners
import Text

/// A scan through bluetoothd with the real sd-bus. The target simulates the bus: after the greeting it sends the input and
/// closes the connection.
@Sendable func blueZMessages(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    let ended = DispatchSemaphore(value: 0)
    Task { @Loop in
        await BlueZRun().play(bytes)
        ended.signal()
    }
    ended.wait()
}

@Loop private final class BlueZRun: ScannerObserver {
    private var ended: CheckedContinuation<Void, Never>?

    nonisolated init() {}

    /// The answers of a bus: to SASL EXTERNAL, then to Hello, with the unique name ":1.7".
    private static let greeting: [UInt8] =
        Array("DATA\r\nOK 0123456789abcdef0123456789abcdef\r\nAGREE_UNIX_FD\r\n".utf8) + [
            0x6C, 0x02, 0x01, 0x01, 0x09, 0, 0, 0, 0x01, 0, 0, 0, 0x2F, 0, 0, 0, 0x05, 0x01, 0x75, 0, 0x01, 0, 0, 0,
            0x07, 0x01, 0x73, 0, 0x14, 0, 0, 0, 0x6F, 0x72, 0x67, 0x2E, 0x66, 0x72, 0x65, 0x65, 0x64, 0x65, 0x73,
            0x6B, 0x74, 0x6F, 0x70, 0x2E, 0x44, 0x42, 0x75, 0x73, 0, 0, 0, 0, 0x08, 0x01, 0x67, 0, 0x01, 0x73, 0, 0,
            0x04, 0, 0, 0, 0x3A, 0x31, 0x2E, 0x37, 0,
        ]

    func play(_ bytes: [UInt8]) async {
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else { return }
        for end in pair { clinux_set_nonblocking(end) }
        let scanner = BlueZScanner(connection: pair[0])
        scanner.observer = self
        let all = Self.greeting + bytes
        require(send(pair[1], all, all.count, Int32(MSG_NOSIGNAL)) == all.count, "the input is too long for the socket")
        shutdown(pair[1], Int32(SHUT_WR))
        scanner.scan(ScanDemand(mode: .performance))
        await withCheckedContinuation { ended = $0 }
        require(!scanner.status.isListening && scanner.status.adapters.isEmpty, "a scan without a bus")
        scanner.stop()
        close(pair[1])
    }

    func scannerChanged(_ scanner: any Scanner) {
        guard scanner.status.fault?.text.description.hasSuffix("D-Bus") == true else { return }
        ended?.resume()
        ended = nil
    }

    func received(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) {
        require(data.count <= 32 * 3 * 257, "advertising data above the limit")
        _ = AdvertisementDecoder().decode(data)
    }

    func adapterRemoved(_ adapter: Int) {}
}
