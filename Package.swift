// swift-tools-version: 6.3
// SPDX-License-Identifier: GPL-3.0-or-later
import PackageDescription

/// Settings of every Swift target.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// A thin module map over a system C library.
func c(_ name: String, _ pkgConfig: String, _ apt: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([apt])])
}

func target(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tool(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

/// Only with BADGED_FUZZ=1, as Tests/Fuzz/run.sh sets it: the program links libFuzzer.
let fuzzing: [Target] =
    Context.environment["BADGED_FUZZ"] == nil
    ? []
    : [
        .target(name: "CFuzzer", path: "Tests/Fuzz/CFuzzer"),
        .executableTarget(
            name: "badged-fuzz",
            dependencies: [
                "CFuzzer", "Secrets", "Wire", "CardFile", "ISO7816", "ISODEP", "CNFC", "ReadersNFC", "Crypto", "EID",
                "ECard", "EService",
                "ReadersVirtual", "DoorReaders", "ScannerMgmt", "Activation", "BadgedClient", "BadgedSDKWrapper",
                "CLinux", "Loop", "Scanners", "ScannerBlueZ",
            ],
            path: "Tests/Fuzz/badged-fuzz",
            swiftSettings: strict
        ),
    ]

let package = Package(
    name: "badged",
    products: [.library(name: "BadgedClient", targets: ["BadgedClient", "BadgedSDKWrapper"])],
    targets: [
        // C
        .target(name: "CLinux"),
        .target(name: "CBluetooth"),
        .target(name: "CNFCSystem", linkerSettings: [.linkedLibrary("dl")]),
        .target(name: "CSystemd", linkerSettings: [.linkedLibrary("dl")]),
        c("CPCSCLite", "libpcsclite", "libpcsclite-dev"),
        c("CNFC", "libnfc", "libnfc-dev"),
        c("CUdev", "libudev", "libudev-dev"),
        c("COpenSSL", "libcrypto", "libssl-dev"),
        c("COpenPACE", "libeac", "libeac-dev"),
        c("COpenSSLTLS", "libssl", "libssl-dev"),
        c("CExpat", "expat", "libexpat1-dev"),
        .target(name: "CCurl"),
        c("CWebSockets", "libwebsockets", "libwebsockets-dev"),

        // Pure
        target("Secrets"),
        target("ISO7816", ["Secrets"]),
        target("ISODEP"),
        target("Wire", ["Secrets"]),
        target("ECard"),
        target("DoorReaders"),

        // The event loop and what the host system gives
        target("Loop", ["CLinux"]),
        target("Host", ["CLinux"]),
        target("Workers", ["CLinux"]),
        target("Scanners", ["DoorReaders", "Loop"]),

        // The card and the seam
        target("Crypto", ["Secrets", "COpenSSL"]),
        target("EID", ["Secrets", "ISO7816", "Crypto", "Workers"]),
        target("Readers", ["Secrets", "ISO7816", "CLinux"]),
        target("CardFile", ["Secrets", "Wire", "Readers", "ISO7816"]),

        // Drivers
        target("ReadersPCSC", ["Readers", "ISO7816", "CPCSCLite", "CLinux", "Workers"]),
        target("ReadersNFC", ["Readers", "ISO7816", "ISODEP", "CNFC", "CNFCSystem", "CUdev", "CLinux", "Workers"]),
        target("ReadersVirtual", ["Secrets", "Readers", "ISO7816", "EID", "Crypto", "Workers"]),

        // The web side of an online authentication
        target("EService", ["ECard", "ISO7816", "Crypto", "EID", "CCurl", "CExpat", "COpenSSLTLS", "CLinux"]),

        target("ScannerMgmt", ["Scanners", "DoorReaders", "Loop", "CBluetooth"]),
        target("ScannerBlueZ", ["Scanners", "DoorReaders", "Loop", "CSystemd"]),

        // Dialogues and the socket
        target("Workflows", ["Secrets", "Loop", "Readers", "ISO7816", "EID", "ECard", "EService"]),
        target(
            "Server",
            [
                "Secrets", "Loop", "Wire", "Readers", "CardFile", "ECard", "Workflows", "CLinux", "DoorReaders",
                "Scanners", "Workers",
            ]
        ),
        target("BadgedClient", ["Secrets", "Wire"]),
        target("BadgedSDKWrapper", ["Secrets", "Wire", "BadgedClient"]),

        // The door for browsers, a process of its own
        target("Activation", ["Wire", "CLinux", "CWebSockets"]),

        // Programs
        tool(
            "badged",
            [
                "Loop", "Workers", "Host", "Wire", "Server", "Workflows", "EID", "EService", "Readers", "ReadersPCSC",
                "ReadersNFC", "ReadersVirtual", "CLinux", "DoorReaders", "Scanners", "ScannerBlueZ", "ScannerMgmt",
            ]
        ),
        tool("badgectl", ["Secrets", "Wire", "BadgedClient", "Host", "DoorReaders"]),
        tool("badged-activation", ["Activation", "Host", "Wire", "CLinux"]),
        tool("badged-virtual-card", ["CardFile", "Host", "Wire", "Readers", "ReadersVirtual", "CLinux"]),

        // Measures the daemon; not installed
        .executableTarget(
            name: "badged-bench",
            dependencies: [
                "CLinux", "CPCSCLite", "CNFCClient", "CTestSupport", "Wire", "Readers", "ISO7816", "ReadersNFC",
                "NFCTestSupport", "DoorReaders", "DoorWalks",
            ],
            path: "Tests/Benchmarks",
            exclude: ["run.sh", "packages.sh", "baseline.json"],
            swiftSettings: strict
        ),

        // An NFC board on USB, for tests in a kernel with vhci_hcd; not installed
        .executableTarget(
            name: "badged-nfc-board",
            dependencies: ["NFCTestSupport", "ReadersVirtual", "Secrets"],
            path: "Tests/NFCBoard",
            swiftSettings: strict
        ),

        // An eService with its eID-Server, for tests; not installed
        .systemLibrary(
            name: "COpenSSLServer",
            path: "Tests/COpenSSLServer",
            providers: [.apt(["libssl-dev"])]
        ),
        .target(
            name: "EIDServer",
            dependencies: ["Secrets", "ISO7816", "Crypto", "EID", "Wire", "COpenSSLServer"],
            path: "Tests/EIDServer",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "badged-eidserver",
            dependencies: ["EIDServer", "EID", "Wire"],
            path: "Tests/EIDServerProgram",
            swiftSettings: strict
        ),

        // Tests
        .target(name: "CTestSupport", path: "Tests/CTestSupport"),
        .target(
            name: "TestSupport",
            dependencies: [
                "CTestSupport", "Secrets", "Loop", "Wire", "ISO7816", "Crypto", "EID", "ECard", "EService", "Readers",
                "ReadersVirtual", "Server", "Workflows", "CLinux", "Activation", "DoorReaders", "Scanners",
            ],
            path: "Tests/TestSupport",
            swiftSettings: strict
        ),
        .target(name: "CNFCClient", dependencies: ["CNFC"], path: "Tests/CNFCClient"),
        .target(
            name: "NFCTestSupport",
            dependencies: ["CLinux", "Readers", "ReadersVirtual"],
            path: "Tests/NFCTestSupport",
            swiftSettings: strict
        ),
        tests(
            "ReadersNFCTests",
            ["ReadersNFC", "Readers", "ISO7816", "ISODEP", "CNFC", "CLinux", "NFCTestSupport", "TestSupport"]
        ),
        tests("ISODEPTests", ["ISODEP", "NFCTestSupport", "TestSupport"]),
        tests("ReadersPCSCTests", ["ReadersPCSC", "Readers", "ISO7816", "Workers"]),
        tests(
            "SystemTests",
            [
                "ReadersPCSC", "ReadersNFC", "Readers", "ISO7816", "CPCSCLite", "CLinux", "NFCTestSupport",
                "TestSupport",
            ]
        ),
        tests("LayeringTests", []),
        tests("HostTests", ["Host"]),
        tests(
            "ServerTests",
            [
                "Secrets", "Loop", "Wire", "Readers", "ISO7816", "EID", "ECard", "EService", "ReadersVirtual",
                "Workflows",
                "Server", "CLinux", "DoorReaders", "Scanners", "TestSupport",
            ]
        ),
        tests(
            "WorkflowTests",
            [
                "Secrets", "Loop", "Wire", "Readers", "ISO7816", "EID", "ECard", "EService", "CardFile",
                "ReadersVirtual",
                "Workflows", "Server", "TestSupport", "ReadersNFC", "NFCTestSupport",
            ]
        ),
        tests(
            "EServiceTests",
            ["EService", "ECard", "EID", "EIDServer", "Crypto", "ISO7816", "Wire", "COpenSSLServer", "TestSupport"]
        ),
        tests("ISO7816Tests", ["ISO7816", "TestSupport"]),
        tests("CryptoTests", ["Crypto", "Secrets", "COpenSSL", "TestSupport"]),
        .target(name: "DoorWalks", dependencies: ["DoorReaders"], path: "Tests/DoorWalks", swiftSettings: strict),
        tests("DoorReadersTests", ["DoorReaders", "DoorWalks", "TestSupport"]),
        tests("ScannerMgmtTests", ["ScannerMgmt", "Scanners", "DoorReaders", "Loop", "CLinux", "TestSupport"]),
        tests("ScannerBlueZTests", ["ScannerBlueZ", "Scanners", "DoorReaders", "Loop", "CLinux", "TestSupport"]),
        tests("ScannersTests", ["Scanners", "DoorReaders", "Loop", "TestSupport"]),
        tests("WireTests", ["Wire", "Secrets", "TestSupport"]),
        tests("CardFileTests", ["CardFile", "Readers", "ISO7816", "Secrets", "Wire"]),
        tests("BadgedSDKWrapperTests", ["BadgedSDKWrapper", "badged", "Wire", "TestSupport"]),
        tests(
            "BadgedClientTests",
            ["BadgedClient", "DoorReaders", "Loop", "Scanners", "Secrets", "Server", "TestSupport", "Wire"]
        ),
        tests(
            "BadgectlTests",
            ["badgectl", "badged", "BadgedClient", "Wire", "Secrets", "TestSupport", "DoorReaders"]
        ),
        tests("EIDVirtualTests", ["EID", "Crypto", "ISO7816", "Secrets", "TestSupport"]),
        tests(
            "ReadersVirtualTests",
            ["ReadersVirtual", "Readers", "EID", "Crypto", "ISO7816", "Secrets", "TestSupport"]
        ),
        tests(
            "AuthenticationTests",
            [
                "BadgedClient", "BadgedSDKWrapper", "badged", "badgectl", "badged-activation", "Secrets", "EIDServer",
                "ECard", "EService", "EID",
                "Loop", "Readers", "ReadersVirtual", "Wire", "Workflows",
                "Server",
                "TestSupport",
            ]
        ),
        tests(
            "ActivationTests",
            ["Activation", "CWebSockets", "CLinux", "Loop", "Server", "Wire", "TestSupport"]
        ),
        tests("EIDServerTests", ["EIDServer", "EID", "Crypto", "ISO7816", "ReadersVirtual", "TestSupport"]),
        tests("EIDTests", ["EID", "Crypto", "ISO7816", "Secrets", "Workers", "TestSupport"]),
        tests("OpenPACETests", ["EID", "Crypto", "ISO7816", "Secrets", "COpenPACE", "TestSupport"]),
    ] + fuzzing,
    swiftLanguageModes: [.v6]
)
