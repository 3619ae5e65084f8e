// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Host
import Readers
import TestSupport
import Testing

@testable import ReadersPCSC

@Suite("PC/SC health checks", .timeLimit(.minutes(5)))
struct HealthTests {
    @Test(
        "each fault gives one failed check with advice",
        arguments: [
            (PCSCFault.noSocket, "pcscd", "systemctl enable --now pcscd.socket"),
            (.refused, "pcscd", "systemctl restart pcscd.socket pcscd"),
            (.versionMismatch, "pcscd", "same release"),
            (.hungUp, "pcscd", "journalctl -u pcscd"),
            (.noResources, "pcscd", "inotify"),
            (.other(.noMemory), "pcscd", "0x80100006"),
            (.denied, "pcscdAccess", "org.debian.pcsc-lite.access_pcsc"),
            (.silent, "pcscd", "systemctl restart pcscd"),
            (.full(connections: 200), "pcscd", "200 connections are open"),
        ]
    )
    func fault(fault: PCSCFault, name: String, advice: String) throws {
        let checks = PCSCHealth(fault: fault).checks(path: "/run/pcscd/pcscd.comm", user: 1234)
        let failed = checks.filter { !$0.ok }
        #expect(failed.map(\.name) == [name])
        let text = try #require(failed.first?.advice)
        #expect(text.contains(advice))
        #expect(fault != .denied || text.contains("user id 1234"))
        #expect(checks.filter(\.ok).allSatisfy { $0.advice == nil })
    }

    @Test("root is never told to write a rule for polkit, which refuses nothing to root")
    func root() {
        let faults: [PCSCFault] = [
            .noSocket, .refused, .denied, .versionMismatch, .hungUp, .noResources, .silent, .full(connections: 200),
            .other(.noMemory),
        ]
        for fault in faults {
            let checks = PCSCHealth(fault: fault).checks(path: "/run/pcscd/pcscd.comm", user: 0)
            #expect(checks.filter { !$0.ok }.map(\.name) == ["pcscd"], "\(fault)")
            #expect(!checks.contains { $0.advice?.contains("polkit") == true }, "\(fault)")
        }
    }

    @Test("a pcscd that hangs up is full if it has as many connections as it takes", arguments: [0, 199, 200, 300])
    func places(count: Int) {
        let line = "0000000000000000: 00000003 00000000 00000000 0001 03 12345 /run/pcscd/pcscd.comm\n"
        let others = """
            Num       RefCount Protocol Flags    Type St Inode Path
            0000000000000000: 00000002 00000000 00010000 0001 01 12344 /run/pcscd/pcscd.comm
            0000000000000000: 00000003 00000000 00000000 0001 03 12346 /run/pcscd/pcscd.comm.old
            0000000000000000: 00000003 00000000 00000000 0001 03 12347

            """
        let table = Array((others + String(repeating: line, count: count)).utf8)
        let found = PCSCSocket.connections(in: table, path: "/run/pcscd/pcscd.comm")
        #expect(found == count)
        for fault in [PCSCFault.denied, .hungUp] {
            #expect(fault.with(connections: found) == (count < 200 ? fault : .full(connections: count)))
        }
        #expect(PCSCFault.refused.with(connections: found) == .refused)
    }

    @Test("without a fault all checks pass")
    func noFault() {
        #expect(
            PCSCHealth().checks(path: "/x") == [HealthCheck("pcscd", ok: true), HealthCheck("pcscdAccess", ok: true)]
        )
    }

    @Test("a pcscd that accepts the connection but refuses cards is an access fault")
    func cards() {
        let checks = PCSCHealth(refusesCards: true).checks(path: "/x")
        #expect(checks.map(\.ok) == [true, false])
        #expect(checks.last?.advice?.contains("access_card") == true)
    }

    // MARK: USB

    private struct Tree {
        let root = FileManager.default.temporaryDirectory.appending(path: "usb-\(UUID())")

        func add(_ device: String, _ files: [String: String]) throws {
            let folder = root.appending(path: device)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for (name, value) in files { try Data((value + "\n").utf8).write(to: folder.appending(path: name)) }
        }
        func remove() { try? FileManager.default.removeItem(at: root) }
    }

    @Test("CCID interfaces are found in the device list of the kernel")
    func connected() throws {
        let tree = Tree()
        defer { tree.remove() }
        try tree.add(
            "1-2",
            ["idVendor": "076b", "idProduct": "5022", "manufacturer": "OMNIKEY", "product": "CardMan 5x21"]
        )
        try tree.add("1-2:1.0", ["bInterfaceClass": "0b"])
        try tree.add("1-2:1.1", ["bInterfaceClass": "03"])
        try tree.add("1-3.4", ["idVendor": "04e6", "idProduct": "5720"])
        try tree.add("1-3.4:1.0", ["bInterfaceClass": "0b"])
        try tree.add("1-5:1.0", ["bInterfaceClass": "0b"])  // the interface of a device that is being removed
        try tree.add("usb1", ["idVendor": "1d6b", "idProduct": "0002"])
        let readers = USBReaders.connected(root: tree.root.path)
        #expect(readers.map(\.identity) == ["076b:5022 (OMNIKEY CardMan 5x21)", "04e6:5720"])
    }

    @Test("a machine without USB has no readers")
    func none() {
        #expect(USBReaders.connected(root: "/nonexistent").isEmpty)
        #expect(USBReaders.check([]) == HealthCheck("drivers", ok: true))
    }

    private func features(_ vendor: UInt16?, _ product: UInt16?) -> ReaderFeatures {
        var features = ReaderFeatures()
        (features.vendor, features.product) = (vendor, product)
        return features
    }

    @Test("a failed check names a reader without a driver")
    func missing() {
        let known = USBReaders.Device(vendor: 0x076B, product: 0x5022, name: "")
        let unknown = USBReaders.Device(vendor: 0x0C4B, product: 0x0501, name: "cyberJack RFID komfort")
        #expect(USBReaders.missing([known, unknown], in: [features(0x076B, 0x5022)]) == [unknown])
        let check = USBReaders.check([unknown])
        #expect(!check.ok)
        #expect(check.advice?.contains("0c4b:0501 (cyberJack RFID komfort)") == true)
    }

    @Test("two readers of the same model need two entries, and spare entries do not cover another model")
    func equal() {
        let reader = USBReaders.Device(vendor: 1, product: 2, name: "")
        #expect(USBReaders.missing([reader, reader], in: [features(1, 2)]) == [reader])
        #expect(USBReaders.missing([reader, reader], in: [features(1, 2), features(1, 2)]).isEmpty)
        let other = USBReaders.Device(vendor: 3, product: 4, name: "")
        #expect(USBReaders.missing([reader, other], in: [features(1, 2), features(1, 2)]) == [other])
    }

    @Test("an entry without a USB identity accounts for any one remaining reader")
    func silentDriver() {
        let reader = USBReaders.Device(vendor: 1, product: 2, name: "")
        #expect(USBReaders.missing([reader], in: [features(nil, nil)]).isEmpty)
        #expect(USBReaders.missing([reader, reader], in: [features(nil, nil)]) == [reader])
    }
}
