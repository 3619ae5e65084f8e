// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Glibc
import TestSupport
import Testing

@testable import Host

/// Each test confines a process of its own, and tries there what the program would try after a break-in.
@Suite(
    "Confined programs",
    .disabled(if: Spawn.isSanitized, "a sanitizer makes calls of its own"),
    .timeLimit(.minutes(5))
)
struct ConfinementTests {
    @Test("the browser program cannot use sockets, files, processes or memory of others")
    func browserPort() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            attack(under: .browserPort)
        }
        expectNoFault(result)
    }

    @Test("the NFC program cannot use them either, except for devices")
    func nfcDevices() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            attack(under: .nfcDevices)
        }
        expectNoFault(result)
    }

    @Test("the network program can connect to ports, and has nothing else of them")
    func network() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            attack(
                under: .network,
                allowing: [
                    "connect to a port", "connect with MSG_FASTOPEN",
                    // For the addresses of this computer; changes need a capability.
                    "make a netlink socket for the network's settings",
                    // Datagrams are for look-ups of names; the program has no Unix socket without a peer.
                    "send a datagram to a Unix socket",
                ]
            )
        }
        expectNoFault(result)
    }

    @Test("the program for remote readers can connect to ports, and has nothing else of them")
    func remoteReaders() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            attack(
                under: .remoteReaders,
                allowing: [
                    "connect to a port", "connect with MSG_FASTOPEN",
                    // For the interfaces of this computer; changes need a capability.
                    "make a netlink socket for the network's settings",
                    // Datagrams are for announcements; the program has no Unix socket without a peer.
                    "send a datagram to a Unix socket",
                ]
            )
        }
        expectNoFault(result)
    }

    @Test("the program for the broker can connect to ports and to badged, and has no file but its own")
    func broker() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            attack(
                under: .broker(readable: [], folder: "/var/empty"),
                allowing: [
                    "connect to a port", "connect with MSG_FASTOPEN", "connect to the socket of badged",
                    // Datagrams are for look-ups of names and for systemd.
                    "send a datagram to a Unix socket",
                ]
            )
        }
        expectNoFault(result)
    }

    @Test("the program for door panels can connect to ports and to badged, and has no file but its own and devices")
    func lines() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            attack(
                under: .lines(readable: [], folder: "/var/empty"),
                allowing: [
                    "connect to a port", "connect with MSG_FASTOPEN", "connect to the socket of badged",
                    // Datagrams are for systemd.
                    "send a datagram to a Unix socket",
                ]
            )
        }
        expectNoFault(result)
    }

    @Test("the program for the broker can keep its files, read its settings, look up names and connect")
    func brokerWorks() async {
        await #expect(processExitsWith: .exitCode(7)) {
            var template = Array("/tmp/badged-broker-XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else { exit(1) }
            let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let settings = folder + ".conf"
            close(creat(settings, 0o600))
            guard Confinement.broker(readable: [settings], folder: folder).apply(to: "test") else { exit(2) }
            let file = open(folder + "/a", O_RDWR | O_CREAT | O_EXCL, 0o600)
            guard pwrite(file, "text", 4, 0) == 4, fsync(file) == 0, ftruncate(file, 2) == 0 else { exit(3) }
            guard rename(folder + "/a", folder + "/b") == 0, unlink(folder + "/b") == 0 else { exit(4) }
            guard mkdir(folder + "/kept", 0o700) == 0, open(settings, O_RDONLY) >= 0 else { exit(5) }
            var found: UnsafeMutablePointer<addrinfo>?
            guard getaddrinfo("localhost", "1883", nil, &found) == 0 else { exit(6) }
            let badged = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            let link = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            guard badged >= 0, link >= 0, bind(link, found?.pointee.ai_addr, found?.pointee.ai_addrlen ?? 0) != 0 else {
                exit(8)
            }
            exit(7)
        }
    }

    /// Swift Testing puts bytes of its own before the output.
    private func expectNoFault(_ result: ExitTest.Result?) {
        let output = result.map { String(decoding: $0.standardErrorContent, as: UTF8.self) } ?? ""
        #expect(output.hasSuffix("faults: none"))
    }

    @Test("the browser program can still serve a connection and pass one end of a new one to badged")
    func browserPortWorks() async {
        await #expect(processExitsWith: .exitCode(7)) {
            var (daemon, pair): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
            guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &daemon) == 0 else { exit(1) }
            try? Confinement.browserPort.apply()
            let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            guard socketpair(AF_UNIX, type, 0, &pair) == 0, clinux_pass_descriptor(daemon[0], pair[1], [1], 1) == 0
            else {
                exit(2)
            }
            var (note, count) = ([UInt8](repeating: 0, count: 64), Int32(0))
            let taken = clinux_take_descriptor(daemon[1], &note, &count)
            guard taken >= 0, send(taken, "x", 1, Int32(MSG_NOSIGNAL)) == 1 else { exit(3) }
            var byte: UInt8 = 0
            guard recv(pair[0], &byte, 1, 0) == 1, byte == 0x78 else { exit(4) }
            exit(7)
        }
    }

    @Test("the NFC program can still open devices, read what the kernel tells about them, and start threads")
    func nfcDevicesWork() async {
        await #expect(processExitsWith: .exitCode(7)) {
            try? Confinement.nfcDevices.apply()
            guard open("/dev/null", O_RDWR) >= 0 else { exit(1) }
            guard let folder = opendir("/sys"), readdir(folder) != nil else { exit(2) }
            guard opendir("/dev") != nil, open("/etc/group", O_RDONLY) >= 0 else { exit(3) }
            let isDone = DispatchSemaphore(value: 0)
            DispatchQueue(label: "thread").async { isDone.signal() }
            isDone.wait()
            guard kill(getppid(), 0) == 0 else { exit(4) }
            exit(7)
        }
    }
}

/// Checks that each attack works before the confinement, so that the test proves something, and fails after it, but for
/// those that the program's work allows. Writes the names of the others to standard error.
private func attack(under confinement: Confinement, allowing allowed: Set<String> = []) -> Never {
    var lines: [String]
    do {
        let attacks = try Attacks().all
        lines = attacks.filter { $0.isCertain && !$0.succeeds() }.map { "does not work at all: \($0.name)" }
        try confinement.apply()
        lines += attacks.filter { !allowed.contains($0.name) && $0.succeeds() }.map {
            "works after the confinement: \($0.name)"
        }
    } catch {
        lines = ["\(error)"]
    }
    let text = Array("faults: \(lines.isEmpty ? "none" : lines.joined(separator: ", "))".utf8)
    _ = write(2, text, text.count)
    exit(0)
}
