// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import DoorReaders
import Glibc
import TestSupport

@testable import ScannerMgmt

/// Emulates the kernel at the other end of a socket pair, with adapters, commands and events as in BlueZ, doc/mgmt-api.txt.
/// Tests/Guest checks the scanner with a real kernel.
@Loop final class FakeKernel {
    struct Adapter {
        /// Bit 0: powered; bit 9: Low Energy.
        var settings: UInt32 = 1 | 1 << 9
        var connections: UInt16 = 0
        /// Bits 9 and 10: 1M; 13 and 14: coded.
        var supportedPHYs: UInt32 = 0x7E00
        var selectedPHYs: UInt32 = 0x0600
    }

    var adapters: [UInt16: Adapter] = [0: Adapter()]
    /// The status codes with which the next commands of a code are refused, in order.
    var refusals: [UInt16: [UInt8]] = [:]
    /// Adapters with which monitors are refused, because they are busy.
    var busy: Set<UInt16> = []
    /// The answer to the next command with each of these codes is lost.
    var lost: Set<UInt16> = []
    /// Commands are recorded and not answered.
    var isSilent = false
    /// Commands with these codes are executed at once and answered by `release`.
    var held: Set<UInt16> = []
    private var answers: [[UInt8]] = []
    /// The received commands, such as "52 hci0"; the code is hexadecimal.
    private(set) var commands: [String] = []
    private(set) var monitor: [UInt8] = []
    private var lastHandle: UInt16 = 0
    private let socket: Int32
    let other: ManagementSocket
    private var registration: Loop.Registration?
    private let waiters = Waiters()

    init() throws {
        let pair = try UnixSocket.pair(SOCK_SEQPACKET)
        for end in [pair.0, pair.1] { clinux_set_nonblocking(end) }
        socket = pair.0
        other = ManagementSocket(descriptor: pair.1)
        registration = try Loop.watch(socket, .read) { [weak self] _ in self?.readable() }
    }

    isolated deinit { close() }

    private var isClosed = false

    func close() {
        guard !isClosed else { return }
        isClosed = true
        registration?.cancel()
        Glibc.close(socket)
    }

    func count(_ command: String) -> Int { commands.filter { $0 == command }.count }

    func wait(for command: String, times: Int = 1) async { await waiters.wait { self.count(command) >= times } }

    // MARK: Commands

    private func readable() {
        var packet = [UInt8](repeating: 0, count: 4096)
        let count = recv(socket, &packet, packet.count, 0)
        guard count >= 6 else { return }
        let (code, index) = (uint16(packet, 0), uint16(packet, 2))
        let parameters = Array(packet[6..<count])
        if isSilent {
            // No answer.
        } else if let status = refusals[code]?.first {
            refusals[code]?.removeFirst()
            answer(code, index, status)
        } else if code == ManagementCommand.Code.addPatternsMonitor, busy.contains(index) {
            answer(code, index, ManagementCommand.Status.busy)
        } else {
            execute(code, index, parameters)
        }
        commands.append(String(code, radix: 16) + (index == 0xFFFF ? "" : " hci\(index)"))
        waiters.check()
    }

    private func execute(_ code: UInt16, _ index: UInt16, _ parameters: [UInt8]) {
        let adapter = adapters[index] ?? Adapter()
        switch code {
        case ManagementCommand.Code.readIndexList:
            let indices = adapters.keys.sorted()
            answer(code, index, 0, bytes(UInt16(indices.count)) + indices.flatMap { bytes($0) })
        case ManagementCommand.Code.readInfo:
            let address: [UInt8] = [0x55, 0x44, 0x33, 0x22, 0x11, UInt8(index)]
            let names = [UInt8](repeating: 0, count: 3 + 249 + 11)
            answer(code, index, 0, address + [9, 0, 0] + bytes(UInt32(0xFFFF)) + bytes(adapter.settings) + names)
        case ManagementCommand.Code.setPowered:
            guard adapters[index] != nil else { return answer(code, index, ManagementCommand.Status.invalidIndex) }
            switchPower(index, parameters.first == 1)
            // The sender of the command gets no event.
            answer(code, index, 0, bytes(adapters[index]?.settings ?? 0))
        case ManagementCommand.Code.getConnections:
            let addresses = [UInt8](repeating: 1, count: 7 * Int(adapter.connections))
            answer(code, index, 0, bytes(adapter.connections) + addresses)
        case ManagementCommand.Code.getPHY:
            answer(code, index, 0, [adapter.supportedPHYs, 0, adapter.selectedPHYs].flatMap { bytes($0) })
        case ManagementCommand.Code.setPHY:
            adapters[index]?.selectedPHYs = UInt32(uint16(parameters, 0))
            answer(code, index, 0)
        case ManagementCommand.Code.addPatternsMonitor:
            monitor = parameters
            lastHandle += 1
            answer(code, index, 0, bytes(lastHandle))
        default: answer(code, index, 0, parameters)
        }
    }

    private func uint16(_ packet: [UInt8], _ start: Int) -> UInt16 {
        UInt16(packet[start]) | UInt16(packet[start + 1]) << 8
    }

    private func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    private func answer(_ code: UInt16, _ index: UInt16, _ status: UInt8, _ result: [UInt8] = []) {
        let answer = packet(status == 0 ? 0x0001 : 0x0002, index, bytes(code) + [status] + result)
        if lost.remove(code) != nil { return }
        if held.contains(code) { answers.append(answer) } else { send(answer) }
    }

    /// Sends the held answers and holds no further ones.
    func release() {
        held = []
        for answer in answers { send(answer) }
        answers = []
    }

    // MARK: Events

    func event(_ code: UInt16, _ index: UInt16, _ parameters: [UInt8]) {
        send(packet(code, index, parameters))
    }

    private func packet(_ code: UInt16, _ index: UInt16, _ parameters: [UInt8]) -> [UInt8] {
        bytes(code) + bytes(index) + bytes(UInt16(parameters.count)) + parameters
    }

    func send(_ packet: [UInt8]) { _ = Glibc.send(socket, packet, packet.count, Int32(MSG_NOSIGNAL)) }

    func set(_ index: UInt16, isPowered: Bool) {
        switchPower(index, isPowered)
        event(0x0006, index, bytes(adapters[index]?.settings ?? 0))
    }

    private func switchPower(_ index: UInt16, _ isPowered: Bool) {
        guard let settings = adapters[index]?.settings else { return }
        adapters[index]?.settings = isPowered ? settings | 1 : settings & ~1
    }

    func isPowered(_ index: UInt16) -> Bool? { adapters[index].map { $0.settings & 1 == 1 } }

    func add(_ index: UInt16) {
        adapters[index] = Adapter()
        event(0x0004, index, [])
    }

    func remove(_ index: UInt16) {
        adapters[index] = nil
        event(0x0005, index, [])
    }

    /// Reports that monitors were removed, as when bluetoothd starts to use an adapter.
    func removeMonitors(_ index: UInt16, handle: UInt16 = 0) { event(0x002C, index, bytes(handle)) }

    /// Reports an advertisement that a monitor or a discovery has received.
    func report(_ address: DeviceAddress, _ rssi: Int8, _ data: [UInt8], byMonitor: Bool = true, on index: UInt16 = 0) {
        let device =
            address.bytes + [address.isRandom ? 2 : 1, UInt8(bitPattern: rssi), 0, 0, 0, 0]
            + bytes(UInt16(data.count)) + data
        event(byMonitor ? 0x002F : 0x0012, index, (byMonitor ? [0, 0] : []) + device)
    }
}
