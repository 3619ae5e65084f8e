// swift-tools-version: 6.3
// SPDX-License-Identifier: GPL-3.0-or-later
import PackageDescription

/// Settings of every Swift target. The build itself checks each `import` against the dependencies that are named here:
/// `make` passes `--explicit-target-dependency-import-check error`.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// A folder of Sources: one floor of the house. docs/architecture.md.
struct Floor {
    let name: String

    func target(
        _ name: String,
        _ dependencies: [Target.Dependency] = [],
        resources: [Resource]? = nil
    ) -> Target {
        .target(
            name: name,
            dependencies: dependencies,
            path: "Sources/\(self.name)/\(name)",
            resources: resources,
            swiftSettings: strict
        )
    }

    // A resident program stays in memory, so it is linked for fewer pages: its relocations have the short form that lld
    // knows, and it exports no symbols, because nothing looks them up.
    func program(_ name: String, _ dependencies: [Target.Dependency], isResident: Bool = false) -> Target {
        let small = ["-use-ld=lld", "-Xlinker", "-zpack-relative-relocs", "-Xlinker", "--no-export-dynamic"]
        return .executableTarget(
            name: name,
            dependencies: dependencies,
            path: "Sources/\(self.name)/\(name)",
            swiftSettings: strict,
            linkerSettings: isResident ? [.unsafeFlags(small)] : []
        )
    }
}

let base = Floor(name: "Base")
let card = Floor(name: "Card")
let readers = Floor(name: "Readers")
let doors = Floor(name: "Doors")
let services = Floor(name: "Services")
let proto = Floor(name: "Protocol")
let features = Floor(name: "Features")
let client = Floor(name: "Client")
let programs = Floor(name: "Programs")

/// C code of our own: shims, and functions that Swift cannot see.
func c(_ name: String, libraries: [String] = []) -> Target {
    .target(name: name, path: "Sources/C/\(name)", linkerSettings: libraries.map { .linkedLibrary($0) })
}

/// A thin module map over a system C library.
func library(_ name: String, _ pkgConfig: String, _ apt: String, in folder: String = "Sources/C") -> Target {
    .systemLibrary(name: name, path: "\(folder)/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// A library that only tests use.
func testLibrary(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: strict)
}

/// A program that only tests use; not installed.
func testProgram(
    _ name: String,
    _ dependencies: [Target.Dependency],
    in folder: String,
    exclude: [String] = []
) -> Target {
    .executableTarget(
        name: name,
        dependencies: dependencies,
        path: "Tests/\(folder)",
        exclude: exclude,
        swiftSettings: strict
    )
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: strict)
}

/// Only with BADGED_FUZZ=1, as Tests/Fuzz/run.sh sets it: the program links libFuzzer.
let fuzzing: [Target] =
    Context.environment["BADGED_FUZZ"] == nil
    ? []
    : [
        .target(name: "CFuzzer", path: "Tests/Fuzz/CFuzzer"),
        testProgram(
            "badged-fuzz",
            [
                "CFuzzer", "Secrets", "Text", "Wire", "ISO7816", "ISODEP", "CNFC", "ReadersNFC", "NFCDevices",
                "Readers", "Crypto", "EID", "CountryAuthorities", "AnchorImport", "HTTP", "Antelope", "EService",
                "MPin", "BN254", "MPinFeature", "Vault", "Credentials", "RemoteIFD", "ReadersVirtual", "VirtualEID",
                "Keycard", "PKOC", "VirtualPKOC", "Aliro", "VirtualAliro", "VirtualKeycard", "HDWallet", "Secp256k1",
                "WalletFeature", "DoorReaders", "ScannerMgmt", "Activation", "BadgedClient", "BadgedSDKWrapper",
                "CLinux", "Concurrency", "Host", "Scanners", "ScannerBlueZ", "DoorOpening",
            ],
            in: "Fuzz/badged-fuzz"
        ),
    ]

let package = Package(
    name: "badged",
    products: [
        .library(
            name: "BadgedClient",
            targets: [
                "BadgedClient", "BadgedSDKWrapper", "BadgedOSTWallet", "BadgedMYKEYWallet", "BadgedMPin",
                "BadgedTapSdk", "BadgedOrigoKeys",
            ]
        )
    ],
    targets: [
        // C
        c("CLinux"),
        c("CBluetooth"),
        c("CNFC", libraries: ["nfc", "dl"]),
        c("CPCSCLite", libraries: ["pcsclite"]),
        c("CSystemd", libraries: ["dl"]),
        c("CTPM", libraries: ["dl"]),
        c("CCurl"),
        library("CUdev", "libudev", "libudev-dev"),
        library("COpenSSL", "libssl", "libssl-dev"),
        library("CExpat", "expat", "libexpat1-dev"),
        library("CZlib", "zlib", "zlib1g-dev"),
        library("CSeccomp", "libseccomp", "libseccomp-dev"),
        library("CSecp256k1", "libsecp256k1", "libsecp256k1-dev"),
        library("CSQLite", "sqlite3", "libsqlite3-dev"),
        library("CWebSockets", "libwebsockets", "libwebsockets-dev"),

        // Base
        base.target("Secrets"),
        base.target("Text", ["Secrets"]),
        base.target("Threads"),
        base.target("Concurrency", ["CLinux", "Threads"]),
        base.target("Host", ["Text", "CLinux"]),
        base.target("Confinement", ["CLinux", "CSeccomp", "Host"]),
        base.target("Crypto", ["Secrets", "COpenSSL"]),
        base.target("Secp256k1", ["Secrets", "Crypto", "CSecp256k1"]),
        base.target(
            "HDWallet",
            ["Secrets", "Text", "Crypto", "Secp256k1"],
            resources: [.embedInCode("english.txt")]
        ),
        base.target("TPM", ["Secrets", "Concurrency", "CTPM"]),
        base.target("Store", ["Secrets", "Crypto", "TPM", "CSQLite"]),
        base.target("BN254", ["Secrets", "Text", "Crypto", "COpenSSL"]),
        base.target("Credentials", ["Text", "Crypto"]),
        base.target("Vault", ["Secrets", "Text", "Crypto", "TPM", "Store", "Credentials"]),

        // Card
        card.target("ISO7816", ["Text"]),
        card.target("ISODEP"),
        card.target("EID", ["Secrets", "ISO7816", "Crypto"]),
        card.target("CountryAuthorities", ["EID", "Crypto", "Text"]),
        card.target("AnchorImport", ["CountryAuthorities", "EID", "Crypto", "Text", "CZlib"]),
        card.target("PKOC", ["Secrets", "Credentials", "ISO7816", "Crypto", "EID"]),
        card.target("Aliro", ["Secrets", "ISO7816", "Crypto"]),
        card.target("Keycard", ["Secrets", "ISO7816", "Crypto", "Secp256k1", "HDWallet"]),

        // Readers
        readers.target("Readers", ["Text", "ISO7816", "Host", "CLinux"]),
        readers.target(
            "ReadersPCSC",
            ["Readers", "ISO7816", "Text", "CPCSCLite", "CLinux", "Threads", "Concurrency", "Host"]
        ),
        readers.target("ReadersNFC", ["Readers", "ISO7816", "Text", "CUdev", "Threads", "Concurrency", "Host"]),
        readers.target(
            "NFCDevices",
            ["ReadersNFC", "Readers", "ISO7816", "ISODEP", "CNFC", "CLinux", "Concurrency", "Host"]
        ),
        readers.target("ReadersVirtual", ["Secrets", "Text", "Readers", "ISO7816", "Crypto", "Concurrency"]),
        readers.target(
            "VirtualKeycard",
            [
                "Secrets", "Text", "ReadersVirtual", "Readers", "ISO7816", "Crypto", "Secp256k1", "HDWallet", "Keycard",
            ]
        ),
        readers.target("VirtualPKOC", ["Text", "ReadersVirtual", "Readers", "ISO7816", "Crypto", "PKOC"]),
        readers.target(
            "VirtualAliro",
            ["Secrets", "Text", "ReadersVirtual", "Readers", "ISO7816", "Crypto", "Aliro", "PKOC"]
        ),
        readers.target(
            "RemoteIFD",
            ["Secrets", "Text", "Crypto", "Threads", "Concurrency", "Store", "COpenSSL", "CLinux"]
        ),
        readers.target(
            "ReadersRemote",
            ["Readers", "RemoteIFD", "ISO7816", "Secrets", "Crypto", "Store", "Threads", "Concurrency", "Host"]
        ),
        readers.target("VirtualEID", ["Secrets", "Text", "ReadersVirtual", "Readers", "ISO7816", "EID", "Crypto"]),

        // Doors
        doors.target("DoorReaders", ["Host", "Text"]),
        doors.target(
            "DoorOpening",
            ["DoorReaders", "Concurrency", "Threads", "Credentials", "Crypto", "Secrets", "PKOC"]
        ),
        doors.target("Scanners", ["DoorReaders", "Concurrency", "Host"]),
        doors.target("ScannerMgmt", ["Scanners", "DoorReaders", "Concurrency", "CBluetooth"]),
        doors.target("ScannerBlueZ", ["Scanners", "DoorReaders", "DoorOpening", "Concurrency", "Threads", "CSystemd"]),

        // Services
        services.target("HTTP", ["Secrets", "Text", "CCurl", "COpenSSL", "Concurrency"]),
        services.target(
            "EService",
            [
                "Text", "ISO7816", "Crypto", "EID", "CountryAuthorities", "HTTP", "CExpat", "COpenSSL", "Concurrency",
            ]
        ),
        services.target("Antelope", ["HTTP", "Text", "Crypto", "Secp256k1"]),
        services.target("MPin", ["Secrets", "Text", "Crypto", "BN254", "HTTP", "Concurrency"]),

        // Protocol
        proto.target("Wire", ["Secrets", "Text"]),
        proto.target("Activation", ["Text", "Wire", "CLinux", "CWebSockets"]),

        proto.target("Server", ["Text", "Threads", "Concurrency", "Wire", "Host", "CLinux"]),

        // Features
        features.target("Cards", ["Secrets", "Text", "Concurrency", "Wire", "Server", "Host", "Readers", "ISO7816"]),
        features.target(
            "EIDFeature",
            [
                "Secrets", "Text", "Concurrency", "Wire", "Server", "Cards", "Readers", "ISO7816", "EID",
                "CountryAuthorities", "EService", "Host",
            ]
        ),
        features.target(
            "WalletFeature",
            [
                "Secrets", "Text", "Concurrency", "Wire", "Server", "Host", "Cards", "Readers", "ISO7816", "Keycard",
                "Crypto", "Secp256k1", "HDWallet", "Store", "HTTP", "Antelope",
            ]
        ),
        features.target(
            "MPinFeature",
            ["Secrets", "Text", "Crypto", "Concurrency", "Wire", "Server", "Host", "Cards", "MPin", "Store"]
        ),
        features.target(
            "CredentialFeature",
            [
                "Secrets", "Text", "Concurrency", "Wire", "Server", "Host", "Cards", "ISO7816", "EID", "Crypto",
                "Credentials", "Store", "PKOC", "Aliro",
            ]
        ),
        features.target(
            "KeyFeature",
            [
                "Secrets", "Text", "Crypto", "Concurrency", "Wire", "Server", "Host", "HTTP", "TPM", "Store", "Vault",
                "Credentials",
            ]
        ),
        features.target(
            "RemoteFeature",
            [
                "Secrets", "Text", "Crypto", "Concurrency", "Wire", "Server", "Host", "Cards", "Readers", "ISO7816",
                "Store", "RemoteIFD", "ReadersRemote", "Threads",
            ]
        ),
        features.target(
            "DoorFeature",
            ["Text", "Concurrency", "Wire", "Server", "Host", "DoorReaders", "DoorOpening", "Scanners", "Vault"]
        ),

        // Client
        client.target("BadgedClient", ["Secrets", "Text", "Threads"]),
        client.target("BadgedSDKWrapper", ["Secrets", "Text", "BadgedClient"]),
        client.target("BadgedOSTWallet", ["Secrets", "Text", "Threads", "BadgedClient"]),
        client.target("BadgedMYKEYWallet", ["Secrets", "Text", "BadgedClient"]),
        client.target("BadgedMPin", ["Secrets", "Text", "BadgedClient"]),
        client.target("BadgedTapSdk", ["Text", "BadgedClient"]),
        client.target("BadgedOrigoKeys", ["Text", "BadgedClient"]),

        // Programs
        programs.program(
            "badged",
            [
                "Concurrency", "Host", "Wire", "Server", "Cards", "EIDFeature", "WalletFeature", "DoorFeature",
                "MPinFeature", "KeyFeature", "CredentialFeature", "RemoteFeature", "PKOC", "VirtualPKOC", "Aliro",
                "VirtualAliro", "Secrets", "Crypto", "MPin", "EID", "CountryAuthorities", "HTTP", "Antelope",
                "EService", "Readers", "Keycard", "Store", "ReadersPCSC", "ReadersRemote", "RemoteIFD", "ReadersNFC",
                "ReadersVirtual", "VirtualEID", "VirtualKeycard", "CLinux", "DoorReaders", "DoorOpening", "TPM",
                "Vault", "Scanners", "ScannerBlueZ", "ScannerMgmt",
            ],
            isResident: true
        ),
        programs.program(
            "badgectl",
            [
                "Secrets", "Text", "BadgedClient", "BadgedMPin", "Host", "DoorReaders", "EID", "CountryAuthorities",
                "AnchorImport", "Crypto", "CCurl",
            ]
        ),
        programs.program("badged-nfc", ["NFCDevices", "ReadersNFC", "Confinement", "Host"]),
        programs.program("badged-bluetooth", ["ScannerMgmt", "Host"]),
        programs.program("badged-activation", ["Activation", "Confinement", "Host", "Wire", "CLinux"]),
        programs.program(
            "badged-virtual-card",
            [
                "Host", "Text", "Readers", "ReadersVirtual", "VirtualEID", "VirtualKeycard", "VirtualPKOC",
                "VirtualAliro", "CLinux",
            ]
        ),

        // What tests share
        .target(name: "CTestSupport", path: "Tests/CTestSupport"),
        .target(name: "CNFCClient", dependencies: ["CNFC"], path: "Tests/CNFCClient"),
        library("COpenPACE", "libeac", "libeac-dev", in: "Tests"),
        testLibrary(
            "TestSupport",
            [
                "CTestSupport", "Secrets", "Text", "Concurrency", "Wire", "ISO7816", "Crypto", "EID", "EService",
                "CountryAuthorities", "Readers", "ReadersVirtual", "VirtualEID", "Server", "Cards", "EIDFeature",
                "DoorFeature", "Host", "CLinux", "Activation", "DoorReaders", "DoorOpening", "Scanners",
            ]
        ),
        testLibrary("NFCTestSupport", ["CLinux", "Concurrency", "Readers", "ReadersVirtual"]),
        testLibrary(
            "KeycardTestSupport",
            [
                "Keycard", "Readers", "ReadersVirtual", "ISO7816", "Crypto", "Secp256k1", "HDWallet", "Secrets", "Text",
            ]
        ),
        testLibrary("DoorWalks", ["DoorReaders", "Host"]),
        // A PKOC reader in software, and the connection to it
        testLibrary(
            "DoorModel",
            ["DoorOpening", "DoorReaders", "Concurrency", "Credentials", "Crypto", "Secrets"]
        ),
        // An eService with its eID-Server
        testLibrary("EIDServer", ["Secrets", "ISO7816", "Crypto", "EID", "Text", "Wire", "COpenSSL"]),
        testProgram("badged-eidserver", ["EIDServer", "EID", "Text", "Wire"], in: "EIDServerProgram"),
        // A node of a chain and the server of a dapp, both fake, over real HTTP
        testLibrary("AntelopeServer", ["EIDServer", "Antelope", "Crypto", "Secp256k1", "Text"]),
        // An issuer of keys for doors: site, backend and revocation
        testLibrary("IssuerDouble", ["EIDServer", "Vault", "Crypto", "Secrets", "Text"]),
        testProgram("badged-issuer", ["IssuerDouble", "Text"], in: "IssuerProgram"),
        // Writes into a vault until it is killed
        testProgram("badged-vault-writer", ["Vault", "TPM", "Store", "Secrets", "Text"], in: "VaultWriter"),
        // An app of the MYKEY SDK
        testProgram("badged-mykey-app", ["BadgedMYKEYWallet"], in: "MYKEYApp"),
        // An NFC board on USB, for tests in a kernel with vhci_hcd
        testProgram(
            "badged-nfc-board",
            ["NFCTestSupport", "ReadersVirtual", "VirtualEID", "VirtualKeycard", "Secrets"],
            in: "NFCBoard"
        ),
        // Measures the daemon, and the program to which its times are compared
        .executableTarget(name: "badged-floor", path: "Tests/BenchmarkFloor"),
        testProgram(
            "badged-bench",
            [
                "CLinux", "CPCSCLite", "CNFCClient", "CTestSupport", "Text", "Wire", "Host", "Readers", "ISO7816",
                "ReadersNFC", "NFCTestSupport", "DoorReaders", "DoorWalks", "Secrets", "Crypto", "Credentials", "TPM",
                "Store",
                "Vault",
            ],
            in: "Benchmarks",
            exclude: ["run.sh", "packages.sh", "baseline.json"]
        ),

        // Tests
        tests("ConcurrencyTests", ["Concurrency", "Threads"]),
        tests("TextTests", ["Text", "Secrets", "TestSupport"]),
        tests("ConfinementTests", ["Confinement", "CLinux", "Host", "CTestSupport", "TestSupport"]),
        tests("HostTests", ["Host", "CLinux", "CTestSupport"]),
        tests("CryptoTests", ["Crypto", "Secrets", "COpenSSL", "TestSupport"]),
        tests("HDWalletTests", ["HDWallet", "Secp256k1", "Crypto", "Secrets", "TestSupport"]),
        tests("TPMTests", ["TPM", "Crypto", "Secrets", "TestSupport"]),
        tests("StoreTests", ["Store", "TPM", "Secrets", "CSQLite", "TestSupport"]),
        tests(
            "VaultTests",
            [
                "Vault", "badged-vault-writer", "Credentials", "TPM", "Store", "Crypto", "Secrets", "Text",
                "TestSupport",
            ]
        ),
        tests(
            "KeycardTests",
            [
                "Keycard", "VirtualKeycard", "ReadersVirtual", "Readers", "HDWallet", "Secp256k1", "Crypto", "ISO7816",
                "Secrets", "Text", "TestSupport", "KeycardTestSupport",
            ]
        ),
        tests("PKOCTests", ["PKOC", "Credentials", "EID", "ISO7816", "Crypto", "Secrets", "Text", "TestSupport"]),
        tests(
            "AliroTests",
            [
                "Aliro", "VirtualAliro", "ReadersVirtual", "Readers", "ISO7816", "Crypto", "Secrets", "Text",
                "TestSupport",
            ]
        ),
        tests("RemoteIFDTests", ["RemoteIFD", "Crypto", "Concurrency", "Secrets", "Text"]),
        tests(
            "RemoteFeatureTests",
            [
                "RemoteFeature", "ReadersRemote", "RemoteIFD", "Cards", "Readers", "ReadersVirtual", "VirtualEID",
                "Store", "Concurrency", "Secrets", "Text", "ISO7816", "Host", "TestSupport",
            ]
        ),
        tests("ISO7816Tests", ["ISO7816", "TestSupport"]),
        tests("ISODEPTests", ["ISODEP", "NFCTestSupport", "TestSupport"]),
        tests("EIDTests", ["EID", "Crypto", "ISO7816", "Secrets", "TestSupport"]),
        tests("OpenPACETests", ["EID", "Crypto", "ISO7816", "Secrets", "COpenPACE", "TestSupport"]),
        tests("ReadersPCSCTests", ["ReadersPCSC", "Readers", "ISO7816", "Host", "TestSupport"]),
        tests(
            "ReadersNFCTests",
            [
                "ReadersNFC", "Readers", "ReadersVirtual", "Concurrency", "ISO7816", "Host", "Keycard",
                "VirtualKeycard", "Secp256k1", "Text", "KeycardTestSupport", "NFCTestSupport", "TestSupport",
            ]
        ),
        tests("NFCDevicesTests", ["NFCDevices", "ReadersNFC", "Readers", "CNFC", "Host", "NFCTestSupport"]),
        tests(
            "ReadersVirtualTests",
            [
                "ReadersVirtual", "VirtualEID", "Readers", "EID", "Crypto", "ISO7816", "Secrets", "Text", "Threads",
                "TestSupport",
            ]
        ),
        tests("DoorReadersTests", ["DoorReaders", "DoorWalks", "Host", "TestSupport"]),
        tests(
            "DoorOpeningTests",
            [
                "DoorOpening", "DoorModel", "DoorReaders", "Concurrency", "Credentials", "PKOC", "Crypto", "Secrets",
                "Text",
            ]
        ),
        tests("ScannersTests", ["Scanners", "DoorReaders", "Concurrency", "TestSupport"]),
        tests("ScannerMgmtTests", ["ScannerMgmt", "Scanners", "DoorReaders", "Concurrency", "CLinux", "TestSupport"]),
        tests(
            "ScannerBlueZTests",
            [
                "ScannerBlueZ", "Scanners", "DoorReaders", "DoorOpening", "DoorModel", "Concurrency", "Crypto",
                "CLinux", "TestSupport",
            ]
        ),
        tests(
            "EServiceTests",
            [
                "EService", "HTTP", "EID", "EIDServer", "Crypto", "ISO7816", "COpenSSL", "Concurrency", "TestSupport",
                "CountryAuthorities",
            ]
        ),
        tests("AntelopeTests", ["Antelope", "AntelopeServer", "HTTP", "Text", "Crypto", "Secp256k1", "TestSupport"]),
        tests("AnchorImportTests", ["AnchorImport", "CountryAuthorities", "EID", "CZlib", "TestSupport"]),
        tests("EIDServerTests", ["EIDServer", "EID", "Text", "Crypto", "ISO7816", "VirtualEID", "TestSupport"]),
        tests(
            "LibraryCardTests",
            [
                "Cards", "Concurrency", "ISO7816", "Readers", "ReadersVirtual", "VirtualEID", "Secrets", "Server",
                "TestSupport", "Text", "Wire",
            ]
        ),
        tests(
            "WalletFeatureTests",
            [
                "Antelope", "AntelopeServer", "HTTP", "KeycardTestSupport", "WalletFeature", "Cards", "Concurrency",
                "Crypto", "HDWallet", "Host", "ISO7816", "Keycard", "Readers", "ReadersVirtual", "Secp256k1", "Secrets",
                "Server", "Store", "Text", "TestSupport", "VirtualKeycard", "ReadersNFC", "NFCTestSupport",
            ]
        ),
        tests(
            "CredentialFeatureTests",
            [
                "CredentialFeature", "PKOC", "VirtualPKOC", "Aliro", "VirtualAliro", "Credentials", "Cards",
                "Concurrency", "Crypto", "EID", "Host", "Keycard", "Readers", "ReadersVirtual", "ReadersNFC",
                "NFCTestSupport", "Secrets", "Server", "Store", "Text", "TestSupport", "VirtualKeycard",
                "WalletFeature", "BadgedClient", "badgectl",
            ]
        ),
        tests("MPinTests", ["MPin", "BN254", "HTTP", "Crypto", "Secrets", "Text"]),
        tests(
            "MPinFeatureTests",
            [
                "MPinFeature", "MPin", "BadgedClient", "BadgedMPin", "badgectl", "HTTP", "Store", "Server", "Host",
                "Cards", "WalletFeature", "Keycard", "KeycardTestSupport", "VirtualKeycard", "Readers",
                "ReadersVirtual", "HDWallet", "Secp256k1", "Concurrency", "Secrets", "Text", "TestSupport",
            ]
        ),
        tests(
            "KeyFeatureTests",
            [
                "KeyFeature", "BadgedTapSdk", "IssuerDouble", "Vault", "HTTP", "TPM", "Store", "Crypto", "Server",
                "Host", "Concurrency", "Text", "TestSupport",
            ]
        ),
        tests(
            "BadgedOrigoKeysTests",
            [
                "BadgedOrigoKeys", "KeyFeature", "DoorFeature", "DoorOpening", "DoorReaders", "DoorModel", "Scanners",
                "IssuerDouble", "Vault", "HTTP", "Host", "Store", "Crypto", "Server", "Concurrency", "Text",
                "TestSupport",
            ]
        ),
        tests("WireTests", ["Wire", "Text", "Secrets"]),
        tests(
            "ServerTests",
            [
                "Secrets", "Text", "Concurrency", "Wire", "Readers", "ISO7816", "EID", "EService", "ReadersVirtual",
                "VirtualEID", "Server", "EIDFeature", "DoorFeature", "Host", "DoorReaders", "Scanners", "DoorOpening",
                "DoorModel", "Crypto", "Vault", "Store", "TestSupport",
            ]
        ),
        tests(
            "WorkflowTests",
            [
                "Secrets", "Text", "Concurrency", "Wire", "Readers", "ISO7816", "EID", "EService", "ReadersVirtual",
                "VirtualEID", "Server", "Cards", "EIDFeature", "Host", "TestSupport", "ReadersNFC", "NFCTestSupport",
            ]
        ),
        tests("ActivationTests", ["Activation", "Concurrency", "Server", "Text", "Wire", "TestSupport"]),
        tests(
            "BadgedClientTests",
            [
                "BadgedClient", "DoorReaders", "Concurrency", "Scanners", "Secrets", "Server", "Host", "TestSupport",
                "Text",
            ]
        ),
        tests("BadgedSDKWrapperTests", ["BadgedSDKWrapper", "badged", "Text", "TestSupport"]),
        tests(
            "BadgedWalletTests",
            [
                "BadgedOSTWallet", "BadgedMYKEYWallet", "BadgedClient", "badged", "badged-mykey-app", "AntelopeServer",
                "Secrets", "Text", "TestSupport",
            ]
        ),
        tests(
            "BadgectlTests",
            ["badgectl", "badged", "badged-issuer", "BadgedClient", "Text", "Secrets", "TestSupport", "DoorReaders"]
        ),
        tests(
            "AuthenticationTests",
            [
                "BadgedClient", "BadgedSDKWrapper", "badged", "badgectl", "badged-activation", "Secrets", "EIDServer",
                "CountryAuthorities", "EService", "EID", "Concurrency", "VirtualEID", "Text", "Wire", "TestSupport",
            ]
        ),
        tests(
            "SystemTests",
            [
                "ReadersPCSC", "ReadersNFC", "Readers", "ReadersVirtual", "ISO7816", "CPCSCLite", "CLinux", "Keycard",
                "VirtualKeycard", "Secp256k1", "Secrets", "Text", "KeycardTestSupport", "NFCTestSupport", "TestSupport",
            ]
        ),
    ] + fuzzing,
    swiftLanguageModes: [.v6]
)
