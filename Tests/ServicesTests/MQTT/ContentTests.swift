// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Concurrency
import Glibc
import Host
import Synchronization
import TestSupport
import Testing
import Text
import Vault

@testable import MQTT
@testable import badged_mqtt

@Suite("What badged-mqtt tells", .timeLimit(.minutes(5)))
struct ContentTests {
    private static let point = "04" + String(repeating: "ab", count: 32) + String(repeating: "cd", count: 32)
    private static let tap = """
        {"msg":"CREDENTIAL","number":7,"time":5,"reader":"Desk","protocol":"pkoc-se2","verified":true,"listed":true,\
        "numbers":{"bits64":"abababababababab","decimal64":"1"},"publicKey":"\(point)","transaction":"00",\
        "certificate":{"state":"valid","issuer":"ISSUER","subject":"SUBJECT","from":"a","to":"b"}}
        """

    private static func message<Message: ServerMessage>(_ line: String, _ type: Message.Type) throws -> Message {
        let event = try Array(line.utf8).withUnsafeBytes { try Event($0) }
        return try #require(event.message as? Message)
    }

    private static func content(_ credentials: MQTTConfiguration.Credentials) -> EventContent {
        EventContent(credentials: credentials, siteKey: SiteKey(Secret([UInt8](repeating: 1, count: 32))))
    }

    @Test(
        "only a reader without an identity of its own is one that passes",
        arguments: [
            ("seos", "seos-passing-1", true), ("aliro", "aliro-passing-12", true), ("seos", "seos-2-Lobby", false),
            ("seos", "seos-2-Gate-passing-Bay", false), ("seos", "seos-2-Gate-passing-3", false),
            ("pkoc", "pkoc-C0:FF:EE:00:00:01", false), ("seos", "passing", false),
        ]
    )
    func passing(profile: String, id: String, expected: Bool) {
        #expect(DoorReader(id: id, profile: profile, level: -60, lastRSSI: -60).isPassing == expected)
    }

    @Test("hashed: a pseudonym, and neither the key nor a number nor the name in the certificate")
    func hashed() throws {
        let tap = try Self.message(Self.tap, Credential.self)
        let members = try #require(Self.content(.hashed).members(of: tap))
        let text = String(decoding: JSON.object(members).bytes, as: UTF8.self)
        #expect(JSON.object(members)["id"]?.string?.count == 43)
        for secret in ["abab", "SUBJECT", "transaction", "numbers", "publicKey"] { #expect(!text.contains(secret)) }
        #expect(text.contains("ISSUER") && JSON.object(members)["listed"]?.bool == true)
        #expect(Self.content(.no).members(of: tap) == nil)
        #expect(EventContent(credentials: .hashed, siteKey: nil).members(of: tap) == nil)
    }

    @Test("plain adds the key, the numbers and the name in the certificate, and never the transaction")
    func plain() throws {
        let members = try #require(Self.content(.plain).members(of: try Self.message(Self.tap, Credential.self)))
        let text = String(decoding: JSON.object(members).bytes, as: UTF8.self)
        #expect(text.contains(Self.point) && text.contains("SUBJECT") && !text.contains("transaction"))
        #expect(JSON.object(members)["numbers"]?["bits64"]?.string == "abababababababab")
    }

    @Test("a tap without a credential has its reason only")
    func refused() throws {
        let line = #"{"msg":"CREDENTIAL","reader":"Desk","protocol":"Aliro","verified":false,"reason":"refused"}"#
        let members = try #require(Self.content(.hashed).members(of: try Self.message(line, Credential.self)))
        #expect(members.map(\.key) == ["reader", "protocol", "verified", "reason"])
    }

    @Test("a tag is a pseudonym, its number only with plain, and a random number is none")
    func tag() throws {
        func members(_ mode: MQTTConfiguration.Credentials, _ uid: String, _ random: Bool) throws -> JSON {
            let line = """
                {"msg":"CREDENTIAL","reader":"Desk","protocol":"tag","verified":false,"reason":"noProof",\
                "tag":{"uid":"\(uid)","type":"ntag","random":\(random),"ndef":[{"type":"uri","uri":"https://secret"}]}}
                """
            return .object(try #require(Self.content(mode).members(of: try Self.message(line, Credential.self))))
        }
        let hashed = try members(.hashed, "04a1b2c3d4e5f6", false)
        let text = String(decoding: hashed.bytes, as: UTF8.self)
        #expect(hashed["verified"] == .bool(false) && hashed["type"] == .string("ntag"))
        #expect(hashed["id"]?.string?.count == 43 && !text.contains("04a1b2") && !text.contains("secret"))
        let plain = try members(.plain, "04a1b2c3d4e5f6", false)
        #expect(plain["uid"] == .string("04a1b2c3d4e5f6") && plain["id"] == hashed["id"])
        let random = try members(.hashed, "08123456", true)
        #expect(random["id"] == nil && random["random"] == .bool(true))
    }

    @Test("an opening has a pseudonym of the key, and no user")
    func opening() throws {
        let line =
            #"{"msg":"OPENING_REPORT","number":1,"time":5,"reader":"pkoc-1","openingType":"motion","status":"success","accessDecision":"granted","durationMs":900,"key":"front","user":1000}"#
        let members = Self.content(.no).members(of: try Self.message(line, DoorOpeningReport.self))
        let text = String(decoding: JSON.object(members).bytes, as: UTF8.self)
        #expect(JSON.object(members)["key"]?.string?.count == 43 && !text.contains("front") && !text.contains("1000"))
        #expect(JSON.object(members)["durationMs"]?.int == 900)
    }

    @Test("a command that badged refuses is a failed check, with the reason and the advice of the refusal")
    @Loop func refusedCommand() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_INFO", #"{"msg":"INFO","VersionInfo":{"Name":"badged","Implementation-Version":"1"}}"#)
            peer.answer("GET_METRICS", #"{"msg":"METRICS","metrics":[]}"#)
            peer.answer("START_CREDENTIALS", #"{"msg":"ACCESS_DENIED","error":"START_CREDENTIALS"}"#)
            peer.answer("GET_HEALTH", #"{"msg":"HEALTH","checks":[]}"#)
        }
        var configuration = MQTTConfiguration()
        (configuration.socket, configuration.credentials) = (peer.path, .hashed)
        let (mailbox, changes) = (try EventMailbox(), Changes())
        var checks: [JSON] = []
        let registration = try Loop.watch(mailbox.descriptor, .read) { _ in
            for case .document(.health, let members, _) in mailbox.take() {
                checks = JSON.object(members)["checks"]?.array ?? []
            }
            changes.notify()
        }
        let watch = DaemonWatch(configuration, Self.content(.hashed), mailbox)
        let watching = Task { await watch.watch() }
        await changes.wait { checks.count == 2 }
        watching.cancel()
        registration.cancel()
        let refusal = ClientError.accessDenied(command: "START_CREDENTIALS")
        let advice = refusal.advice
        #expect(
            checks.last
                == EventContent.check("mqtt START_CREDENTIALS", isOK: false, cause: refusal.text, advice: advice)
        )
    }

    @Test("what becomes of new settings says nothing about those that are tried after them")
    @Loop func reloads() throws {
        let mailbox = try EventMailbox()
        var settings = [MQTTConfiguration(), MQTTConfiguration(), MQTTConfiguration()]
        for index in settings.indices { settings[index].healthInterval = 10 + index }
        let watch = DaemonWatch(settings[0], Self.content(.no), mailbox)
        func fault() -> String? {
            var checks: [JSON] = []
            for case .document(.health, let members, _) in mailbox.take() {
                checks = JSON.object(members)["checks"]?.array ?? []
            }
            return checks.first { $0["name"]?.string == "mqtt configuration" }?["cause"]?.string
        }
        watch.prepareReload(settings[1], Self.content(.no))
        watch.prepareReload(settings[2], Self.content(.no))
        watch.reloaded(settings[1], "first")
        #expect(fault() == nil)
        #expect(watch.configuration == settings[0])
        watch.reloaded(settings[1], nil)
        #expect(watch.configuration == settings[1])
        watch.reloaded(settings[2], "second")
        #expect(fault() == "second")
        #expect(watch.configuration == settings[1])
        watch.reloaded(settings[2], nil)
        #expect(fault() == nil)
        #expect(watch.configuration == settings[2])
    }

    @Test("a gap begins with the end of the last connection that was watched")
    @Loop func gap() async throws {
        /// When the second connection began.
        let second = Mutex<Int64?>(nil)
        let begin = { @Sendable (peer: ScriptedPeer.Connection) in
            _ = peer.answer("GET_INFO", #"{"msg":"INFO","VersionInfo":{"Name":"badged","Implementation-Version":"1"}}"#)
        }
        let whole = { @Sendable (peer: ScriptedPeer.Connection) in
            begin(peer)
            peer.answer("GET_METRICS", #"{"msg":"METRICS","metrics":[]}"#)
            peer.answer("START_CREDENTIALS", #"{"msg":"ACCESS_DENIED","error":"START_CREDENTIALS"}"#)
            peer.answer("GET_HEALTH", #"{"msg":"HEALTH","checks":[]}"#)
        }
        let peer = try ScriptedPeer { peer in
            whole(peer)
            peer.hangUp()
        } others: { peer in
            let isSecond = second.withLock { time in
                defer { time = time ?? Loop.wallClock }
                return time == nil
            }
            guard isSecond else { return whole(peer) }
            begin(peer)
            peer.hangUp()
        }
        var configuration = MQTTConfiguration()
        (configuration.socket, configuration.credentials) = (peer.path, .hashed)
        let (mailbox, changes) = (try EventMailbox(), Changes())
        var gaps: [(reason: Gap.Reason, since: Int64?)] = []
        let registration = try Loop.watch(mailbox.descriptor, .read) { _ in
            for case .gap(_, let reason, let since, _) in mailbox.take() { gaps.append((reason, since)) }
            changes.notify()
        }
        let watch = DaemonWatch(configuration, Self.content(.hashed), mailbox)
        let watching = Task { await watch.watch() }
        await changes.wait { gaps.count == 2 }
        watching.cancel()
        registration.cancel()
        #expect(gaps.map(\.reason) == [.notWatching, .daemonAway])
        let (since, time) = (try #require(gaps.last?.since), second.withLock { $0 })
        #expect(since <= time ?? 0)
    }

    @Test("a reader has no counter of its card")
    func reader() throws {
        let line =
            #"{"msg":"READER","name":"Desk","attached":true,"keypad":true,"driver":"pcsc","card":{"kind":"eid","retryCounter":2}}"#
        let json = EventContent.json(try Self.message(line, Reader.self))
        let expected = #"{"name":"Desk","keypad":true,"busy":false,"driver":"pcsc","card":{"kind":"eid"}}"#
        #expect(json == (try JSON(Array(expected.utf8))))
    }

    @Test("the versions of the packages are those that dpkg has installed")
    func packages() {
        let file = """
            Package: pcscd
            Status: install ok installed
            Version: 1.9.9-2
            Description: a daemon
             Package: bluez

            Package: libccid
            Status: deinstall ok config-files
            Version: 1.5.2-1

            Package: other
            Status: install ok installed
            Version: 7

            """
        #expect(InstalledPackages.parse(Array(file.utf8)) == ["pcscd": "1.9.9-2"])
        #expect(InstalledPackages.parse([]).isEmpty && InstalledPackages.read("/nonexistent").isEmpty)
    }
}

@Suite("mqtt.conf", .timeLimit(.minutes(5)))
struct MQTTConfigurationTests {
    private static func read(_ text: String) -> (MQTTConfiguration, [StartError]) {
        var (configuration, errors) = (MQTTConfiguration(), [StartError]())
        configuration.read(Array(text.utf8), "m.conf", &errors)
        return (configuration, errors)
    }

    @Test(
        "the address of the broker",
        arguments: [
            ("mqtts://b.example", "b.example", 8883, true), ("mqtts://b.example:1/", "b.example", 1, true),
            ("mqtt://localhost", "localhost", 1883, false), ("mqtts://[2001:db8::1]:9", "2001:db8::1", 9, true),
            ("mqtt://[::1]", "::1", 1883, false),
        ]
    )
    func address(text: String, host: String, port: Int, tls: Bool) {
        let (configuration, errors) = Self.read("[broker]\nurl = \(text)\n")
        #expect(errors.isEmpty)
        #expect((configuration.host, configuration.port, configuration.usesTLS) == (host, port, tls))
    }

    @Test(
        "a wrong line is named with what is allowed",
        arguments: [
            "url = http://b", "url = mqtts://", "url = mqtts://b:0", "url = mqtts://u@b", "url = mqtts://b/x",
            "url = mqtts://[::1", "version = 4", "keepalive = 1", "password_file = a", "rubbish = 1",
        ]
    )
    func wrong(line: String) {
        let (_, errors) = Self.read("[broker]\n\(line)\n")
        #expect(errors.count == 1 && errors[0].message.hasPrefix("m.conf, line 2: ") && errors[0].exitCode == 78)
    }

    @Test(
        "without TLS the broker is this computer",
        arguments: [
            ("127.0.0.1", true), ("127.example.org", false), ("127.1", false), ("10.0.0.1", false),
        ]
    )
    func plain(host: String, isAllowed: Bool) throws {
        let folder = try TemporaryFolder()
        try folder.write("m.conf", Array("[broker]\nurl = mqtt://\(host)\n[publish]\nhost = box\n".utf8))
        var errors: [StartError] = []
        _ = MQTTConfiguration(path: folder.path + "/m.conf", errors: &errors)
        #expect(errors.map(\.hint) == (isAllowed ? [] : ["use mqtts://HOST:PORT, or write plain = yes below [broker]"]))
    }

    @Test(
        "names of hosts and topics have no wildcards",
        arguments: ["host = a/b", "host = #", "prefix = a/+", "prefix = /"]
    )
    func topics(line: String) { #expect(Self.read("[publish]\n\(line)\n").1.count == 1) }

    @Test("a file without a password is refused", arguments: [("", false), ("\nright\n", false), ("right\n", true)])
    func password(content: String, isRight: Bool) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("password", Array(content.utf8))
        chmod(path, 0o600)
        var (configuration, errors) = (MQTTConfiguration(), [StartError]())
        (configuration.passwordFile, configuration.folder) = (path, folder.path)
        _ = configuration.tryFiles(&errors)
        #expect(errors.map(\.message) == (isRight ? [] : ["\(path) has no password in its first line"]))
    }

    @Test("a name of a reader cannot change the template of Home Assistant")
    func discovery() throws {
        var configuration = MQTTConfiguration()
        (configuration.name, configuration.credentials) = ("a.b", .hashed)
        let names = Discovery.shown(["Desk", "x') }}{{ 1", "y\\"])
        let components = try #require(JSON.object(Discovery.content(configuration, names))["components"]?.members)
        let whole = components.filter { $0.value["unique_id"] != nil }
        #expect(whole.map(\.key) == ["connectivity", "problem", "queue", "reader_1", "credential"])
        #expect(configuration.discoveryTopic == "homeassistant/device/badged_a_b/config")
        #expect(Set(whole.compactMap { $0.value["unique_id"]?.string }).count == whole.count)
        #expect(
            components.allSatisfy {
                ["sensor", "binary_sensor", "event", "tag"].contains($0.value["platform"]?.string)
            }
        )
    }

    @Test("the connectivity can be off, an automation gets id and listed, and a tap is a scanned tag")
    func automation() throws {
        var configuration = MQTTConfiguration()
        configuration.name = "door"
        configuration.credentials = .hashed
        let components = try #require(JSON.object(Discovery.content(configuration, []))["components"])
        // Its own availability replaces that of the device, which is offline when the host is.
        let availability = try #require(components["connectivity"]?["availability"]?.array?.first)
        #expect(availability["topic"]?.string == "badged/1/door/state")
        #expect(availability["value_template"]?.string == "{{ 'online' }}")
        #expect(components["problem"]?["availability"] == nil)
        let event = try #require(components["credential"]?["value_template"]?.string)
        for name in ["id", "listed", "verified", "reason", "reader", "sequence"] {
            #expect(event.contains("'\(name)': value_json.\(name) | default(none)"))
        }
        #expect(components["tag"]?["topic"]?.string == "badged/1/door/credential")
        #expect(components["tag"]?["value_template"]?.string == "{{ value_json.id | default('') }}")
    }

    @Test("what this host does not have is removed from Home Assistant, and what it has is not")
    func removal() throws {
        var configuration = MQTTConfiguration()
        func removed(_ readers: [String]) -> Set<String> {
            let components = JSON.object(Discovery.content(configuration, readers))["components"]?.members ?? []
            return Set(components.filter { $0.value.members?.map(\.key) == ["platform"] }.map(\.key))
        }
        let readers = Set((1...32).map { "reader_\($0)" })
        #expect(removed([]) == readers.union(["credential", "opening", "closest", "tag"]))
        (configuration.credentials, configuration.openings, configuration.sightings) = (.hashed, true, true)
        #expect(removed(["Desk", "Door"]) == readers.subtracting(["reader_1", "reader_2"]))
        let names = (1...32).map { String(repeating: "a", count: 127) + String($0) }
        #expect(JSON.object(Discovery.content(configuration, names)).bytes.count <= 32_768)
    }
}
