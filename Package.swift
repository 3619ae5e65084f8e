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

/// Settings of a target that the tests keep busy, so that debug builds optimise it, too.
let optimised = strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// A folder of Sources: one floor of the house. docs/architecture.md.
struct Floor {
    let name: String

    func target(
        _ name: String,
        _ dependencies: [Target.Dependency] = [],
        resources: [Resource]? = nil,
        isOptimised: Bool = false
    ) -> Target {
        .target(
            name: name,
            dependencies: dependencies,
            path: "Sources/\(self.name)/\(name)",
            exclude: self.name == "Features" ? ["README.md"] : [],
            resources: resources,
            swiftSettings: isOptimised ? optimised : strict
        )
    }

    // A program that stays in memory, or starts for each dialogue, is linked for fewer pages: its relocations have the
    // short form that lld knows, and it exports no symbols, because nothing looks them up.
    func program(_ name: String, _ dependencies: [Target.Dependency], isSmall: Bool = false, linking: [String] = [])
        -> Target
    {
        let small = ["-use-ld=lld", "-Xlinker", "-zpack-relative-relocs", "-Xlinker", "--no-export-dynamic"]
        return .executableTarget(
            name: name,
            dependencies: dependencies,
            path: "Sources/\(self.name)/\(name)",
            swiftSettings: strict,
            linkerSettings: [.unsafeFlags((isSmall ? small : []) + linking)]
        )
    }
}

let base = Floor(name: "Base")
let keys = Floor(name: "Keys")
let card = Floor(name: "Card")
let services = Floor(name: "Services")
let readers = Floor(name: "Readers")
let virtual = Floor(name: "Virtual")
let doors = Floor(name: "Doors")
let proto = Floor(name: "Protocol")
let features = Floor(name: "Features")
let client = Floor(name: "Client")
let programs = Floor(name: "Programs")

/// C code of our own: shims, and functions that Swift cannot see.
func c(_ name: String, libraries: [String] = []) -> Target {
    .target(
        name: name,
        path: "Sources/C/\(name)",
        // The C library then checks the sizes of buffers; it needs an optimised build.
        cSettings: [.define("_FORTIFY_SOURCE", to: "3", .when(configuration: .release))],
        linkerSettings: libraries.map { .linkedLibrary($0) }
    )
}

/// A thin module map over a system C library.
func library(_ name: String, _ pkgConfig: String, _ apt: String, in folder: String = "Sources/C") -> Target {
    .systemLibrary(name: name, path: "\(folder)/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// A library that only tests use.
func testLibrary(
    _ name: String,
    _ dependencies: [Target.Dependency] = [],
    in folder: String? = nil,
    isOptimised: Bool = false
) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: "Tests/\(folder ?? name)",
        swiftSettings: isOptimised ? optimised : strict
    )
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
        testProgram("badged-fuzz", ["CFuzzer", "FuzzTargets"], in: "Fuzz/badged-fuzz"),
    ]

let package = Package(
    name: "badged",
    products: [
        .library(
            name: "BadgedClient",
            targets: [
                "BadgedClient", "BadgedSDKWrapper", "BadgedOSTWallet", "BadgedMYKEYWallet", "BadgedMPin",
                "BadgedTapSdk",
            ]
        ),
        // A product of its own, because it loads Foundation.
        .library(name: "BadgedOrigoKeys", targets: ["BadgedOrigoKeys"]),
    ],
    targets: [
        // C
        c("CLinux"),
        c("CNFC", libraries: ["nfc", "dl"]),
        c("CPCSCLite", libraries: ["pcsclite"]),
        c("CSystemd", libraries: ["dl"]),
        c("CTPM", libraries: ["dl"]),
        c("CCurl", libraries: ["curl"]),
        // Debian 12 and 13 have different shared libraries of it, and the same programs run on both.
        c("CSecp256k1", libraries: [Context.environment["BADGED_SECP256K1"] ?? ":libsecp256k1.a"]),
        library("CUdev", "libudev", "libudev-dev"),
        library("COpenSSL", "libcrypto", "libssl-dev"),
        library("CTLS", "libssl", "libssl-dev"),
        library("CExpat", "expat", "libexpat1-dev"),
        library("CZlib", "zlib", "zlib1g-dev"),
        library("CSeccomp", "libseccomp", "libseccomp-dev"),
        library("CSQLite", "sqlite3", "libsqlite3-dev"),
        library("CQREncode", "libqrencode", "libqrencode-dev"),
        library("CMicroHTTPD", "libmicrohttpd", "libmicrohttpd-dev"),

        // Base
        base.target("Secrets"),
        base.target("Text", ["Secrets"]),
        base.target("Threads"),
        base.target("Host", ["Secrets", "Text", "Threads", "CLinux"]),
        base.target("Concurrency", ["CLinux", "Threads", "Host"]),
        base.target("Confinement", ["CLinux", "CSeccomp", "Host"]),
        base.target("Crypto", ["Secrets", "Text", "COpenSSL"]),
        base.target("WebSocket", ["Crypto", "Text"]),
        base.target("TPM", ["Secrets", "Text", "Concurrency", "CTPM"]),
        base.target("Store", ["Secrets", "Text", "Crypto", "TPM", "Host", "CSQLite"]),

        // Keys
        keys.target("Secp256k1", ["Secrets", "Crypto", "CSecp256k1"]),
        keys.target(
            "HDWallet",
            ["Secrets", "Text", "Crypto", "Secp256k1"],
            resources: [.embedInCode("english.txt")]
        ),
        keys.target("Credentials", ["Secrets", "Text", "Crypto"]),
        keys.target("Vault", ["Secrets", "Text", "Crypto", "TPM", "Store", "Credentials"]),

        // Card
        card.target("ISO7816", ["Text"]),
        card.target("ChipAccess", ["Secrets", "Text", "ISO7816", "Crypto"]),
        card.target("Document", ["Secrets", "Text", "ISO7816", "Crypto", "ChipAccess"]),
        card.target("EID", ["Secrets", "Text", "ISO7816", "Crypto", "ChipAccess"]),
        card.target("CountryAuthorities", ["EID", "Document", "Crypto", "Text", "Host"]),
        card.target("AnchorImport", ["CountryAuthorities", "EID", "Document", "Crypto", "Text", "Host", "CZlib"]),
        card.target("PKOC", ["Secrets", "Credentials", "ISO7816", "Crypto", "EID"]),
        card.target("Aliro", ["Secrets", "ISO7816", "Crypto"]),
        card.target("Tags", ["ISO7816", "Text"]),
        card.target("Keycard", ["Secrets", "Text", "ISO7816", "Crypto", "Secp256k1", "HDWallet"]),

        // Services
        services.target("HTTP", ["Secrets", "Text", "Crypto", "Concurrency", "Threads", "Host", "CLinux"]),
        services.target(
            "Transfers",
            [
                "RemoteIFD", "HTTP", "Secrets", "Text", "Crypto", "WebSocket", "Concurrency", "Host", "CLinux", "CCurl",
                "COpenSSL", "CTLS", "CExpat",
            ]
        ),
        services.target(
            "EService",
            ["Text", "ISO7816", "Crypto", "ChipAccess", "EID", "CountryAuthorities", "HTTP", "Concurrency"]
        ),
        services.target("Antelope", ["HTTP", "Text", "Crypto", "Secp256k1"]),
        // Without optimisation its arithmetic takes a seventh of the processor time of its tests.
        services.target(
            "MPin",
            ["Secrets", "Text", "Crypto", "HTTP", "COpenSSL"],
            isOptimised: true
        ),
        services.target(
            "RemoteIFD",
            ["Secrets", "Text", "Crypto", "Threads", "Concurrency", "COpenSSL", "Host", "HTTP"]
        ),
        services.target(
            "MQTT",
            [
                "CLinux", "COpenSSL", "CTLS", "Concurrency", "Credentials", "Crypto", "Host", "Secrets", "Store",
                "Text",
            ]
        ),

        // Readers
        readers.target("Readers", ["Text", "ISO7816", "Host"]),
        readers.target(
            "ReadersPCSC",
            ["Readers", "ISO7816", "Text", "CPCSCLite", "CLinux", "Threads", "Concurrency", "Host"]
        ),
        readers.target("ReadersNFC", ["Readers", "ISO7816", "Text", "CUdev", "Threads", "Concurrency", "Host"]),
        readers.target(
            "NFCDevices",
            ["ReadersNFC", "Readers", "ISO7816", "Text", "Tags", "CNFC", "CLinux", "Concurrency", "Host"]
        ),
        readers.target(
            "ReadersRemote",
            ["Readers", "RemoteIFD", "ISO7816", "Secrets", "Text", "Crypto", "Store", "Threads", "Concurrency", "Host"]
        ),

        // Virtual
        virtual.target("ReadersVirtual", ["Secrets", "Text", "Readers", "ISO7816", "Crypto", "Concurrency"]),
        virtual.target(
            "VirtualEID",
            ["Secrets", "Text", "ReadersVirtual", "Readers", "ISO7816", "ChipAccess", "EID", "Crypto"]
        ),
        virtual.target(
            "VirtualDocument",
            ["Secrets", "Text", "ReadersVirtual", "ISO7816", "ChipAccess", "Document", "Crypto"]
        ),
        virtual.target(
            "VirtualKeycard",
            ["Secrets", "Text", "ReadersVirtual", "ISO7816", "Crypto", "Secp256k1", "HDWallet", "Keycard"]
        ),
        virtual.target(
            "VirtualTaps",
            ["Secrets", "Text", "ReadersVirtual", "ISO7816", "Crypto", "Tags", "PKOC", "Aliro"]
        ),

        // Doors
        doors.target("DoorReaders", ["Host", "Text"]),
        doors.target(
            "DoorOpening",
            ["Text", "DoorReaders", "Concurrency", "Threads", "Credentials", "Crypto", "Secrets", "PKOC"]
        ),
        doors.target("Scanners", ["Text", "DoorReaders", "Concurrency", "Host"]),
        doors.target("ScannerMgmt", ["Scanners", "DoorReaders", "Concurrency", "Host", "CLinux"]),
        doors.target(
            "ScannerBlueZ",
            ["Text", "Scanners", "DoorReaders", "DoorOpening", "Concurrency", "Threads", "Host", "CSystemd"]
        ),

        // Protocol
        proto.target("Wire", ["Secrets", "Text"]),
        proto.target("Activation", ["Text", "Wire", "WebSocket", "Concurrency", "Host", "CLinux", "CMicroHTTPD"]),

        proto.target("Server", ["Text", "Threads", "Concurrency", "Wire", "Host", "CLinux"]),

        // Features
        // SwiftPM builds a target again only for its own dependencies. The configurations of EService and MPin have a
        // `Network` in them, so their users depend on HTTP as well.
        features.target(
            "Cards",
            ["Secrets", "Text", "Threads", "Concurrency", "Wire", "Server", "Host", "Readers", "ISO7816"]
        ),
        features.target(
            "EIDFeature",
            [
                "Secrets", "Text", "Concurrency", "Wire", "Server", "Cards", "Readers", "ISO7816", "ChipAccess", "EID",
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
                "Credentials", "Store", "PKOC", "Aliro", "Tags", "Readers", "Threads", "CLinux",
            ]
        ),
        features.target(
            "DocumentFeature",
            [
                "Secrets", "Text", "Crypto", "Concurrency", "Wire", "Server", "Host", "Cards", "Readers", "ISO7816",
                "ChipAccess", "Document", "CountryAuthorities",
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
                "MPinFeature", "KeyFeature", "CredentialFeature", "DocumentFeature", "RemoteFeature", "PKOC",
                "VirtualTaps", "Aliro", "VirtualDocument", "Secrets", "Crypto", "MPin", "EID", "CountryAuthorities",
                "HTTP", "Antelope", "EService", "Readers", "Keycard", "Store", "ReadersPCSC", "ReadersRemote",
                "RemoteIFD", "ReadersNFC", "ReadersVirtual", "VirtualEID", "VirtualKeycard", "CLinux", "DoorReaders",
                "DoorOpening", "TPM", "Vault", "Scanners", "ScannerBlueZ", "ScannerMgmt", "Credentials", "Text",
            ],
            isSmall: true
        ),
        programs.program(
            "badgectl",
            [
                "Secrets", "Text", "BadgedClient", "BadgedMPin", "Host", "DoorReaders", "EID", "CountryAuthorities",
                "Document", "AnchorImport", "Crypto", "HTTP", "CQREncode",
            ]
        ),
        programs.program("badged-nfc", ["NFCDevices", "ReadersNFC", "Confinement", "Host", "Text"]),
        programs.program(
            "badged-network",
            ["Transfers", "RemoteIFD", "Concurrency", "Confinement", "Host"],
            isSmall: true,
            // Tests start it two thousand times: a debug build of it starts a quarter faster.
            linking: ["-static-stdlib"]
        ),
        programs.program(
            "badged-mqtt",
            [
                "BadgedClient", "MQTT", "Concurrency", "Confinement", "Credentials", "Host", "Text",
            ],
            isSmall: true
        ),
        programs.program("badged-bluetooth", ["ScannerMgmt", "Host"]),
        programs.program("badged-activation", ["Activation", "Confinement", "Concurrency", "Host", "Wire", "CLinux"]),
        programs.program(
            "badged-virtual-card",
            [
                "Host", "Text", "Readers", "ReadersVirtual", "VirtualEID", "VirtualKeycard", "VirtualTaps",
                "VirtualDocument", "CLinux",
            ]
        ),

        // What tests share
        .target(name: "CTestSupport", path: "Tests/CTestSupport"),
        .target(name: "CNFCClient", dependencies: ["CNFC"], path: "Tests/CNFCClient"),
        library("COpenPACE", "libeac", "libeac-dev", in: "Tests"),
        testLibrary(
            "TestSupport",
            [
                "CTestSupport", "Secrets", "Text", "Threads", "Concurrency", "Wire", "ISO7816", "Crypto", "ChipAccess",
                "EID", "EService", "CountryAuthorities", "Readers", "ReadersVirtual", "VirtualEID", "Server", "Cards",
                "EIDFeature", "DoorFeature", "Host", "CLinux", "Activation", "DoorReaders", "DoorOpening", "Scanners",
                "Keycard", "Secp256k1", "HDWallet",
            ]
        ),
        testLibrary("NFCTestSupport", ["CLinux", "Concurrency", "Readers", "ReadersVirtual"]),
        // What make fuzz runs under libFuzzer, and a test with the seeds alone
        testLibrary(
            "FuzzTargets",
            [
                "Secrets", "Text", "Wire", "ISO7816", "NFCDevices", "CNFC", "ReadersNFC", "Readers", "Crypto",
                "ChipAccess", "Document", "VirtualDocument", "EID", "CountryAuthorities", "AnchorImport", "HTTP",
                "Transfers", "Antelope", "EService", "MPin", "MPinFeature", "WebSocket", "Vault", "Credentials",
                "RemoteIFD", "ReadersPCSC", "ReadersVirtual", "VirtualEID", "Keycard", "PKOC", "VirtualTaps", "Aliro",
                "Tags",
                "VirtualKeycard", "HDWallet", "Secp256k1", "WalletFeature", "DoorReaders", "ScannerMgmt", "Activation",
                "BadgedClient", "BadgedSDKWrapper", "CLinux", "Concurrency", "Host", "Scanners", "ScannerBlueZ",
                "DoorOpening", "CredentialFeature", "MQTT",
            ],
            in: "Fuzz/FuzzTargets"
        ),
        // A PKOC reader in software with the connection to it, and walks past doors
        testLibrary(
            "DoorTestSupport",
            ["Text", "DoorOpening", "DoorReaders", "Concurrency", "Credentials", "Crypto", "Secrets", "Host"]
        ),
        // An eService with its eID-Server
        testLibrary(
            "EIDServer",
            ["Secrets", "ISO7816", "Crypto", "ChipAccess", "EID", "Text", "Wire", "COpenSSL", "CTLS", "CExpat"],
            isOptimised: true
        ),
        testProgram("badged-eidserver", ["EIDServer", "Text", "Wire"], in: "EIDServerProgram"),
        // Fake servers over real HTTP: a node of a chain, a dapp, and an issuer of keys for doors
        testLibrary(
            "ServerDoubles",
            [
                "EIDServer", "Vault", "Crypto", "Secrets", "Text", "Antelope", "Secp256k1", "Concurrency", "RemoteIFD",
                "Transfers",
            ]
        ),
        testProgram("badged-issuer", ["ServerDoubles", "Text"], in: "IssuerProgram"),
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
                "ReadersNFC", "NFCTestSupport", "DoorReaders", "DoorTestSupport", "Secrets", "Crypto", "Credentials",
                "TPM", "Store", "Vault", "Document", "MQTT",
            ],
            in: "Benchmarks",
            exclude: ["run.sh", "packages.sh", "baseline.json"]
        ),

        // Tests
        tests(
            "BaseTests",
            [
                "Concurrency", "Threads", "Text", "Secrets", "TestSupport", "Confinement", "CLinux", "Host",
                "CTestSupport", "Crypto", "COpenSSL", "TPM", "Store", "CSQLite",
            ]
        ),
        tests(
            "KeysTests",
            [
                "HDWallet", "Secp256k1", "Crypto", "Secrets", "TestSupport", "Vault", "badged-vault-writer",
                "Credentials", "TPM", "Store", "Text", "CSQLite",
            ]
        ),
        tests(
            "CardTests",
            [
                "ISO7816", "TestSupport", "VirtualDocument", "Document", "ChipAccess", "EID", "Crypto", "Tags",
                "VirtualTaps",
                "Secrets", "COpenPACE", "COpenSSL", "PKOC", "Credentials", "Text", "Aliro", "ReadersVirtual", "Readers",
                "Keycard", "VirtualKeycard", "HDWallet", "Secp256k1",
                "AnchorImport", "CountryAuthorities", "CZlib",
            ]
        ),
        tests(
            "ServicesTests",
            [
                "EService", "HTTP", "Transfers", "EID", "EIDServer", "Crypto", "ISO7816", "COpenSSL", "Concurrency",
                "TestSupport", "CountryAuthorities", "Antelope", "ServerDoubles", "Text", "Secp256k1", "MPin",
                "Secrets", "RemoteIFD", "WebSocket", "VirtualEID", "Host", "CLinux", "badged-mqtt", "MQTT",
                "BadgedClient", "Credentials",
            ]
        ),
        tests(
            "ReadersTests",
            [
                "ReadersPCSC", "Readers", "ISO7816", "Host", "TestSupport", "ReadersNFC", "ReadersVirtual",
                "Concurrency", "Keycard", "VirtualKeycard", "Secp256k1", "Text", "NFCTestSupport", "NFCDevices", "CNFC",
                "Tags", "VirtualEID", "ChipAccess", "EID", "Crypto", "Secrets", "Threads",
            ]
        ),
        tests(
            "DoorsTests",
            [
                "Scanners", "DoorReaders", "Concurrency", "TestSupport", "ScannerMgmt", "CLinux", "ScannerBlueZ",
                "DoorOpening", "DoorTestSupport", "Crypto", "Host", "Credentials", "PKOC", "Secrets", "Text",
            ]
        ),
        tests(
            "ProtocolTests",
            [
                "Wire", "Text", "Secrets", "Activation", "Concurrency", "Server", "TestSupport", "Readers", "ISO7816",
                "EID", "EService", "ReadersVirtual", "VirtualEID", "EIDFeature", "DoorFeature", "Host", "DoorReaders",
                "Scanners", "DoorOpening", "DoorTestSupport", "Crypto", "Vault", "Store", "Cards", "WalletFeature",
                "MPin", "MPinFeature", "KeyFeature", "PKOC", "CredentialFeature", "DocumentFeature",
                "CountryAuthorities", "RemoteFeature", "EIDServer",
            ]
        ),
        tests(
            "ClientTests",
            [
                "BadgedClient", "DoorReaders", "Concurrency", "Scanners", "Secrets", "Server", "Host", "TestSupport",
                "Text", "BadgedSDKWrapper", "badged", "BadgedOSTWallet", "BadgedMYKEYWallet", "badged-mykey-app",
                "ServerDoubles", "BadgedOrigoKeys", "KeyFeature", "DoorFeature", "DoorOpening", "DoorTestSupport",
                "Vault", "HTTP", "Store", "Crypto",
            ]
        ),
        tests("FuzzTests", ["FuzzTargets", "TestSupport"]),
        tests(
            "FeaturesTests",
            [
                "RemoteFeature", "ReadersRemote", "RemoteIFD", "Transfers", "HTTP", "Cards", "Readers",
                "ReadersVirtual", "VirtualEID", "CredentialFeature", "PKOC", "EID", "VirtualTaps", "Server", "Store",
                "Concurrency", "Secrets", "Text", "ISO7816", "Host", "TestSupport", "Antelope", "ServerDoubles",
                "WalletFeature", "Crypto", "HDWallet", "Keycard", "Secp256k1", "VirtualKeycard", "ReadersNFC",
                "NFCTestSupport", "Aliro", "Credentials", "BadgedClient", "badgectl", "MPinFeature", "MPin",
                "BadgedMPin", "KeyFeature", "BadgedTapSdk", "Vault", "TPM", "EIDFeature", "DocumentFeature",
                "VirtualDocument",
            ]
        ),
        tests(
            "WorkflowTests",
            [
                "Secrets", "Text", "Concurrency", "Wire", "Readers", "ISO7816", "Document", "DocumentFeature",
                "CountryAuthorities", "VirtualDocument", "ChipAccess", "EID", "EService", "ReadersVirtual",
                "VirtualEID", "Server", "Cards", "EIDFeature", "Host", "TestSupport", "ReadersNFC", "NFCTestSupport",
            ]
        ),
        tests(
            "BadgectlTests",
            [
                "badgectl", "badged", "badged-issuer", "BadgedClient", "EID", "HTTP", "Text", "Secrets", "TestSupport",
                "DoorReaders",
            ]
        ),
        tests(
            "AuthenticationTests",
            [
                "BadgedClient", "BadgedSDKWrapper", "badged", "badgectl", "badged-activation", "Secrets", "EIDServer",
                "CountryAuthorities", "EService", "EID", "Concurrency", "VirtualEID", "Text", "Threads", "HTTP", "Host",
                "Wire", "TestSupport",
            ]
        ),
        tests(
            "SystemTests",
            [
                "ReadersPCSC", "ReadersNFC", "Readers", "ReadersVirtual", "ISO7816", "CPCSCLite", "CLinux", "Keycard",
                "VirtualKeycard", "Secp256k1", "Secrets", "Text", "TestSupport", "NFCTestSupport",
            ]
        ),
    ] + fuzzing,
    swiftLanguageModes: [.v6]
)
