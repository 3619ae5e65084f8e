// SPDX-License-Identifier: GPL-3.0-or-later
import FoundationEssentials
import Glibc
import Scanners
import Testing

@Suite("What sysfs shows of the host's Bluetooth") struct SysfsTests {
    /// A folder with these files; `body` gets its path.
    private func folder(_ files: [String: String], _ body: (String) -> Void) throws {
        let root = "/tmp/badged-sysfs-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: root) }
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        for (path, content) in files {
            let parent = (path.split(separator: "/").dropLast().map(String.init)).joined(separator: "/")
            try FileManager.default.createDirectory(atPath: "\(root)/\(parent)", withIntermediateDirectories: true)
            try Data(content.utf8).write(to: URL(filePath: "\(root)/\(path)"))
        }
        body(root)
    }

    private static func rfkill(_ number: Int, _ type: String, soft: Int, hard: Int) -> [String: String] {
        [
            "rfkill\(number)/type": "\(type)\n", "rfkill\(number)/soft": "\(soft)\n",
            "rfkill\(number)/hard": "\(hard)\n",
        ]
    }

    @Test(
        "Bluetooth is blocked by a program, or by a switch, which counts more; what blocks others does not count",
        arguments: [
            ([:], nil), (rfkill(0, "bluetooth", soft: 0, hard: 0), nil),
            (rfkill(0, "wlan", soft: 1, hard: 1), nil), (rfkill(0, "bluetooth", soft: 1, hard: 0), .software),
            (rfkill(0, "bluetooth", soft: 1, hard: 1), .hardware),
            (
                rfkill(0, "bluetooth", soft: 1, hard: 0).merging(rfkill(1, "bluetooth", soft: 0, hard: 1)) { $1 },
                .hardware
            ),
            (["rfkill0/type": "bluetooth"], nil), (["rfkill0/soft": "1"], nil),
        ] as [([String: String], RFKill?)]
    )
    func blocked(files: [String: String], result: RFKill?) throws {
        try folder(files) { #expect(RFKill.bluetooth(folder: $0) == result) }
    }

    @Test("what to do about it differs")
    func advice() {
        #expect(RFKill.software.advice == "rfkill unblock bluetooth")
        #expect(RFKill.hardware.advice != RFKill.software.advice)
        #expect(RFKill.bluetooth(folder: "/nonexistent") == nil)
    }

    @Test(
        "an adapter is there; a connection of one is none",
        arguments: [([], false), (["hci0:64/type"], false), (["hci0/type"], true), (["hci7/x", "hci7:1/x"], true)]
    )
    func adapters(files: [String], result: Bool) throws {
        try folder(Dictionary(uniqueKeysWithValues: files.map { ($0, "") })) {
            #expect(HostAdapters.anyExists(folder: $0) == result)
        }
        #expect(!HostAdapters.anyExists(folder: "/nonexistent"))
    }
}
