// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Testing

/// What each target may import besides the toolchain's own modules; docs/architecture.md explains why.
private let allowed: [String: Set<String>] = [
    "Secrets": [],
    "ISO7816": ["Secrets"],
    "ISODEP": [],
    "Wire": ["Secrets"],
    "ECard": [],
    "DoorReaders": [],
    "Scanners": ["DoorReaders", "Loop"],
    "ScannerMgmt": ["Scanners", "DoorReaders", "Loop", "CBluetooth"],
    "ScannerBlueZ": ["Scanners", "DoorReaders", "Loop", "CSystemd"],
    "Loop": ["CLinux"],
    "Host": ["CLinux"],
    "Workers": ["CLinux"],
    "Crypto": ["Secrets", "COpenSSL"],
    "EID": ["Secrets", "ISO7816", "Crypto", "Workers"],
    "Readers": ["Secrets", "ISO7816", "CLinux"],
    "CardFile": ["Secrets", "Wire", "Readers", "ISO7816"],
    "ReadersPCSC": ["Readers", "ISO7816", "CPCSCLite", "CLinux", "Workers"],
    "ReadersNFC": ["Readers", "ISO7816", "ISODEP", "CNFC", "CNFCSystem", "CUdev", "CLinux", "Workers"],
    "ReadersVirtual": ["Secrets", "Readers", "ISO7816", "EID", "Crypto", "Workers"],
    "EService": ["ECard", "ISO7816", "Crypto", "EID", "CCurl", "CExpat", "COpenSSLTLS", "CLinux"],
    "Workflows": ["Secrets", "Loop", "Readers", "ISO7816", "EID", "ECard", "EService"],
    "Server": [
        "Secrets", "Loop", "Wire", "Readers", "CardFile", "ECard", "Workflows", "Workers", "CLinux", "DoorReaders",
        "Scanners",
    ],
    "BadgedClient": ["Secrets", "Wire"],
    "BadgedSDKWrapper": ["Secrets", "Wire", "BadgedClient"],
    "badged": [
        "Loop", "Workers", "Host", "Wire", "Server", "Workflows", "EID", "EService", "Readers", "ReadersPCSC",
        "ReadersNFC", "ReadersVirtual", "CLinux", "DoorReaders", "Scanners", "ScannerBlueZ", "ScannerMgmt",
    ],
    "badgectl": ["Secrets", "Wire", "BadgedClient", "Host", "DoorReaders"],
    "Activation": ["Wire", "CLinux", "CWebSockets"],
    "badged-activation": ["Activation", "Host", "Wire", "CLinux"],
    "badged-virtual-card": ["CardFile", "Host", "Wire", "Readers", "ReadersVirtual", "CLinux"],
]
private let toolchain: Set<String> = ["Dispatch", "FoundationEssentials", "Glibc", "Synchronization"]
private let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

@Test("targets import only what the architecture allows", arguments: allowed.keys.sorted())
func layering(target: String) throws {
    let folder = root.appending(path: "Sources/\(target)")
    let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
    for case let file as URL in files where file.pathExtension == "swift" {
        // Most lines do without the regular expression, which is slow.
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        where line.range(of: "import") != nil {
            guard let match = line.wholeMatch(of: /\s*(?:@\w+(?:\(.*\))?\s+)*(?:\w+\s+)?import\s+(?:\w+\s+)?(\w+).*/)
            else { continue }
            let module = String(match.1)
            #expect(
                toolchain.contains(module) || allowed[target, default: []].contains(module),
                "\(target) imports \(module) in \(file.lastPathComponent)"
            )
        }
    }
}

@Test("every Swift target in Sources is in the table")
func tableIsComplete() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: root.appending(path: "Sources").path)
    #expect(Set(folders.filter { !$0.hasPrefix("C") || $0 == "Crypto" || $0 == "CardFile" }) == Set(allowed.keys))
}

@Test("badgectl leaves the protocol to BadgedClient: names of commands and messages, and JSON, are in send alone")
func protocolOfBadgectl() throws {
    let folder = root.appending(path: "Sources/badgectl")
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where !name.hasPrefix("Send") {
        let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
        #expect(
            text.firstMatch(of: /"[A-Z]{2,}(_[A-Z]+)+"|"(AUTH|INFO|READER|SCAN|STATUS|HEALTH)"|\bJSON[.(]/) == nil,
            "\(name)"
        )
        // Of Wire it needs the lines of standard input.
        #expect(name == "LineSource.swift" || !text.contains("import Wire"), "\(name)")
    }
}
