// SPDX-License-Identifier: GPL-3.0-or-later
import FoundationEssentials
import Glibc
import Scanners
import TestSupport
import Testing
import Text

@Suite("Bluetooth in sysfs", .timeLimit(.minutes(5))) struct SysfsTests {
    /// Creates a folder with these files and calls `body` with its path.
    private func folder(_ files: [String: String], _ body: (String) -> Void) throws {
        let folder = try TemporaryFolder()
        for (path, content) in files {
            let parent = (path.split(separator: "/").dropLast().map(String.init)).joined(separator: "/")
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(parent)",
                withIntermediateDirectories: true
            )
            try folder.write(path, content.utf8)
        }
        body(folder.path)
    }

    private static func rfkill(_ number: Int, _ type: String, soft: Int, hard: Int) -> [String: String] {
        [
            "rfkill\(number)/type": "\(type)\n", "rfkill\(number)/soft": "\(soft)\n",
            "rfkill\(number)/hard": "\(hard)\n",
        ]
    }

    @Test(
        "a hardware switch of Bluetooth has precedence over a program; switches of other radios are ignored",
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

    @Test("the advice depends on what blocks Bluetooth")
    func advice() {
        #expect(RFKill.software.advice == "rfkill unblock bluetooth")
        #expect(RFKill.hardware.advice != RFKill.software.advice)
        #expect(RFKill.bluetooth(folder: "/nonexistent") == nil)
    }

    @Test(
        "an adapter is found; a connection is not an adapter",
        arguments: [([], false), (["hci0:64/type"], false), (["hci0/type"], true), (["hci7/x", "hci7:1/x"], true)]
    )
    func adapters(files: [String], result: Bool) throws {
        try folder(Dictionary(uniqueKeysWithValues: files.map { ($0, "") })) {
            #expect(HostAdapters.anyExists(folder: $0) == result)
        }
        #expect(!HostAdapters.anyExists(folder: "/nonexistent"))
    }
}
