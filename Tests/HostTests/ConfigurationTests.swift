// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Testing

@testable import Host

private func read(_ text: String) throws(StartError) -> Configuration {
    try Configuration(bytes: Array(text.utf8), file: "b.conf")
}

private func refusal(_ bytes: [UInt8]) -> StartError? {
    do {
        _ = try Configuration(bytes: bytes, file: "b.conf")
        return nil
    } catch { return error }
}

@Suite("badged.conf", .timeLimit(.minutes(5)))
struct ConfigurationTests {
    private static let allPermissions =
        "readers, cards, wallet, mpin, keys, remote, agent, scan, open, credentials, admin"

    @Test("an empty file and comments change nothing", arguments: ["", "\n\n", "# a = b\n ; [x]\n", "[server]\r\n"])
    func empty(text: String) throws {
        #expect(try read(text) == Configuration())
    }

    @Test("every key is accepted")
    func everyKey() throws {
        let configuration = try read(
            """
            [server]
            socket = /run/x.sock
            max_clients=7
            max_clients_per_user = 6
            max_workflows = 5
            max_workflows_per_user = 4
            prompt_timeout = 30
            [virtual]
            enabled = Yes
            readers = 64
            cvca = /etc/badged/card.cvcert
            [eid]
            trust_anchors = /etc/badged/anchors
            date = 2028-02-29
            proxy = http://proxy.example:3128
            proxy_credentials = /etc/badged/proxy
            [wallet]
            card_authorities = vendor, 02\(String(repeating: "Ab", count: 32))
            cards = 03\(String(repeating: "00", count: 32))
            [mpin]
            trusted_domains = login.example.org, example.net

            [keys]
            issuer = https://keys.example/acme
            issuer_keys = \(String(repeating: "Ab", count: 32)), \(String(repeating: "00", count: 32))
            issuer_ca = /etc/badged/issuer.pem
            [pcsc]
            enabled = off
            [nfc]
            enabled = no
            devices = pn532_uart:/dev/ttyUSB0:9600 ,acr122_usb
            [activation]
            enabled = yes
            port = 4711
            permissions = readers
            root_serves_all = yes
            origins = https://App.example, http://localhost:3000
            [log]
            level = debug
            [credentials]
            site = 36cdb1b2-b9ea-cc47-7e7f-21e5fe1e14c3
            location = 643F2D33306A82CC94FDBC1AF0519454
            issuers = ABCDEFGHIJKLMN12:02\(String(repeating: "ab", count: 32)), ABCDEFGHIJKLMN13:7F4902aabb
            validated = yes
            aliro_key = /etc/badged/aliro.key
            aliro_group = 00112233-4455-6677-8899-aabbccddeeff
            aliro_subgroup = FFEEDDCCBBAA99887766554433221100
            aliro_credentials = 02\(String(repeating: "Ab", count: 32)), 03\(String(repeating: "00", count: 32))
            aliro_fast = no
            [access]
            user:alice = readers, cards, agent
            group:kiosk=readers
            default = none
            """
        )
        #expect(configuration.socketPath == "/run/x.sock")
        var limits = ServerLimits()
        (limits.clients, limits.clientsPerUser, limits.workflows, limits.workflowsPerUser) = (7, 6, 5, 4)
        limits.promptTimeout = .seconds(30)
        #expect(configuration.limits == limits)
        #expect(configuration.isVirtualEnabled && configuration.virtualReaders == 64)
        #expect(configuration.virtualTrustPoint == "/etc/badged/card.cvcert")
        #expect(configuration.trustAnchors == "/etc/badged/anchors")
        #expect(configuration.keys.issuer == "https://keys.example/acme")
        #expect(configuration.keys.fingerprints.map(\.count) == [32, 32])
        #expect(configuration.keys.authorityFile == "/etc/badged/issuer.pem")
        #expect(configuration.proxy == .address("http://proxy.example:3128"))
        #expect(configuration.proxyCredentials == "/etc/badged/proxy")
        #expect(configuration.date == Day(year: 2028, month: 2, day: 29))
        #expect(configuration.cardAuthorities == [nil, [2] + [UInt8](repeating: 0xAB, count: 32)])
        #expect(configuration.trustedDomains == ["login.example.org", "example.net"])
        #expect(configuration.pinnedCards == [[3] + [UInt8](repeating: 0, count: 32)])
        #expect(configuration.isActivationEnabled && configuration.activationPort == 4711)
        #expect(configuration.activationPermissions == .readers && configuration.rootServesAll)
        #expect(configuration.activationOrigins == ["https://app.example", "http://localhost:3000"])
        #expect(!configuration.isPCSCEnabled && !configuration.isNFCEnabled)
        #expect(configuration.nfcDevices == ["pn532_uart:/dev/ttyUSB0:9600", "acr122_usb"])
        #expect(configuration.logLevel == .debug)
        #expect(configuration.credentials.site.first == 0x36 && configuration.credentials.location.last == 0x54)
        #expect(configuration.credentials.issuers.map(\.name) == ["ABCDEFGHIJKLMN12", "ABCDEFGHIJKLMN13"])
        #expect(configuration.credentials.issuers.map(\.key.count) == [33, 5])
        #expect(configuration.credentials.isValidated)
        #expect(configuration.credentials.aliroKey == "/etc/badged/aliro.key")
        #expect(configuration.credentials.aliroGroup?.last == 0xFF)
        #expect(configuration.credentials.aliroSubgroup.first == 0xFF)
        #expect(configuration.credentials.aliroCredentials.map(\.count) == [33, 33])
        #expect(!configuration.credentials.allowsFastAliro)
        #expect(
            configuration.access == [
                AccessRule(.user("alice"), [.readers, .cards, .agent]), AccessRule(.group("kiosk"), .readers),
                AccessRule(.others, []),
            ]
        )
        #expect(configuration.warnings.isEmpty)
    }

    @Test(
        "a wrong value is an error that names the line and the allowed values",
        arguments: [
            ("[server]\nmax_clients=0", "b.conf, line 2: [server] max_clients cannot be '0'", "1 to 100000"),
            ("[server]\nmax_clients=many", "line 2", "1 to 100000"),
            ("[server]\nmax_clients_per_user=0", "line 2", "1 to 100000"),
            ("[server]\nmax_workflows=0", "line 2", "1 to 10000"),
            ("[server]\nmax_workflows_per_user=-1", "line 2", "1 to 10000"),
            ("[server]\nprompt_timeout=9", "line 2: [server] prompt_timeout cannot be '9'", "10 to 86400"),
            ("[server]\nsocket=run", "line 2", "begins with /"),
            ("[server]\nsocket=", "line 2", "begins with /"),
            ("[virtual]\n\nreaders=65", "line 3", "1 to 64"),
            ("[virtual]\nreaders=-1", "line 2", "1 to 64"),
            ("[virtual]\nreaders=99999999999999999999", "line 2", "1 to 64"),
            ("[virtual]\ncvca=card.cvcert", "line 2", "begins with /"),
            ("[eid]\ntrust_anchors=anchors", "line 2", "begins with /"),
            ("[eid]\ntrust_anchors=", "line 2", "begins with /"),
            ("[eid]\nproxy=socks5://a:1", "line 2: [eid] proxy cannot be 'socks5://a:1'", "none, environment"),
            ("[eid]\nproxy=", "line 2", "none, environment, http://HOST:PORT"),
            ("[eid]\nproxy=http://me:secret@a:1", "line 2: [eid] proxy has a name or a password", "proxy_credentials"),
            ("[eid]\nproxy_credentials=file", "line 2", "begins with /"),
            ("[eid]\ndate=today", "line 2: [eid] date cannot be 'today'", "2026-11-21"),
            ("[eid]\ndate=2027-02-29", "line 2", "2026-11-21"),
            ("[eid]\ndate=1999-12-31", "line 2", "2026-11-21"),
            ("[eid]\ndate=26-1-1", "line 2", "2026-11-21"),
            (
                "[wallet]\ncard_authorities=vendors", "line 2",
                "none, or a comma-separated list of vendor and compressed keys"
            ),
            ("[wallet]\ncard_authorities=vendor,", "line 2", "66 hexadecimal digits"),
            ("[wallet]\ncards=vendor", "line 2", "a comma-separated list of compressed keys"),
            ("[wallet]\nnode=eos.example.org", "line 2", "https://HOST"),
            ("[wallet]\nchain_id=aca376", "line 2", "64 hexadecimal digits"),
            ("[wallet]\nnode_ca=ca.pem", "line 2", "a path that begins with /"),
            ("[keys]\nissuer=acme", "line 2", "a folder, https://HOST/PATH"),
            ("[keys]\nissuer_keys=00", "line 2", "64 hexadecimal digits"),
            ("[keys]\nissuer_ca=ca.pem", "line 2", "a path that begins with /"),
            ("[wallet]\nhttp_callbacks=loopback", "line 2", "yes, no"),
            ("[wallet]\ncards=04\(String(repeating: "00", count: 32))", "line 2", "66 hexadecimal digits"),
            ("[credentials]\nsite=0123", "line 2", "a UUID, or 32 hexadecimal digits"),
            ("[credentials]\nissuers=SHORT:02", "line 2", "a comma-separated list of NAME:KEY"),
            ("[credentials]\nissuers=ABCDEFGHIJKLMNOP:04ab", "line 2", "a comma-separated list of NAME:KEY"),
            ("[credentials]\naliro_key=key", "line 2", "begins with /"),
            ("[credentials]\naliro_group=01", "line 2", "a UUID, or 32 hexadecimal digits"),
            ("[credentials]\naliro_subgroup=", "line 2", "a UUID, or 32 hexadecimal digits"),
            ("[credentials]\naliro_credentials=02,", "line 2", "a comma-separated list of compressed keys"),
            ("[credentials]\naliro_fast=maybe", "line 2", "yes, no"),
            ("[credentials]\nvalidated=perhaps", "line 2: [credentials] validated cannot be 'perhaps'", "yes, no"),
            ("[pcsc]\nenabled=maybe", "line 2: [pcsc] enabled cannot be 'maybe'", "yes, no"),
            ("[nfc]\nenabled=2", "line 2: [nfc] enabled cannot be '2'", "yes, no"),
            ("[nfc]\ndevices=a,,b", "line 2", "a list such as"),
            ("[nfc]\ndevices=pn532_uart:/dev/tty USB", "line 2", "a list such as"),
            ("[activation]\nport=0", "line 2: [activation] port cannot be '0'", "a number from 1 to 65535"),
            (
                "[activation]\norigins=https://a.example/",
                "line 2: [activation] origins cannot be 'https://a.example/'",
                "a comma-separated list of origins such as https://example.org"
            ),
            ("[log]\nlevel=loud", "line 2", "error, warning, notice, info, debug"),
            ("[access]\ndefault=read", "line 2", allPermissions),
            ("[access]\ndefault=readers,", "line 2", allPermissions),
            ("[access]\nalice=readers", "line 2: [access] alice is not a user", "user:NAME"),
            ("[access]\nuser:=readers", "line 2", "user:NAME"),
            ("key=1", "line 1: 'key' stands before", "[section]"),
            ("[server]\nsocket", "line 2: expected key = value", "comment"),
            ("[server]\n=1", "line 2: expected key = value", "comment"),
            ("[server", "line 1: a section header has the form [name]", "badged.conf(5)"),
        ]
    )
    func wrongValues(text: String, message: String, hint: String) {
        let error = refusal(Array(text.utf8))
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "accepted")")
        #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "accepted")")
        #expect(error?.exitCode == 78)
    }

    @Test(
        "an unknown section or key gives a warning that names the file and the line",
        arguments: [
            ("[server]\nport=1", "b.conf, line 2: unknown key 'port' in [server]"),
            ("[wallet]\nport=1", "b.conf, line 2: unknown key 'port' in [wallet]"),
            ("[sever]\nsocket=/x", "b.conf, line 2: unknown section [sever]"),
            (
                "[log]\nlevel=info\nlevel=debug",
                "b.conf, line 3: [log] level was set in line 2 already; this line counts"
            ),
        ]
    )
    func warnings(text: String, warning: String) throws {
        #expect(try read(text).warnings == [warning])
    }

    @Test(
        "invalid text is refused with the line number",
        arguments: [[0xFF], [0x23, 0x00], [0xC3]] as [[UInt8]]
    )
    func noText(line: [UInt8]) {
        #expect(refusal([0x0A] + line)?.message.contains("line 2: the line is not UTF-8 text") == true)
    }

    @Test("a missing default file is accepted; a missing --config file, a directory and a huge file are refused")
    func files() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "b.conf").path
        #expect(throws: StartError.self) { try Configuration(path: file) }
        #expect(throws: StartError.self) { try Configuration(path: folder.path) }
        try Data("[log]\nlevel=error\n".utf8).write(to: URL(filePath: file))
        #expect(try Configuration(path: file).logLevel == .error)
        try Data(repeating: 0x0A, count: INIFile.largest + 1).write(to: URL(filePath: file))
        #expect(throws: StartError.self) { try Configuration(path: file) }
    }

    @Test("random bytes never trap")
    func randomBytes() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("[]=# ;\n\r\taZ09:,/\u{0}\u{e9}".utf8) + [0xFF]
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator) ?? 0
            }
            _ = refusal(bytes)
        }
    }

    @Test("the command line overrides the file")
    func settings() throws {
        var configuration = Configuration()
        #expect(Settings(CommandLineOptions(), configuration).virtualReaders == 0)
        configuration.virtualReaders = 3
        var options = CommandLineOptions()
        options.isVirtual = true
        options.isWithoutPCSC = true
        options.isWithoutNFC = true
        options.logLevel = .error
        let settings = Settings(options, configuration)
        #expect(
            settings.virtualReaders == 3 && !settings.isPCSCEnabled && !settings.isNFCEnabled
                && settings.logLevel == .error
        )
        #expect(settings.limits.clients == 1000 && settings.limits.promptTimeout == .seconds(600))
    }

    @Test("the installed file is valid and sets nothing")
    func installedFile() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "systemd/badged.conf")
        let shipped = try String(contentsOf: file, encoding: .utf8)
        #expect(try read(shipped) == Configuration())
        // The comments of the file show the defaults. Without the comment sign they change nothing and give no warning.
        let on = shipped.replacing(/(?m)^#([a-z_:]+ *=)/) { "\($0.1)" }
        #expect(on != shipped)
        var configuration = try read(on)
        #expect(configuration.warnings.isEmpty)
        #expect(configuration.socketPath == "/run/badged/badged.sock")
        configuration.socketPath = nil
        // These keys have no default value. The comments describe the behaviour without a value.
        #expect(configuration.radio.replay == "/var/lib/badged/capture.btsnoop")
        #expect(configuration.radio.limits.count == 5)
        #expect(configuration.radio.limits["applicationSpecific"] == -80)
        (configuration.radio.replay, configuration.radio.limits) = (nil, [:])
        var warnings: [String] = []
        #expect(
            AccessPolicy(rules: configuration.access, warnings: &warnings)
                == AccessPolicy(rules: [], warnings: &warnings)
        )
        configuration.access = []
        #expect(configuration == Configuration())
    }

    @Test("the scan for door readers is configured in [ble]")
    func radio() throws {
        let text = """
            [ble]
            backend = mgmt
            sensitivity = high
            code_encoding = decimal
            silence = 60
            may_disconnect = yes
            limit_enhanced_tap = -45
            """
        let radio = try read(text).radio
        #expect((radio.backend, radio.sensitivity, radio.codeEncoding) == (.mgmt, .high, .decimal))
        #expect((radio.silence, radio.mayDisconnect, radio.limits) == (60, true, ["enhancedTap": -45]))
        for line in ["backend = usb", "silence = 4", "limit_motion = 10", "limit_motion = -101", "replay = x"] {
            #expect(throws: StartError.self) { try read("[ble]\n" + line) }
        }
        #expect(try !read("[ble]\nlimit = -50").warnings.isEmpty)
    }
}
