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
        // What the targets of a program could use but this program does not is not loaded.
        let needed = ["-Xlinker", "--as-needed"]
        let small = ["-use-ld=lld", "-Xlinker", "-zpack-relative-relocs", "-Xlinker", "--no-export-dynamic"]
        return .executableTarget(
            name: name,
            dependencies: dependencies,
            path: "Sources/\(self.name)/\(name)",
            swiftSettings: strict,
            linkerSettings: [.unsafeFlags(needed + (isSmall ? small : []) + linking)]
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
        base.target("Text"),
        base.target("Host", ["Text", "CLinux", "CSeccomp"]),
        base.target("Concurrency", ["CLinux", "Text", "Host"]),
        base.target("Crypto", ["Text", "COpenSSL"]),
        base.target("Store", ["Text", "Crypto", "Concurrency", "Host", "CSQLite", "CTPM"]),

        // Keys
        keys.target(
            "HDWallet",
            ["Text", "Crypto", "CSecp256k1"],
            resources: [.embedInCode("english.txt")]
        ),
        keys.target("Vault", ["Text", "Crypto", "Store"]),

        // Card
        card.target("ISO7816", ["Text"]),
        card.target("ChipAccess", ["Text", "ISO7816", "Crypto"]),
        card.target("Document", ["Text", "ISO7816", "Crypto", "ChipAccess"]),
        card.target("MobileDocument", ["Text", "ISO7816", "Crypto", "Document", "CZlib"]),
        card.target("EID", ["Text", "ISO7816", "Crypto", "ChipAccess"]),
        card.target("Taps", ["Text", "Vault", "ISO7816", "Crypto", "EID"]),
        card.target("Keycard", ["Text", "ISO7816", "Crypto", "HDWallet"]),

        // Services
        services.target("HTTP", ["Text", "Crypto", "Concurrency", "Host", "CLinux"]),
        services.target(
            "Transfers",
            [
                "HTTP", "Text", "Concurrency", "Host", "CLinux", "CCurl", "COpenSSL", "CTLS", "CExpat",
            ]
        ),
        services.target(
            "CountryAuthorities",
            ["EID", "Document", "MobileDocument", "Crypto", "Text", "Host", "CZlib"]
        ),
        services.target(
            "EService",
            ["Text", "ISO7816", "Crypto", "ChipAccess", "EID", "CountryAuthorities", "HTTP", "Concurrency"]
        ),
        services.target("Antelope", ["HTTP", "Text", "Crypto", "HDWallet", "Concurrency"]),
        // Without optimisation its arithmetic takes a seventh of the processor time of its tests.
        services.target(
            "MPin",
            ["Text", "Crypto", "HTTP", "COpenSSL"],
            isOptimised: true
        ),
        services.target(
            "MQTT",
            [
                "CLinux", "COpenSSL", "CTLS", "Concurrency", "Vault", "Crypto", "Host", "Text", "Store",
            ]
        ),
        services.target("OSDP", ["Crypto", "Host", "Text"]),

        // Readers
        readers.target("Readers", ["Text", "ISO7816", "Host"]),
        readers.target(
            "ReadersPCSC",
            ["Readers", "ISO7816", "Text", "CPCSCLite", "CLinux", "Concurrency", "Host"]
        ),
        readers.target("Drivers", ["Readers", "ISO7816", "Text", "Concurrency", "Host"]),
        readers.target("ReadersNFC", ["Drivers", "Text", "CUdev", "Concurrency", "Host"]),
        readers.target(
            "NFCDevices",
            ["Drivers", "ReadersNFC", "Readers", "ISO7816", "Text", "Taps", "CNFC", "CLinux", "Concurrency", "Host"]
        ),
        readers.target(
            "ReadersRemote",
            ["Drivers", "Readers", "Text", "Crypto", "COpenSSL", "Store", "Concurrency", "Host"]
        ),
        readers.target(
            "RemoteDevices",
            [
                "Drivers", "ReadersRemote", "Readers", "HTTP", "ISO7816", "Text", "Crypto", "Concurrency", "Host",
                "CLinux", "COpenSSL", "CTLS",
            ]
        ),

        // Virtual
        virtual.target("ReadersVirtual", ["Text", "Readers", "ISO7816", "Crypto", "Concurrency"]),
        virtual.target(
            "VirtualEID",
            ["Text", "ReadersVirtual", "Readers", "ISO7816", "ChipAccess", "EID", "Crypto"]
        ),
        virtual.target(
            "VirtualDocument",
            ["Text", "ReadersVirtual", "ISO7816", "ChipAccess", "Document", "MobileDocument", "Crypto"]
        ),
        virtual.target(
            "VirtualKeycard",
            ["Text", "ReadersVirtual", "ISO7816", "Crypto", "HDWallet", "Keycard"]
        ),
        virtual.target(
            "VirtualTaps",
            ["Text", "ReadersVirtual", "ISO7816", "Crypto", "Taps"]
        ),

        // Doors
        doors.target("DoorReaders", ["Host", "Text", "Crypto"]),
        doors.target("Bluetooth", ["Text", "DoorReaders", "Concurrency", "CSystemd"]),
        doors.target(
            "DoorOpening",
            ["Text", "DoorReaders", "Bluetooth", "Concurrency", "Vault", "Crypto", "Taps"]
        ),
        doors.target("Scanners", ["Text", "DoorReaders", "DoorOpening", "Bluetooth", "Concurrency", "Host"]),
        doors.target("ScannerMgmt", ["Text", "Scanners", "DoorReaders", "Concurrency", "Host", "CLinux"]),

        // Protocol
        proto.target("Activation", ["Text", "Server", "HTTP", "Concurrency", "Host", "CLinux", "CMicroHTTPD"]),

        proto.target("Server", ["Text", "Concurrency", "Host", "CLinux"]),

        // Features
        // SwiftPM builds a target again only for its own dependencies. The configurations of EService and MPin have a
        // `Network` in them, so their users depend on HTTP as well.
        features.target(
            "Cards",
            ["Text", "Concurrency", "Server", "Host", "Readers", "ISO7816", "Crypto", "HDWallet"]
        ),
        features.target(
            "EIDFeature",
            [
                "Text", "Concurrency", "Server", "Cards", "Readers", "ISO7816", "ChipAccess", "EID",
                "CountryAuthorities", "EService", "Host",
            ]
        ),
        features.target(
            "WalletFeature",
            [
                "Text", "Concurrency", "Server", "Host", "Cards", "Readers", "ISO7816", "Keycard", "Crypto", "HDWallet",
                "Store", "HTTP", "Antelope",
            ]
        ),
        features.target(
            "MPinFeature",
            ["Text", "Crypto", "Concurrency", "Server", "Host", "Cards", "MPin", "Store"]
        ),
        features.target(
            "CredentialFeature",
            [
                "Text", "Concurrency", "Server", "Host", "Cards", "ISO7816", "EID", "Crypto", "Vault", "Store", "Taps",
                "Readers", "CLinux",
            ]
        ),
        features.target(
            "DocumentFeature",
            [
                "Text", "Crypto", "Concurrency", "Server", "Host", "Cards", "Readers", "ISO7816", "ChipAccess",
                "Document", "CountryAuthorities",
            ]
        ),
        features.target(
            "MdocFeature",
            [
                "Text", "Crypto", "Concurrency", "Server", "Host", "Cards", "Readers", "ISO7816", "MobileDocument",
                "Document", "CountryAuthorities", "Bluetooth", "DoorReaders", "Scanners", "HTTP",
            ]
        ),
        features.target(
            "KeyFeature",
            [
                "Text", "Crypto", "Concurrency", "Server", "Host", "HTTP", "Store", "Vault",
            ]
        ),
        features.target(
            "RemoteFeature",
            [
                "Text", "Crypto", "Concurrency", "Server", "Host", "Cards", "Readers", "ISO7816", "Store", "Drivers",
                "ReadersRemote",
            ]
        ),
        features.target(
            "DoorFeature",
            ["Text", "Concurrency", "Server", "Host", "Store", "DoorReaders", "DoorOpening", "Scanners", "Vault"]
        ),

        // Client
        client.target("BadgedClient", ["Text"]),
        client.target("BadgedSDKWrapper", ["Text", "BadgedClient"]),
        client.target("BadgedOSTWallet", ["Text", "BadgedClient"]),
        client.target("BadgedMYKEYWallet", ["Text", "BadgedClient"]),
        client.target("BadgedMPin", ["Text", "BadgedClient"]),
        client.target("BadgedOrigoKeys", ["Text", "BadgedClient"]),

        // Programs
        programs.program(
            "badged",
            [
                "Concurrency", "Host", "Server", "Cards", "EIDFeature", "WalletFeature", "DoorFeature", "MPinFeature",
                "KeyFeature", "CredentialFeature", "DocumentFeature", "RemoteFeature", "Taps", "VirtualTaps",
                "VirtualDocument", "Text", "Crypto", "MPin", "EID", "CountryAuthorities", "HTTP", "Antelope",
                "EService", "Readers", "Keycard", "Store", "ReadersPCSC", "ReadersRemote", "Drivers", "ReadersNFC",
                "MdocFeature", "Document", "MobileDocument",
                "ReadersVirtual", "VirtualEID", "VirtualKeycard", "CLinux", "DoorReaders", "DoorOpening", "Vault",
                "Bluetooth", "Scanners", "ScannerMgmt",
            ],
            isSmall: true
        ),
        programs.program(
            "badgectl",
            [
                "Text", "BadgedClient", "BadgedMPin", "Host", "DoorReaders", "EID", "CountryAuthorities", "Document",
                "Crypto", "HTTP", "OSDP", "CQREncode", "MobileDocument", "Taps", "ISO7816",
            ]
        ),
        programs.program("badged-nfc", ["Drivers", "NFCDevices", "Readers", "Host", "Text"]),
        programs.program(
            "badged-network",
            ["Transfers", "Host"],
            isSmall: true,
            // Tests start it two thousand times: a debug build of it starts a quarter faster.
            linking: ["-static-stdlib"]
        ),
        programs.program(
            "badged-remote",
            ["Drivers", "RemoteDevices", "Concurrency", "Host"],
            isSmall: true
        ),
        programs.program(
            "badged-mqtt",
            [
                "BadgedClient", "MQTT", "Concurrency", "Host", "Vault", "Text",
            ],
            isSmall: true
        ),
        programs.program(
            "badged-osdp",
            ["BadgedClient", "OSDP", "Concurrency", "Host", "Text", "Crypto", "CLinux"],
            isSmall: true
        ),
        programs.program("badged-bluetooth", ["ScannerMgmt", "Host"]),
        programs.program("badged-activation", ["Activation", "Host", "Concurrency", "Server", "CLinux"]),
        programs.program(
            "badged-virtual-card",
            [
                "Host", "Text", "Readers", "ISO7816", "ReadersVirtual", "VirtualEID", "VirtualKeycard", "VirtualTaps",
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
                "CTestSupport", "Text", "Concurrency", "Server", "ISO7816", "Crypto", "ChipAccess", "EID", "EService",
                "CountryAuthorities", "Readers", "ReadersVirtual", "VirtualEID", "Cards", "EIDFeature", "DoorFeature",
                "Host", "CLinux", "Activation", "DoorReaders", "DoorOpening", "Scanners", "Keycard", "HDWallet",
                "Store",
            ]
        ),
        testLibrary("NFCTestSupport", ["CLinux", "Concurrency", "Readers", "ReadersVirtual"]),
        // What make fuzz runs under libFuzzer, and a test with the seeds alone
        testLibrary(
            "FuzzTargets",
            [
                "Text", "Server", "ISO7816", "NFCDevices", "CNFC", "Drivers", "Readers", "Crypto", "ChipAccess",
                "Document", "VirtualDocument", "EID", "CountryAuthorities", "HTTP", "Transfers", "Antelope", "EService",
                "MPin", "MPinFeature", "Vault", "ReadersRemote", "RemoteDevices", "ReadersPCSC", "ReadersVirtual",
                "VirtualEID", "Keycard", "MobileDocument", "MdocFeature",
                "Taps", "VirtualTaps", "VirtualKeycard", "HDWallet", "WalletFeature", "DoorReaders", "ScannerMgmt",
                "Activation", "BadgedClient", "BadgedSDKWrapper", "CLinux", "Concurrency", "Host", "Scanners",
                "DoorOpening", "CredentialFeature", "MQTT", "OSDP", "Cards",
            ],
            in: "Fuzz/FuzzTargets"
        ),
        // A PKOC reader in software with the connection to it, and walks past doors
        testLibrary(
            "DoorTestSupport",
            [
                "Text", "Bluetooth", "DoorOpening", "DoorReaders", "Concurrency", "Vault", "Crypto", "Host", "CLinux",
                "TestSupport",
            ]
        ),
        // An eService with its eID-Server
        testLibrary(
            "EIDServer",
            ["Text", "ISO7816", "Crypto", "ChipAccess", "EID", "Server", "COpenSSL", "CTLS", "CExpat"],
            isOptimised: true
        ),
        testProgram("badged-eidserver", ["EIDServer", "Text", "Server"], in: "EIDServerProgram"),
        // Fake servers over real HTTP: a node of a chain, a dapp, and an issuer of keys for doors
        testLibrary(
            "ServerDoubles",
            [
                "EIDServer", "Vault", "Crypto", "Text", "Antelope", "HDWallet",
            ]
        ),
        // What tests start apart: an issuer, a writer of a vault that is killed, an app of the MYKEY SDK
        testProgram(
            "badged-test-program",
            ["ServerDoubles", "BadgedMYKEYWallet", "Vault", "Store", "Text"],
            in: "TestProgram"
        ),
        // An NFC board on USB, for tests in a kernel with vhci_hcd
        testProgram(
            "badged-nfc-board",
            ["NFCTestSupport", "ReadersVirtual", "VirtualEID", "VirtualKeycard", "Text"],
            in: "NFCBoard"
        ),
        // Measures the daemon, and the program to which its times are compared
        .executableTarget(name: "badged-floor", path: "Tests/BenchmarkFloor"),
        testProgram(
            "badged-bench",
            [
                "CLinux", "CPCSCLite", "CNFCClient", "CTestSupport", "Text", "Server", "Host", "Readers", "ISO7816",
                "Drivers", "ReadersNFC", "NFCTestSupport", "DoorReaders", "DoorTestSupport", "Crypto", "Vault", "Store",
                "Document", "MQTT", "OSDP", "MobileDocument",
            ],
            in: "Benchmarks",
            exclude: ["run.sh", "packages.sh", "baseline.json"]
        ),

        // Tests
        tests(
            "BaseTests",
            [
                "Concurrency", "Text", "TestSupport", "Host", "CLinux", "CTestSupport", "Crypto", "COpenSSL", "Store",
                "CSQLite", "HDWallet", "Vault", "badged-test-program",
            ]
        ),
        tests(
            "CardTests",
            [
                "ISO7816", "TestSupport", "VirtualDocument", "Document", "ChipAccess", "EID", "Crypto", "Taps",
                "VirtualTaps", "Text", "COpenPACE", "COpenSSL", "Vault", "ReadersVirtual", "Readers", "Keycard",
                "VirtualKeycard", "HDWallet", "CountryAuthorities", "CZlib", "MobileDocument",
            ]
        ),
        tests(
            "ServicesTests",
            [
                "EService", "HTTP", "Transfers", "EID", "EIDServer", "Crypto", "ISO7816", "COpenSSL", "Concurrency",
                "TestSupport", "CountryAuthorities", "Antelope", "ServerDoubles", "Text", "HDWallet", "MPin",
                "VirtualEID", "Host", "CLinux", "badged-mqtt", "MQTT", "BadgedClient", "Vault", "badged-osdp",
                "OSDP", "CTLS",
            ]
        ),
        tests(
            "ReadersTests",
            [
                "ReadersPCSC", "Readers", "ISO7816", "Host", "TestSupport", "Drivers", "ReadersNFC", "ReadersVirtual",
                "Concurrency", "Keycard", "VirtualKeycard", "HDWallet", "Text", "NFCTestSupport", "NFCDevices", "CNFC",
                "Taps", "VirtualEID", "ChipAccess", "EID", "Crypto", "ReadersRemote", "RemoteDevices", "HTTP", "Store",
            ]
        ),
        tests(
            "DoorsTests",
            [
                "Scanners", "DoorReaders", "Concurrency", "TestSupport", "ScannerMgmt", "CLinux",
                "Bluetooth", "DoorOpening", "DoorTestSupport", "Crypto", "Host", "Vault", "Taps", "Text",
            ]
        ),
        tests(
            "ProtocolTests",
            [
                "Server", "Text", "Activation", "Concurrency", "TestSupport", "Readers", "ISO7816", "EID", "EService",
                "ReadersVirtual", "VirtualEID", "EIDFeature", "DoorFeature", "Host", "DoorReaders", "Scanners",
                "DoorOpening", "DoorTestSupport", "Crypto", "Vault", "Store", "Cards", "WalletFeature", "MPin",
                "MPinFeature", "KeyFeature", "Taps", "CredentialFeature", "DocumentFeature", "CountryAuthorities",
                "RemoteFeature", "EIDServer", "MdocFeature", "MobileDocument",
            ]
        ),
        tests(
            "ClientTests",
            [
                "BadgedClient", "DoorReaders", "Concurrency", "Scanners", "Text", "Server", "Host", "TestSupport",
                "BadgedSDKWrapper", "badged", "BadgedOSTWallet", "BadgedMYKEYWallet", "badged-test-program",
                "ServerDoubles", "BadgedOrigoKeys", "KeyFeature", "DoorFeature", "DoorOpening", "DoorTestSupport",
                "Vault", "HTTP", "Store", "Crypto",
            ]
        ),
        tests("FuzzTests", ["FuzzTargets", "TestSupport"]),
        tests(
            "FeaturesTests",
            [
                "RemoteFeature", "ReadersRemote", "RemoteDevices", "HTTP", "Cards", "Readers",
                "ReadersVirtual", "VirtualEID", "CredentialFeature", "Taps", "EID", "VirtualTaps", "Server", "Store",
                "Concurrency", "Text", "ISO7816", "Host", "TestSupport", "Antelope", "ServerDoubles", "WalletFeature",
                "Crypto", "HDWallet", "Keycard", "VirtualKeycard", "Drivers", "ReadersNFC", "NFCTestSupport", "Vault",
                "BadgedClient", "badgectl", "MPinFeature", "MPin", "BadgedMPin", "KeyFeature", "BadgedOrigoKeys",
                "EIDFeature", "DocumentFeature", "VirtualDocument", "OSDP", "MdocFeature", "MobileDocument",
                "Bluetooth", "Document", "DoorReaders", "DoorTestSupport", "CountryAuthorities",
                "EIDServer",
            ]
        ),
        tests(
            "WorkflowTests",
            [
                "Text", "Concurrency", "Server", "Readers", "ISO7816", "Document", "DocumentFeature",
                "CountryAuthorities", "VirtualDocument", "ChipAccess", "EID", "EService", "ReadersVirtual",
                "VirtualEID", "Cards", "EIDFeature", "Host", "TestSupport", "Drivers", "ReadersNFC", "NFCTestSupport",
                "MdocFeature",
            ]
        ),
        tests(
            "BadgectlTests",
            [
                "badgectl", "badged", "badged-test-program", "BadgedClient", "EID", "HTTP", "Text", "TestSupport",
                "DoorReaders", "Document",
            ]
        ),
        tests(
            "AuthenticationTests",
            [
                "BadgedClient", "BadgedSDKWrapper", "badged", "badgectl", "badged-activation", "Text", "EIDServer",
                "CountryAuthorities", "EService", "EID", "Concurrency", "VirtualEID", "HTTP", "Host", "Server",
                "TestSupport",
            ]
        ),
        tests(
            "SystemTests",
            [
                "ReadersPCSC", "Drivers", "ReadersNFC", "Readers", "ReadersVirtual", "ISO7816", "CPCSCLite", "CLinux",
                "Keycard",
                "VirtualKeycard", "HDWallet", "Text", "TestSupport", "NFCTestSupport",
            ]
        ),
    ] + fuzzing,
    swiftLanguageModes: [.v6]
)
