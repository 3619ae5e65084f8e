// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Foundation
import Host
import Store
import TestSupport
import Testing
import Text
import Vault

@Suite("Commands for keys", .timeLimit(.minutes(5)))
@Loop struct KeyCommandTests {
    private let stage: KeyStage

    init() async throws { stage = try await KeyStage() }

    @Test("a key is made, shown, deactivated, exported and deleted", arguments: KeyRecord.Protection.allCases)
    func wholeLife(_ place: KeyRecord.Protection) async throws {
        let stage = try await KeyStage(keys: place)
        #expect(await stage.ask("START")["setUp"] == .bool(false))
        #expect(await stage.error("NEW_KEY") == "Endpoint")
        let id = try await stage.newKey(#""label":"front door","cardNumber":"4711""#)
        #expect(await stage.ask("START")["setUp"] == .bool(true))
        let key = try #require(await stage.keys().first)
        #expect(key["label"]?.string == "front door" && key["cardNumber"]?.string == "4711")
        #expect(key["active"] == .bool(true) && key["protection"]?.string == place.rawValue)
        #expect(key["protocol"]?.string == "pkoc" && key["origin"]?.string == "created")
        let publicKey = try #require(key["publicKey"]?.string.flatMap { Hex.decode($0) })
        let number = try #require(key["numbers"]?.array?.first)
        #expect(number["bits"]?.int == 64 && number["hex"]?.string == Hex.encode(publicKey[25..<33]))
        #expect(await stage.ask("DEACTIVATE_KEY", #""key":"\#(id)""#)["active"] == .bool(false))
        #expect(await stage.ask("ACTIVATE_KEY", #""key":"\#(id)""#)["active"] == .bool(true))
        let export = await stage.ask("EXPORT_KEY", #""key":"\#(id)""#)
        #expect(export["publicKey"]?.string == Hex.encode(publicKey))
        // SubjectPublicKeyInfo: id-ecPublicKey, prime256v1 and the point. RFC 5480.
        let der = "3059301306072a8648ce3d020106082a8648ce3d030107034200" + Hex.encode(publicKey)
        #expect(export["der"]?.string == der)
        let pem = try #require(export["pem"]?.string).split(separator: "\n")
        #expect(pem.first == "-----BEGIN PUBLIC KEY-----" && pem.last == "-----END PUBLIC KEY-----")
        #expect(Data(base64Encoded: pem.dropFirst().dropLast().joined()).map { Hex.encode($0) } == der)
        #expect(export["thumbprint"] == key["thumbprint"] && export["numbers"] == key["numbers"])
        #expect(export["numbers"]?.array?.map { $0["bits"]?.int } == [64, 75, 128, 200, 256])
        let code = try JSON(try #require(export["qr"]?.string).utf8)
        #expect(code["publicKey"] == export["publicKey"] && code["keyType"]?.string == "P-256")
        #expect(code["label"]?.string == "front door")
        #expect(export["storage"]?.string == (place == .tpm ? "tpm" : "file"))
        #expect(await stage.error("DELETE_KEY", #""key":"\#(id)""#) == "")
        #expect(await stage.keys().isEmpty)
        let unknown = await stage.ask("DELETE_KEY", #""key":"\#(id)""#)
        #expect(unknown["error"]?.string == "KeyNotFound" && unknown["storage"] == export["storage"])
    }

    @Test("the last use of a key is reported")
    func lastUse() async throws {
        let id = try await stage.newKey()
        let never = await stage.ask("GET_LAST_AUTH")
        #expect(never["key"] == .null && never["counter"]?.int == 0 && never["time"] == .null)
        let vault = Vault(stage.store, now: { [clock = stage.clock] in clock.now })
        try await vault.used(id, isModified: true, of: 1000)
        try await vault.used(id, isModified: false, of: 1000)
        let last = await stage.ask("GET_LAST_AUTH")
        #expect(last["key"]?.string == id && last["counter"]?.int == 2 && last["modified"] == .bool(false))
        #expect(last["time"]?.string == DateText.text(stage.clock.now))
    }

    @Test("a user has room for 32 keys, and a further one is refused")
    func full() async throws {
        for _ in 0..<Vault.maximumKeys { _ = try await stage.newKey() }
        #expect(await stage.error("NEW_KEY") == "StorageFull")
        #expect(await stage.ask("GET_ENDPOINT")["keys"]?.int == 32)
    }

    @Test("no user of the system reaches the key of another one")
    func owners() async throws {
        let id = try await stage.newKey()
        let stranger = try stage.server.connect(uid: 1001)
        _ = await stage.ask("SETUP_ENDPOINT", by: stranger)
        #expect(await stage.ask("GET_KEYS", by: stranger)["keys"]?.array?.isEmpty == true)
        for command in ["ACTIVATE_KEY", "DEACTIVATE_KEY", "DELETE_KEY", "EXPORT_KEY", "GET_OTP", "GET_OTP_COUNTER"] {
            #expect(await stage.error(command, #""key":"\#(id)""#, by: stranger) == "KeyNotFound", "\(command)")
        }
        for command in ["GET_DATA", "PUT_DATA"] {
            let members = #""oid":"\#(id)","tag":"85","data":"00""#
            #expect(await stage.error(command, members, by: stranger) == "KeyNotFound", "\(command)")
        }
        #expect(await stage.error("REMOVE_ENDPOINT", #""confirm":true"#, by: stranger) == "")
        #expect(await stage.keys().count == 1)
        let nobody = try stage.server.connect(uid: nil)
        #expect(await stage.error("GET_KEYS", by: nobody) == "InternalError")
    }

    @Test("without the permission every command is denied, and the store is not opened")
    func permission() async throws {
        let store = StateStore { () throws(Failure) in
            Issue.record("the store was opened")
            return nil
        }
        let stage = try await KeyStage(store: store, permissions: [.readers, .cards, .wallet, .mpin, .agent, .scan])
        for command in [
            "START", "GET_KEYS", "NEW_KEY", "ACTIVATE_KEY", "DEACTIVATE_KEY", "DELETE_KEY", "EXPORT_KEY", "IMPORT_SITE",
            "GET_LAST_AUTH", "GET_OTP", "GET_OTP_COUNTER", "GET_DATA", "PUT_DATA", "GET_ENDPOINT", "SETUP_ENDPOINT",
            "UPDATE_ENDPOINT", "REMOVE_ENDPOINT", "WALLET_CHECK", "WALLET_PREPARE", "WALLET_SAVE",
            "PASS_CHECK", "PASS_PREPARE", "PASS_SAVE",
        ] {
            #expect(await stage.ask(command)["msg"]?.string == "ACCESS_DENIED", "\(command)")
        }
    }

    @Test("HOTP counts each code, TOTP follows the time; the secret is in no message and in no log")
    func codes() async throws {
        let secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
        let hotp = try await stage.newKey(#""protocol":"otp","value":"\#(secret)""#)
        for (counter, code) in ["755224", "287082", "359152"].enumerated() {
            #expect(await stage.ask("GET_OTP_COUNTER", #""key":"\#(hotp)""#)["counter"]?.int == counter)
            let answer = await stage.ask("GET_OTP", #""key":"\#(hotp)""#)
            #expect(answer["otp"]?.string == code && answer["counter"]?.int == counter)
        }
        stage.clock.advance(2_000_000_000 - stage.clock.now)
        let totp = try await stage.newKey(
            #""protocol":"otp","type":"totp","digits":8,"value":"hex:3132333435363738393031323334353637383930""#
        )
        let answer = await stage.ask("GET_OTP", #""key":"\#(totp)""#)
        #expect(answer["otp"]?.string == "69279037" && answer["secondsLeft"]?.int == 10)
        #expect(await stage.error("EXPORT_KEY", #""key":"\#(totp)""#) == "KeyNotUsable")
        #expect(!stage.client.hasReceived(secret) && !stage.server.logged.contains { $0.contains(secret) })
    }

    @Test("objects are kept by key and tag")
    func data() async throws {
        let id = try await stage.newKey()
        let object = #""oid":"\#(id)","tag":"9f31""#
        #expect(await stage.ask("GET_DATA", object)["data"] == .null)
        #expect(await stage.error("PUT_DATA", object + #","data":"00ff""#) == "")
        #expect(await stage.ask("GET_DATA", object)["data"]?.string == "00ff")
        let long = String(repeating: "00", count: Vault.maximumData - 1)
        #expect(await stage.error("PUT_DATA", object + #","data":"\#(long)""#) == "StorageFull")
        #expect(await stage.ask("GET_DATA", object)["data"]?.string == "00ff")
        #expect(await stage.ask("GET_ENDPOINT")["bytesUsed"]?.int == 4)
        #expect(await stage.error("PUT_DATA", object + #","data":"""#) == "")
        #expect(await stage.ask("GET_DATA", object)["data"] == .null)
    }

    @Test(
        "a member of a wrong form is refused, and changes nothing",
        arguments: [
            ("NEW_KEY", #""label":7"#), ("NEW_KEY", #""protocol":"seos""#), ("NEW_KEY", #""protocol":"otp""#),
            ("NEW_KEY", #""protocol":"otp","value":"AAAA""#), ("NEW_KEY", #""protocol":"otp","value":"!!!!""#),
            ("NEW_KEY", #""protocol":"otp","value":"GEZDGNBVGY3TQOJQ","digits":9"#),
            ("NEW_KEY", #""protocol":"otp","value":"GEZDGNBVGY3TQOJQ","algorithm":"MD5""#),
            ("NEW_KEY", #""protocol":"otp","value":"GEZDGNBVGY3TQOJQ","counter":-1"#),
            ("NEW_KEY", #""protocol":"otp","value":"GEZDGNBVGY3TQOJQ","counter":9223372036854775807"#),
            ("NEW_KEY", #""protocol":"otp","value":null"#), ("NEW_KEY", #""type":"totp","value":"GEZDGNBVGY3TQOJQ""#),
            ("DELETE_KEY", ""), ("GET_DATA", #""oid":"00","tag":"9f""#), ("PUT_DATA", #""oid":"00","tag":"85""#),
            ("PUT_DATA", #""oid":"00","tag":"85","data":"0""#), ("IMPORT_SITE", #""qr":"{}""#),
            ("REMOVE_ENDPOINT", ""), ("REMOVE_ENDPOINT", #""confirm":false"#), ("REMOVE_ENDPOINT", #""confirm":1"#),
            ("PASS_SAVE", #""reference":"x""#),
        ]
    )
    func badMembers(_ command: String, _ members: String) async throws {
        _ = try await stage.newKey()
        #expect(await stage.error(command, members) == "InvalidParameter")
        #expect(await stage.keys().count == 1)
        #expect(!stage.client.hasReceived("WALLET_PENDING"))
    }

    @Test("the last counter of HOTP gives one code, and then no other one under the same number")
    func lastCounter() async throws {
        let id = try await stage.newKey(#""protocol":"otp","value":"GEZDGNBVGY3TQOJQ","counter":9223372036854775806"#)
        #expect(await stage.ask("GET_OTP", #""key":"\#(id)""#)["counter"]?.int == Int.max - 1)
        #expect(await stage.error("GET_OTP", #""key":"\#(id)""#) == "StorageFull")
        #expect(await stage.ask("GET_OTP_COUNTER", #""key":"\#(id)""#)["counter"]?.int == Int.max)
    }

    @Test("a site is imported from the code of a reader, and its key is never replaced")
    func sites() async throws {
        _ = try await stage.newKey()
        func code(_ key: [UInt8], reader: Character = "1") -> String {
            let site = String(repeating: "a", count: 32)
            let text = #"{\"siteUuid\":\"\#(site)\",\"readerUuid\":\"\#(String(repeating: reader, count: 32))\","#
            return #""qr":"\#(text)\"publicKey\":\"\#(Hex.encode(key))\"}""#
        }
        let group = try Curve.secp256r1.group
        let (first, other) = (try ECPrivateKey(on: group).publicKey.uncompressed, try ECPrivateKey(on: group).publicKey)
        let answer = await stage.ask("IMPORT_SITE", code(first))
        #expect(answer["fingerprint"]?.string == Hex.encode(PublicKeyText.fingerprint(first)))
        #expect(await stage.error("IMPORT_SITE", code(first, reader: "2")) == "")
        #expect(await stage.error("IMPORT_SITE", code(other.uncompressed, reader: "3")) == "KeyNotUsable")
        let sites = try #require(await stage.keys().first?["sites"]?.array)
        #expect(sites.count == 1 && sites[0]["readers"]?.array?.count == 2)
        #expect(sites[0]["siteKey"]?.string == Hex.encode(first))
        _ = try await stage.newKey()
        #expect(await stage.error("IMPORT_SITE", code(first)) == "KeyNotFound")
    }

    @Test("a TPM that is gone or was cleared is reported by name, and no key is lost")
    func faultsOfTheTPM() async throws {
        let stage = try await KeyStage(keys: .tpm)
        _ = try await stage.newKey()
        let device = try #require(stage.device)
        #expect(await stage.ask("WALLET_CHECK")["protection"]?.array == [.string("tpm")])
        device.stop()
        let gone = await stage.ask("NEW_KEY")
        #expect(gone["error"]?.string == "TPMUnavailable" && gone["code"] == .null)
        #expect(gone["description"]?.string?.contains("TPM") == true)
        #expect(await stage.ask("PASS_CHECK")["eligible"] == .bool(false))
        #expect(await stage.ask("PASS_PREPARE")["error"]?.string == "TPMUnavailable")
        #expect(await stage.keys().count == 1)
        try await device.start()
        try device.clear()
        // The store was opened before. A new key is one of the TPM as it is now.
        #expect(await stage.error("NEW_KEY") == "")
        #expect(await stage.keys().map { $0["protection"]?.string } == ["tpm", "tpm"])
        let folder = stage.folder.path + "/state"
        let tpm = TPM(device.path, timeLimit: .seconds(240))
        let copy = stage.folder.path + "/copy"
        try FileManager.default.copyItem(atPath: folder, toPath: copy)
        let later = try await KeyStage(store: StateStore(folder: copy, tpm: tpm))
        let answer = await later.ask("GET_KEYS")
        #expect(answer["error"]?.string == "DataStorageDecryptionFailed" && answer["code"]?.int == 999)
        #expect(await later.error("SETUP_ENDPOINT") == "DataStorageDecryptionFailed")
    }

    @Test("a broken store is reported with its number, and is not changed")
    func brokenStore() async throws {
        _ = try await stage.newKey()
        let key = Data(repeating: 7, count: 32)
        let folder = stage.folder.path + "/other"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: stage.folder.path + "/state/store.db", toPath: folder + "/store.db")
        #expect(
            FileManager.default.createFile(
                atPath: folder + "/store.key",
                contents: key,
                attributes: [.posixPermissions: 0o600]
            )
        )
        let before = FileManager.default.contents(atPath: folder + "/store.db")
        let later = try await KeyStage(store: StateStore(folder: folder))
        let answer = await later.ask("GET_KEYS")
        #expect(answer["error"]?.string == "DataStorageDecryptionFailed" && answer["code"]?.int == 999)
        #expect(await later.error("SETUP_ENDPOINT") == "DataStorageDecryptionFailed")
        let check = await later.ask("WALLET_CHECK")
        #expect(check["eligible"] == .bool(false))
        #expect(FileManager.default.contents(atPath: folder + "/store.db") == before)
    }

    @Test("a store of which a part is damaged is a failed check of GET_HEALTH with the reason")
    func damagedStore() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/state/store.db"
        do {
            let store = try Store(folder: folder.path + "/state")
            for number in 0..<100 {
                let value = SecretBox(Secret([UInt8](repeating: 1, count: 500)))
                try await store.set("1000/\(number)", in: StoreSpace("vault keys"), to: value)
            }
        }
        let handle = try #require(FileHandle(forUpdatingAtPath: file))
        try handle.seek(toOffset: try handle.seekToEnd() - 4096)
        try handle.write(contentsOf: Data(repeating: 0x5A, count: 4096))
        try handle.close()
        let daemon = try await DaemonProcess(environment: ["STATE_DIRECTORY": folder.path + "/state"])
        let health = await (try daemon.connect()).ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
        let check = health?["checks"]?.array?.first { $0["name"] == .string("store") }
        #expect(check?["advice"]?.string?.contains("store.db is damaged") == true, "\(health ?? .null)")
        #expect(daemon.end == nil)
    }

    @Test("while the record of the endpoint is damaged nothing is added that REMOVE_ENDPOINT then deletes")
    func damagedEndpoint() async throws {
        let key = try await stage.newKey()
        let record = SecretBox(Secret(#"{"version":2}"#.utf8))
        try await stage.store.required().set("1000", in: StoreSpace("vault endpoints"), to: record)
        let damaged = "DataStorageDecryptionFailed"
        for command in ["PASS_CHECK", "WALLET_CHECK"] {
            let check = await stage.ask(command)
            #expect(check["eligible"] == .bool(false) && check["error"]?.string == damaged, "\(command)")
        }
        let additions = [
            ("NEW_KEY", ""), ("NEW_KEY", #""protocol":"otp","value":"GEZDGNBVGY3TQOJQ""#), ("PASS_PREPARE", ""),
            ("WALLET_PREPARE", ""), ("PASS_SAVE", #""reference":"a.b.c""#), ("UPDATE_ENDPOINT", ""),
            ("SETUP_ENDPOINT", ""), ("PUT_DATA", #""oid":"\#(key)","tag":"9f31","data":"00""#),
            (
                "IMPORT_SITE",
                #""qr":"{\"siteUuid\":\"00000000-0000-0000-0000-000000000001\",\"readerUuid\":"#
                    + #"\"00000000-0000-0000-0000-000000000002\",\"publicKey\":\"\#(Self.point)\"}""#
            ),
        ]
        for (command, members) in additions {
            let error = await stage.error(command, members)
            #expect(error == damaged, "\(command) \(members)")
        }
        #expect(await stage.ask("GET_KEYS")["keys"]?.array?.map { $0["id"]?.string } == [key])
        // What is there can be used and taken away.
        for (command, members) in [
            ("DEACTIVATE_KEY", #""key":"\#(key)""#), ("ACTIVATE_KEY", #""key":"\#(key)""#),
            ("PUT_DATA", #""oid":"\#(key)","tag":"9f31","data":"""#), ("REMOVE_ENDPOINT", #""confirm":true"#),
            ("SETUP_ENDPOINT", ""), ("NEW_KEY", ""),
        ] {
            #expect(await stage.error(command, members) == "", "\(command)")
        }
        #expect(await stage.ask("PASS_CHECK")["eligible"] == .bool(true))
    }

    /// The base point of P-256.
    private static let point =
        "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"

    @Test("a key of a later version is named, does not hide the others, and can be deleted")
    func laterVersion() async throws {
        let (bad, good) = (try await stage.newKey(), try await stage.newKey())
        let record = SecretBox(Secret(#"{"version":2}"#.utf8))
        try await stage.store.required().set("1000/\(bad)", in: StoreSpace("vault keys"), to: record)
        let answer = await stage.ask("GET_KEYS")
        #expect(answer["keys"]?.array?.map { $0["id"]?.string } == [good])
        #expect(answer["unreadable"]?.array == [.string(bad)])
        let check = await stage.ask("WALLET_CHECK")
        #expect(check["eligible"] == .bool(true) && check["unreadable"]?.array == [.string(bad)])
        #expect(await stage.error("GET_ENDPOINT") == "")
        #expect(await stage.error("ACTIVATE_KEY", #""key":"\#(bad)""#) == "DataStorageDecryptionFailed")
        #expect(await stage.error("NEW_KEY") == "")
        #expect(await stage.error("DELETE_KEY", #""key":"\#(bad)""#) == "")
        #expect(await stage.ask("GET_KEYS")["unreadable"]?.array == [])
    }
}
