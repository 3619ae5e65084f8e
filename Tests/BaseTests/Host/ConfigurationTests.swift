// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing
import Text

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
        "readers, cards, wallet, mpin, keys, remote, agent, scan, open, openings, credentials, documents, "
        + "report, admin"

    @Test("an empty file and comments change nothing", arguments: ["", "\n\n", "# a = b\n ; [x]\n", "[server]\r\n"])
    func empty(text: String) throws {
        #expect(try read(text) == Configuration())
    }

    /// A section [access] with this number of users and groups.
    private static func access(_ count: Int) -> String {
        "[access]\n" + (0..<count).map { "\($0 % 2 == 0 ? "user" : "group"):u\($0) = readers\n" }.joined()
    }

    @Test(
        "an address is repeated without its name and password",
        arguments: [
            ("mqtts://user:geheim@h:1", "mqtts://...@h:1"), ("user:ge@heim@h", "...@h"),
            ("https://h/@x", "https://h/@x"),
            ("https://h:1/a@b", "https://...@b"), ("@realm", "@realm"), ("plain text", "plain text"), ("", ""),
        ]
    )
    func passwords(text: String, shown: String) {
        #expect(ConfigurationValue.shown(text) == shown)
        #expect(ConfigurationValue(text, "x").refuse("y").message == "x cannot be '\(shown)'")
    }

    @Test("[access] has at most 1000 lines, and the error says what to do instead")
    func manyUsers() throws {
        #expect(try read(Self.access(1000)).access.count == 1000)
        let error = refusal(Array(Self.access(1001).utf8))
        #expect(error?.message == "b.conf, line 1002: [access] has more than 1000 lines")
        #expect(error?.hint == "grant permissions to groups instead of users")
    }

    /// A configuration with this number of entries of a kind.
    private static func long(_ kind: String, _ count: Int) -> String {
        switch kind {
        case "users": access(count)
        case "sections": (0..<count).map { "[s\($0)]\nk = 1\n" }.joined()
        case "keys": "[server]\n" + (0..<count).map { "max_cli\($0) = 1\n" }.joined()
        case "origins": "[activation]\norigins = " + (0..<count).map { "https://e\($0)" }.joined(separator: ",")
        case "hosts": "[mpin]\ntrusted_domains = " + (0..<count).map { "h\($0).example" }.joined(separator: ",")
        default: "[log]\n" + String(repeating: "# a comment\n", count: count)
        }
    }

    @Test(
        "twice as many lines take at most 2.5 times as long",
        arguments: ["users", "sections", "keys", "origins", "hosts", "comments"]
    )
    func manyLines(kind: String) {
        let (short, long) = (Array(Self.long(kind, 2000).utf8), Array(Self.long(kind, 4000).utf8))
        let isInProportion = Growth.isInProportion(from: 2000) {
            _ = try? Configuration(bytes: $0 == 2000 ? short : long, file: "b.conf")
        }
        #expect(isInProportion)
    }

    /// A line of every key of every section.
    private static let everyLine = """
        [server]
        socket = /run/x.sock
        max_clients=7
        max_clients_per_user = 6
        max_workflows = 5
        max_workflows_per_user = 4
        prompt_timeout = 30
        shared_prompt_timeout = 20
        [virtual]
        enabled = Yes
        readers = 64
        cvca = /etc/badged/card.cvcert
        [eid]
        trust_anchors = /etc/badged/anchors
        self_information = https://self.example/token?x=1
        developer_mode = yes
        automatic_pin = yes
        date = 2028-02-29
        proxy = http://proxy.example:3128
        proxy_credentials = /etc/badged/proxy
        [documents]
        anchors = /srv/csca
        crl_required = yes
        [mdoc]
        anchors = /srv/mdoc
        lists = https://lists.example/ut, https://lists.example/xx.crl
        identities = desk:/k/desk.der:/k/desk.pem, gate:/k/gate.der:/k/gate.pem:/k/gate.wrprc
        [wallet]
        card_authorities = vendor, 02\(String(repeating: "Ab", count: 32))
        cards = 03\(String(repeating: "00", count: 32))
        node = https://eos.example.org
        chain_id = \(String(repeating: "0f", count: 32))
        node_ca = /etc/badged/node.pem
        http_callbacks = yes
        [mpin]
        private_servers = yes
        trusted_domains = login.example.org, example.net
        [keys]
        issuer = https://keys.example/acme
        issuer_keys = \(String(repeating: "Ab", count: 32)), \(String(repeating: "00", count: 32))
        issuer_ca = /etc/badged/issuer.pem
        tpm = no
        tpm_device = /run/tpm.sock
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
        [remote]
        enabled = yes
        share = 1
        readers = ACS ACR122U, Simulator
        interfaces = eth0,wlan0
        name = Reception
        [ble]
        enabled = false
        backend = replay
        replay = /var/lib/badged/capture.btsnoop
        sensitivity = low
        limit_proximity = -41
        limit_motion = -42
        limit_seamless = -43
        limit_application = -44
        limit_enhanced_tap = -45
        code_encoding = decimal
        silence = 60
        may_disconnect = on
        adapters = hci0
        adapter_offsets = hci0 1
        coded_phy = yes
        usb_reset = yes
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
        allow_list = /var/lib/site/list
        allow_list_watch = yes
        site_key = /etc/badged/site.key
        panel_readers = Desk, Door 1
        [access]
        user:alice = readers, cards, agent
        group:kiosk=readers
        default = none
        """

    @Test("every key is accepted, and sets its value")
    func everyKey() throws {
        let lines = INIFile(bytes: Array(Self.everyLine.utf8)).lines
        var (section, named) = ("", [String: Set<String>]())
        for line in lines {
            switch line.content {
            case .section(let name): section = name
            case .value(let key, _): named[section, default: []].insert(key)
            case .fault(let text, _): Issue.record("\(line.number): \(text)")
            }
        }
        named["access"] = nil
        #expect(named == Configuration.sections.mapValues { Set($0.keys) })
        let configuration = try read(Self.everyLine)
        #expect(configuration.socketPath == "/run/x.sock")
        var limits = ServerLimits()
        (limits.clients, limits.clientsPerUser, limits.workflows, limits.workflowsPerUser) = (7, 6, 5, 4)
        limits.promptTimeout = .seconds(30)
        limits.sharedPromptTimeout = .seconds(20)
        #expect(configuration.limits == limits)
        #expect(configuration.isVirtualEnabled && configuration.virtualReaders == 64)
        #expect(configuration.virtualTrustPoint == "/etc/badged/card.cvcert")
        #expect(configuration.trustAnchors == "/etc/badged/anchors")
        #expect(configuration.selfInformation == "https://self.example/token?x=1")
        #expect(configuration.keys.issuer == "https://keys.example/acme")
        #expect(configuration.keys.fingerprints.map(\.count) == [32, 32])
        #expect(configuration.keys.authorityFile == "/etc/badged/issuer.pem")
        #expect(configuration.proxy == .address("http://proxy.example:3128"))
        #expect(configuration.proxyCredentials == "/etc/badged/proxy")
        #expect(configuration.documentAnchors == "/srv/csca")
        #expect(configuration.requiresDocumentCRLs)
        #expect(configuration.mdocAnchors == "/srv/mdoc")
        #expect(configuration.mdocLists == ["https://lists.example/ut", "https://lists.example/xx.crl"])
        #expect(configuration.mdocIdentities.map(\.name) == ["desk", "gate"])
        #expect(configuration.mdocIdentities.map(\.registration) == [nil, "/k/gate.wrprc"])
        #expect(configuration.date == CalendarDay(year: 2028, month: 2, day: 29))
        #expect(configuration.cardAuthorities == [nil, [2] + [UInt8](repeating: 0xAB, count: 32)])
        #expect(configuration.allowsDeveloperMode && configuration.allowsAutomaticPINs)
        #expect(configuration.allowsPrivateMPinServers)
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
        #expect(
            configuration.credentials.allowList == "/var/lib/site/list" && configuration.credentials.watchesAllowList
        )
        #expect(configuration.credentials.siteKey == "/etc/badged/site.key")
        #expect(configuration.credentials.panelReaders == ["Desk", "Door 1"])
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
        #expect(configuration.node.address == "https://eos.example.org" && configuration.node.allowsHTTPCallbacks)
        #expect(configuration.node.chainID == [UInt8](repeating: 0x0F, count: 32))
        #expect(configuration.node.authorityFile == "/etc/badged/node.pem")
        #expect(configuration.keys.tpm == .no && configuration.keys.tpmDevice == "/run/tpm.sock")
        #expect(configuration.remote.isEnabled && configuration.remote.isShared)
        #expect(configuration.remote.readers == ["ACS ACR122U", "Simulator"])
        #expect(configuration.remote.interfaces == ["eth0", "wlan0"] && configuration.remote.name == "Reception")
        let radio = configuration.radio
        #expect((radio.isEnabled, radio.backend, radio.sensitivity) == (false, .replay, .low))
        #expect(radio.replay == "/var/lib/badged/capture.btsnoop")
        #expect((radio.codeEncoding, radio.silence, radio.mayDisconnect) == (.decimal, 60, true))
        #expect(
            radio.limits == [
                "proximity": -41, "motion": -42, "seamless": -43, "applicationSpecific": -44, "enhancedTap": -45,
            ]
        )
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
            ("[server]\nshared_prompt_timeout=9", "line 2: [server] shared_prompt_timeout cannot", "10 to 86400"),
            ("[server]\nsocket=run", "line 2", "begins with /"),
            ("[virtual]\n\nreaders=65", "line 3", "1 to 64"),
            ("[virtual]\nreaders=-1", "line 2", "1 to 64"),
            ("[virtual]\nreaders=99999999999999999999", "line 2", "1 to 64"),
            ("[virtual]\ncvca=card.cvcert", "line 2", "begins with /"),
            ("[eid]\nself_information=http://a.example", "line 2", "https://"),
            ("[eid]\nself_information=https://a b", "line 2", "https://"),
            ("[eid]\ntrust_anchors=anchors", "line 2", "begins with /"),
            ("[eid]\nproxy=socks5://a:1", "line 2: [eid] proxy cannot be 'socks5://a:1'", "none, environment"),
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
        expectRefusal(text, message: message, hint: hint)
    }

    private func expectRefusal(_ text: String, message: String, hint: String) {
        let error = refusal(Array(text.utf8))
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "accepted")")
        #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "accepted")")
        #expect(error?.exitCode == 78)
    }

    @Test(
        "a line that has no meaning is an error with the line and the likely name",
        arguments: [
            ("[server]\nport=1", "b.conf, line 2: unknown key 'port' in [server]", "see badged.conf(5)"),
            ("[wallet]\nport=1", "b.conf, line 2: unknown key 'port' in [wallet]", "see badged.conf(5)"),
            ("[sever]\nsocket=/x", "b.conf, line 1: unknown section [sever]", "did you mean server? "),
            ("[acces]\ndefault = none", "b.conf, line 1: unknown section [acces]", "did you mean access? "),
            ("[Access]\ndefault = none", "b.conf, line 1: unknown section [Access]", "did you mean access? "),
            ("[extra]", "b.conf, line 1: unknown section [extra]", "see badged.conf(5)"),
            ("[credentials]\nvalidate=yes", "unknown key 'validate' in [credentials]", "did you mean validated? "),
            ("[mpin]\ntrusted_domain=a.example", "unknown key 'trusted_domain'", "did you mean trusted_domains? "),
            ("[activation]\npermission=none", "unknown key 'permission'", "did you mean permissions? "),
            ("[ble]\nlimit = -50", "unknown key 'limit' in [ble]", "limit_"),
            ("[log]\nlevel=info\nlevel=debug", "line 3: [log] level is in line 2 already", "one of the two"),
            ("[access]\ndefault=all\n", "line 2", "none, or a list"),
            ("[access]\ndefault=none\ndefault=readers", "line 3: [access] default is in line 2", "one of the two"),
            ("[access]\nuser:a, b = none", "line 2: [access] user:a, b is not a user", "one name a line"),
            ("[access]\nuser: a = none", "line 2: [access] user: a is not a user", "one name a line"),
            ("[log]\n[access]\n[log]", "line 3: [log] is in line 1 already", "move its lines"),
            ("# a\r[access]\rdefault = none", "line 1: the line has a control character", "line feed"),
            ("[access]\ndefault = none # all", "line 2: [access] default cannot be 'none # all'", "none, or a list"),
            ("[access] # rights", "line 1: a section header has the form", "badged.conf(5)"),
            ("[remote]\ninterfaces = ,", "line 2: [remote] interfaces cannot be ','", "one comma"),
            ("[mpin]\ntrusted_domains = ,a", "line 2: [mpin] trusted_domains cannot be", "one comma"),
            ("[access]\n\u{FEFF}default = none", "line 2: [access] \u{FEFF}default is not a user", "default"),
        ]
    )
    func nothingIsIgnored(text: String, message: String, hint: String) {
        expectRefusal(text, message: message, hint: hint)
    }

    @Test(
        "a byte order mark before the first line is accepted",
        arguments: ["[access]\r\ndefault = none\r\n", "# x\n"]
    )
    func byteOrderMark(text: String) throws {
        #expect(try read("\u{FEFF}" + text) == read(text))
        #expect(refusal([0xFF, 0xFE, 0x5B, 0x00])?.hint.contains("UTF-8") == true)
    }

    @Test("all errors are found, in the order of their lines; the first one has the number of the others")
    func allErrors() throws {
        let text = "a = 1\n[log]\nlevel = loud\n[acces]\ndefault = none\nx\n[mpin]\nb = 2\n"
        let folder = try TemporaryFolder()
        let file = try folder.write("b.conf", text.utf8)
        var errors: [StartError] = []
        _ = Configuration(files: SettingFiles(file), errors: &errors)
        #expect(errors.map { $0.message.dropFirst(file.count).prefix(8) } == [1, 3, 4, 6, 8].map { ", line \($0)" })
        let first = #expect(throws: StartError.self) { try Configuration(path: file) }
        #expect(first?.hint.hasSuffix("; for all 5 errors: badged --check-config \(file)") == true)
    }

    @Test("an error of a setting that is found later gets the place of the line")
    func placedErrors() throws {
        let configuration = try read("[keys]\nissuer = /a\nissuer_ca = /b\n")
        let error = StartError.inConfiguration("there is no file /b", of: "[keys] issuer_ca", hint: "")
        #expect(configuration.placed(error).message == "b.conf, line 3: there is no file /b")
        #expect(configuration.placed(StartError("no", hint: "x")).message == "no")
    }

    @Test("what other users can change, and what is no plain file, is refused")
    func exposedFiles() throws {
        let temporary = try TemporaryFolder()
        let folder = temporary.path
        chmod(folder, 0o755)
        let file = try temporary.write("b.conf", "[access]\ndefault = none\n".utf8)
        func refusal() -> String? {
            do throws(StartError) {
                _ = try Configuration(path: file)
                return nil
            } catch { return error.message }
        }
        for (fileMode, folderMode, isRefused) in [
            (0o644, 0o755, ""), (0o600, 0o700, ""), (0o646, 0o755, file), (0o644, 0o757, folder + "/"),
            (0o644, 0o1777, ""), (0o666, 0o1777, file),
        ] as [(mode_t, mode_t, String)] {
            chmod(file, fileMode)
            chmod(folder, folderMode)
            #expect(refusal() == (isRefused.isEmpty ? nil : "other users can change \(isRefused)"))
        }
        chmod(folder, 0o755)
        try FileManager.default.removeItem(atPath: file)
        #expect(mkfifo(file, 0o600) == 0)
        #expect(refusal() == "cannot read \(file): it is not a plain file")
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: "/dev/zero")
        #expect(refusal() == "cannot read \(file): it is not a plain file")
    }

    /// What other users can do to a folder above a file, or to a link on the way to it.
    enum Weakness: CaseIterable { case owner, group, others, link, linkedFolder }

    @Test(
        "each folder above a file counts, and each link on the way, not the last one only",
        .enabled(if: getuid() == 0),
        arguments: Weakness.allCases,
        0..<4
    )
    func foldersAbove(weakness: Weakness, depth: Int) throws {
        let temporary = try TemporaryFolder()
        var folders = [temporary.path]
        for name in ["a", "b", "c"] { folders.append(folders[folders.count - 1] + "/" + name) }
        for folder in folders {
            mkdir(folder, 0o755)
            chmod(folder, 0o755)
        }
        let file = folders[3] + "/b.conf"
        try temporary.write("a/b/c/b.conf", "[access]\ndefault = none\n".utf8)
        chmod(file, 0o644)
        func refusal(_ path: String) -> String? {
            do throws(StartError) {
                _ = try Configuration(path: path)
                return nil
            } catch { return error.message }
        }
        #expect(refusal(file) == nil)
        let weak = folders[depth]
        var (path, refused) = (file, weak + "/")
        switch weakness {
        case .owner: chown(weak, 65_533, 0)
        case .group:
            chown(weak, 0, 65_533)
            chmod(weak, 0o775)
        case .others: chmod(weak, 0o757)
        case .link, .linkedFolder:
            let other = try TemporaryFolder()
            chmod(other.path, 0o1777)
            let link = other.path + "/link"
            symlink(weak, link)
            path = link + file.dropFirst(weak.count)
            #expect(refusal(path) == nil)
            if weakness == .link {
                lchown(link, 65_533, 65_533)
                refused = link
            } else {
                chmod(weak, 0o757)
            }
            #expect(refusal(path) == "other users can change \(refused)")
            return
        }
        #expect(refusal(path) == "other users can change \(refused)")
    }

    @Test(
        "who can change a file: its owner, and the members of its group if the mode says so",
        arguments: [
            (0, 0, 0o644, 500, false), (500, 500, 0o600, 500, false), (1001, 0, 0o644, 500, true),
            (1001, 0, 0o644, 0, true), (500, 500, 0o664, 500, true), (0, 0, 0o664, 500, false),
            (0, 500, 0o664, 500, true), (1000, 1000, 0o664, 1000, false), (1000, 100, 0o664, 1000, true),
            (0, 0, 0o646, 0, true),
        ] as [(UInt32, UInt32, UInt32, UInt32, Bool)]
    )
    func exposure(owner: UInt32, group: UInt32, mode: UInt32, user: UInt32, isExposed: Bool) {
        var status = stat()
        (status.st_uid, status.st_gid, status.st_mode) = (owner, group, S_IFREG | mode)
        #expect(PlainFile.isExposed(status, user: user) == isExposed)
    }

    @Test("a sticky folder keeps the files in it, but other users can add files")
    func sticky() throws {
        var status = stat()
        (status.st_uid, status.st_mode) = (0, S_IFDIR | 0o1777)
        #expect(!PlainFile.isExposed(status, user: 500))
        #expect(PlainFile.isExposed(status, user: 500, addsFiles: true))
        let folder = try TemporaryFolder()
        let path = folder.path + "/anchors"
        mkdir(path, 0o700)
        try PlainFile.checkFolder(path)
        chmod(path, 0o1777)
        try PlainFile.checkPlace(path)
        #expect(throws: StartError.self) { try PlainFile.checkFolder(path) }
    }

    @Test("a file that other users can change is no authority")
    func trusted() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/a.cvcert"
        _ = try folder.write("a.cvcert", "abc".utf8)
        #expect(PlainFile.readTrusted(path, limit: 9) == .bytes(Array("abc".utf8)))
        chmod(path, 0o646)
        guard case .failed(let reason) = PlainFile.readTrusted(path, limit: 9) else { throw Malformed("it is read") }
        #expect(reason.hasPrefix("other users can change it"))
    }

    @Test(
        "invalid text is refused with the line number",
        arguments: [
            ([0xFF], "is not UTF-8 text"), ([0xC3], "is not UTF-8 text"), ([0x23, 0x00], "has a control character"),
        ] as [([UInt8], String)]
    )
    func noText(line: [UInt8], fault: String) {
        #expect(refusal([0x0A] + line)?.message.contains("line 2: the line \(fault)") == true)
    }

    @Test("a missing default file is accepted; a missing --config file, a directory and a huge file are refused")
    func files() throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/b.conf"
        #expect(throws: StartError.self) { try Configuration(path: file) }
        #expect(throws: StartError.self) { try Configuration(path: folder.path) }
        try folder.write("b.conf", "[log]\nlevel=error\n".utf8)
        #expect(try Configuration(path: file).logLevel == .error)
        try folder.write("b.conf", [UInt8](repeating: 0x0A, count: INIFile.largest + 1))
        #expect(throws: StartError.self) { try Configuration(path: file) }
    }

    @Test("random bytes are refused, unless they say nothing")
    func randomBytes() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("[]=# ;\n\r\taZ09:,/\u{0}\u{e9}".utf8) + [0xFF]
        for _ in 0..<FullTables.count(2000) {
            let bytes = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator) ?? 0
            }
            let isEmpty = bytes.split(separator: UInt8(ascii: "\n")).allSatisfy { line in
                let first = line.first { !" \t\r".utf8.contains($0) }
                return first == nil || "#;".utf8.contains(first ?? 0)
            }
            #expect(refusal(bytes) != nil || isEmpty, "\(bytes)")
        }
    }

    @Test("the command line overrides the file")
    func settings() throws {
        var configuration = Configuration()
        var options = CommandLineOptions()
        options.isVirtual = true
        options.isWithoutPCSC = true
        options.isWithoutNFC = true
        options.logLevel = .error
        configuration.override(by: options)
        var expected = Configuration()
        (expected.isVirtualEnabled, expected.isPCSCEnabled, expected.isNFCEnabled) = (true, false, false)
        expected.logLevel = .error
        #expect(configuration == expected)
        configuration.override(by: CommandLineOptions())
        #expect(configuration == expected)
    }

    @Test("the installed file is valid and sets nothing")
    func installedFile() throws {
        let file = testsFolder.appending(path: "../systemd/badged.conf")
        let shipped = try String(contentsOf: file, encoding: .utf8)
        #expect(try read(shipped) == Configuration())
        // The comments of the file show the defaults. Without the comment sign they change nothing.
        let on = shipped.replacing(/(?m)^#([a-z_:]+ *=)/) { "\($0.1)" }
        #expect(on != shipped)
        // --print-config shows the same defaults.
        for (name, setting) in try read(on).settings where !setting.value.isEmpty {
            let hasNone = name == "[ble] replay" || name.hasPrefix("[ble] limit_")
            #expect(Configuration.defaults[name] == (hasNone ? nil : setting.value), "\(name)")
        }
        var configuration = try read(on)
        configuration.settings = [:]
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
        #expect(!radio.usesCodedPHY && !radio.mayResetUSB && radio.adapters.rules.isEmpty && radio.offsets.isEmpty)
        for line in ["backend = usb", "silence = 4", "limit_motion = 10", "limit_motion = -101", "replay = x"] {
            #expect(throws: StartError.self) { try read("[ble]\n" + line) }
        }
    }

    @Test("adapters are named by number or address, and may scan, open or do both")
    func adapters() throws {
        let text = """
            [ble]
            adapters = hci0, hci12 scan, 00:1a:7D:da:71:13 open
            adapter_offsets = hci0 -3, 00:1A:7D:DA:71:13 4
            coded_phy = yes
            usb_reset = yes
            """
        let radio = try read(text).radio
        let address = "00:1A:7D:DA:71:13"
        #expect(
            radio.adapters.rules == [
                .init(adapter: .number("hci0"), scans: true, opens: true),
                .init(adapter: .number("hci12"), scans: true, opens: false),
                .init(adapter: .address(address), scans: false, opens: true),
            ]
        )
        #expect(radio.offsets == [.number("hci0"): -3, .address(address): 4])
        #expect(radio.usesCodedPHY && radio.mayResetUSB)
        #expect(radio.adapters.mayScan(name: "hci0", address: "") && radio.adapters.mayOpen(name: "hci0", address: ""))
        #expect(!radio.adapters.mayScan(name: "hci3", address: address))
        #expect(radio.adapters.mayOpen(name: "hci3", address: address))
        #expect(!radio.adapters.mayScan(name: "hci1", address: "00:00:00:00:00:00"))
    }

    @Test(
        "a wrong list of adapters is refused with the allowed forms",
        arguments: [
            "adapters = hci", "adapters = hci-1", "adapters = hci01", "adapters = hci65536", "adapters = usb0",
            "adapters = hci0 listen", "adapters = hci0 scan open", "adapters = hci0,", "adapters = hci0, hci0 open",
            "adapters = 00:1A:7D:DA:71", "adapters = 00:1A:7D:DA:71:1", "adapters = 00:1A:7D:DA:71:13:00",
            "adapters = 00-1A-7D-DA-71-13", "adapters = hci0 open", "adapter_offsets = hci0",
            "adapter_offsets = hci0 x", "adapter_offsets = hci0 31", "adapter_offsets = hci0 -3 2",
            "adapter_offsets = hci0 1, hci0 2", "adapter_offsets = -3", "coded_phy = maybe", "usb_reset = 2",
        ]
    )
    func wrongAdapters(_ line: String) {
        let key = line.prefix { $0 != " " }
        #expect {
            try read("[ble]\n" + line)
        } throws: { error in
            let error = error as? StartError
            return error?.message.contains("line 2: [ble] \(key) cannot be") == true
                && error?.hint.hasPrefix("allowed: ") == true
        }
    }

    @Test("--check-config warns of adapters that the computer lacks, and of a coded PHY that bluetoothd cannot give")
    func radioWarnings() throws {
        func warnings(_ lines: String) throws -> [String] {
            try read("[ble]\n" + lines).radio.warnings { $0 == "hci0" }.map(\.warning)
        }
        #expect(try warnings("adapters = hci0, 00:1A:7D:DA:71:13\nadapter_offsets = hci0 1\ncoded_phy = yes").isEmpty)
        #expect(
            try warnings("adapters = hci0, hci1\nadapter_offsets = hci2 1\ncoded_phy = yes\nbackend = bluez") == [
                "[ble] adapters: this computer has no hci1; bluetoothctl list has the addresses",
                "[ble] adapter_offsets: this computer has no hci2; bluetoothctl list has the addresses",
                "[ble] coded_phy: backend = bluez cannot switch it on, because bluetoothd has no such setting: "
                    + "set backend = mgmt",
            ]
        )
    }
}
