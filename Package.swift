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
            dependencies: ["CFuzzer", "Secrets", "Wire", "CardFile", "ISO7816", "Crypto", "EID", "ReadersVirtual"],
            path: "Tests/Fuzz/badged-fuzz",
            swiftSettings: strict
        ),
    ]

let package = Package(
    name: "badged",
    products: [.library(name: "BadgedClient", targets: ["BadgedClient"])],
    targets: [
        // C
        .target(name: "CLinux"),
        c("CPCSCLite", "libpcsclite", "libpcsclite-dev"),
        c("COpenSSL", "libcrypto", "libssl-dev"),
        c("COpenPACE", "libeac", "libeac-dev"),

        // Pure
        target("Secrets"),
        target("ISO7816", ["Secrets"]),
        target("Wire", ["Secrets"]),

        // The event loop and what the host system gives
        target("Loop", ["CLinux"]),
        target("Host", ["CLinux"]),
        target("Workers", ["CLinux"]),

        // The card and the seam
        target("Crypto", ["Secrets", "COpenSSL"]),
        target("EID", ["Secrets", "ISO7816", "Crypto", "Workers"]),
        target("Readers", ["Secrets", "ISO7816", "CLinux"]),
        target("CardFile", ["Secrets", "Wire", "Readers", "ISO7816"]),

        // Drivers
        target("ReadersPCSC", ["Readers", "ISO7816", "CPCSCLite", "CLinux"]),
        target("ReadersVirtual", ["Secrets", "Readers", "ISO7816", "EID", "Crypto", "Workers"]),

        // Dialogues and the socket
        target("Workflows", ["Secrets", "Loop", "Readers", "ISO7816", "EID"]),
        target("Server", ["Secrets", "Loop", "Wire", "Readers", "CardFile", "Workflows", "CLinux"]),
        target("BadgedClient", ["Secrets", "Wire"]),

        // Programs
        tool("badged", ["Loop", "Host", "Wire", "Server", "Workflows", "Readers", "ReadersPCSC", "ReadersVirtual"]),
        tool("badgectl", ["Secrets", "Wire", "BadgedClient", "Host"]),
        tool("badged-virtual-card", ["CardFile", "Host", "Wire", "Readers", "ReadersVirtual", "CLinux"]),

        // Measures the daemon; not installed
        .executableTarget(
            name: "badged-bench",
            dependencies: ["CLinux", "CPCSCLite", "Wire"],
            path: "Tests/Benchmarks",
            exclude: ["run.sh", "packages.sh", "baseline.json"],
            swiftSettings: strict
        ),

        // Tests
        .target(name: "CTestSupport", path: "Tests/CTestSupport"),
        .target(
            name: "TestSupport",
            dependencies: [
                "CTestSupport", "Secrets", "Loop", "Wire", "Readers", "ReadersVirtual", "Server", "Workflows", "CLinux",
            ],
            path: "Tests/TestSupport",
            swiftSettings: strict
        ),
        tests("ReadersPCSCTests", ["ReadersPCSC", "Readers", "ISO7816"]),
        tests("SystemTests", ["ReadersPCSC", "Readers", "ISO7816", "CPCSCLite", "CLinux"]),
        tests("LayeringTests", []),
        tests("HostTests", ["Host"]),
        tests(
            "ServerTests",
            [
                "Secrets", "Loop", "Wire", "Readers", "ISO7816", "ReadersVirtual", "Workflows", "Server", "CLinux",
                "TestSupport",
            ]
        ),
        tests(
            "WorkflowTests",
            [
                "Secrets", "Loop", "Wire", "Readers", "ISO7816", "EID", "CardFile", "ReadersVirtual", "Workflows",
                "Server", "TestSupport",
            ]
        ),
        tests("ISO7816Tests", ["ISO7816", "TestSupport"]),
        tests("CryptoTests", ["Crypto", "Secrets", "COpenSSL", "TestSupport"]),
        tests("WireTests", ["Wire", "Secrets", "TestSupport"]),
        tests("CardFileTests", ["CardFile", "Readers", "ISO7816", "Secrets", "Wire"]),
        tests("BadgedClientTests", ["BadgedClient", "Wire", "Secrets", "TestSupport"]),
        tests("BadgectlTests", ["badgectl", "badged", "BadgedClient", "Wire", "Secrets", "TestSupport"]),
        tests("EIDVirtualTests", ["EID", "Crypto", "ISO7816", "Secrets", "TestSupport"]),
        tests(
            "ReadersVirtualTests",
            ["ReadersVirtual", "Readers", "EID", "Crypto", "ISO7816", "Secrets", "TestSupport"]
        ),
        tests("EIDTests", ["EID", "Crypto", "ISO7816", "Secrets", "TestSupport"]),
        tests("OpenPACETests", ["EID", "Crypto", "ISO7816", "Secrets", "COpenPACE", "TestSupport"]),
    ] + fuzzing,
    swiftLanguageModes: [.v6]
)
