// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import HDWallet
import Keycard
import TestSupport
import Testing
import Text

@Suite("Setting up and restoring a card", .timeLimit(.minutes(5)))
@Loop struct SetupTests {
    private let bench: WalletBench

    init() async throws { bench = try await WalletBench() }

    /// The first vector of BIP-39, whose first address is 0x9858EfFD232B4033E47d90003D41EC34EcaEda94.
    private static let abandon = Array(repeating: "abandon", count: 11).joined(separator: " ") + " about"
    private static let address = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"

    private func newCard(_ version: String, _ more: String = "") -> String {
        #"{"kind":"keycard","version":"\#(version)","initialised":false\#(more)}"#
    }

    private func emptyCard(_ version: String, _ more: String = "") -> String {
        #"{"kind":"keycard","version":"\#(version)"\#(more)}"#
    }

    private static let setup = #"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE","userId":"u1","tokenId":"t1"}"#

    @Test("a new card gets PIN, PUK, words and keys, and is registered with its addresses", arguments: generations)
    func setup(version: String) async throws {
        let user = try await bench.user(with: newCard(version))
        let end = try await user.run(Self.setup)
        #expect(
            user.names == [
                "FLOW_STARTED", "ENTER_NEW_PIN", "ENTER_NEW_PUK", "PIN_VALIDATED", "SHOW_PAPER_WALLET", "ENTER_WORDS",
                "REGISTER_DEVICE", "REQUEST_ACKNOWLEDGED", "FLOW_COMPLETE",
            ]
        )
        let device = try #require(end.entity)
        #expect(user.words.count == 12)
        let positions = (user.last("ENTER_WORDS")?["positions"]?.array ?? []).compactMap(\.int)
        #expect(positions.count == 3 && positions == positions.sorted() && Set(positions).count == 3)

        // The device is what BIP-32 derives from the words that were shown.
        let mnemonic = try Mnemonic(words: Secret(user.words.joined(separator: " ").utf8))
        let master = try ExtendedPrivateKey(seed: try mnemonic.seed())
        let address = EthereumAddress(try master.derive(.firstEthereumAddress).key.publicKey).description
        let signer = EthereumAddress(try master.derive(.ethereumSigner).key.publicKey).description
        #expect(device["address"] == .string(address))
        #expect(device["api_signer_address"] == .string(signer))
        #expect(device["keyUID"] == .string(Hex.encode(try master.keyUID)))
        #expect(device["created"] == .bool(true))
        #expect(device["status"] == .string("REGISTERED"))
        #expect(device["user_id"] == .string("u1") && device["token_id"] == .string("t1"))
        let parameters = try #require(user.last("REGISTER_DEVICE")?["apiParams"])
        #expect(
            parameters.members?.map(\.key).sorted() == [
                "address", "api_signer_address", "status", "updated_timestamp",
            ]
        )
        #expect(parameters["status"] == .string("CREATED"))
        #expect(user.last("REQUEST_ACKNOWLEDGED")?["contextEntity"] == end["contextEntity"])

        // The card has the PIN of the user, and a second run changes no keys.
        try await bench.insertAgain()
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"\#(WalletUser.newPIN)"}"#]
        let again = try await user.run(Self.setup)
        #expect(
            user.names == [
                "FLOW_STARTED", "ENTER_PIN", "PIN_VALIDATED", "REGISTER_DEVICE", "REQUEST_ACKNOWLEDGED",
                "FLOW_COMPLETE",
            ]
        )
        #expect(again.entity?["address"] == device["address"])
        #expect(again.entity?["created"] == .bool(false))
    }

    @Test("the keys are loaded only after the user has typed the words that were asked back", arguments: generations)
    func wrongWords(version: String) async throws {
        let user = try await bench.user(with: emptyCard(version))
        user.answers["ENTER_WORDS"] = [
            #"{"cmd":"SET_WORDS","value":"zoo zoo zoo"}"#, #"{"cmd":"SET_WORDS"}"#, #"{"cmd":"SET_WORDS","value":3}"#,
            #"{"cmd":"CANCEL"}"#,
        ]
        let end = try await user.run(Self.setup)
        #expect(end.code == "USER_CANCELED")
        let errors = user.heard.filter { $0["msg"] == .string("ENTER_WORDS") }.map { $0["error"]?.string }
        #expect(errors == [nil, "The words do not match", "Value cannot be undefined", "Invalid value"])
        #expect(try await bench.info().keyUID == nil)
    }

    @Test("badged draws the PUK if it should, and the card takes it", arguments: generations)
    func generatedPUK(version: String) async throws {
        let user = try await bench.user(with: newCard(version))
        let command = #"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE","words":24,"generatePUK":true}"#
        _ = try await user.run(command)
        #expect(user.words.count == 24)
        let puk = try #require(user.last("SHOW_PUK")?["puk"]?.string)
        #expect(puk.utf8.count == 12 && puk.utf8.allSatisfy { (0x30...0x39).contains($0) })

        try await bench.insertAgain()
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"000000"}"#]
        user.answers["ENTER_PUK"] = [#"{"cmd":"SET_PUK","value":"\#(puk)"}"#]
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(end["msg"] == .string("FLOW_COMPLETE"))
        #expect(user.names.filter { $0 == "INVALID_PIN" }.count == 3)
    }

    @Test("a device that was registered with another address interrupts the workflow")
    func wrongAddress() async throws {
        let user = try await bench.user(with: emptyCard("3.1", #","words":"\#(Self.abandon)""#))
        user.registeredAddress = "0x0000000000000000000000000000000000000001"
        let end = try await user.run(Self.setup)
        #expect(end.code == "WRONG_DEVICE_ADDRESS")
        #expect(!user.names.contains("REQUEST_ACKNOWLEDGED"))
    }

    @Test("the answer of the app must be an object of a reasonable size")
    func wrongResponse() async throws {
        let user = try await bench.user(with: emptyCard("4.0", #","words":"\#(Self.abandon)""#))
        let long = String(repeating: "x", count: 20_000)
        user.answers["REGISTER_DEVICE"] = [
            #"{"cmd":"DEVICE_REGISTERED"}"#, #"{"cmd":"DEVICE_REGISTERED","apiResponse":[]}"#,
            #"{"cmd":"DEVICE_REGISTERED","apiResponse":{"x":"\#(long)"}}"#,
            #"{"cmd":"DEVICE_REGISTERED","apiResponse":{"address":"\#(Self.address.lowercased())"}}"#,
        ]
        let end = try await user.run(Self.setup)
        #expect(end.entity?["address"] == .string(Self.address))
        let errors = user.heard.filter { $0["msg"] == .string("REGISTER_DEVICE") }.map { $0["error"]?.string }
        let wrong = "apiResponse must be an object of at most 16384 bytes"
        #expect(errors == [nil, wrong.replacing("must", with: "is missing: it must"), wrong, wrong])
    }

    @Test("words that the user types restore a new card", arguments: generations)
    func restore(version: String) async throws {
        let user = try await bench.user(with: newCard(version))
        user.answers["ENTER_WORDS"] = [
            #"{"cmd":"SET_WORDS","value":"abandon about"}"#,
            #"{"cmd":"SET_WORDS","value":"\#(Self.abandon.replacing("about", with: "abouts"))"}"#,
            #"{"cmd":"SET_WORDS","value":"\#(Self.abandon.replacing("about", with: "zoo"))"}"#,
            #"{"cmd":"SET_WORDS","value":"  \#(Self.abandon.uppercased())\t"}"#,
        ]
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS"}"#)
        let errors = user.heard.filter { $0["msg"] == .string("ENTER_WORDS") }.map { $0["error"]?.string }
        #expect(
            errors == [
                nil, "You must provide 12 words", "Word 12 is not in the list",
                "The checksum of the words is wrong",
            ]
        )
        #expect(end.entity?["address"] == .string(Self.address))
        #expect(end.entity?["created"] == .bool(true))
        #expect(user.names.suffix(4) == ["ENTER_NEW_PIN", "ENTER_NEW_PUK", "PIN_VALIDATED", "FLOW_COMPLETE"])
    }

    @Test("words of another wallet are refused before anything is loaded", arguments: generations)
    func otherWords(version: String) async throws {
        let user = try await bench.user(with: emptyCard(version))
        user.answers["ENTER_WORDS"] = [
            #"{"cmd":"SET_WORDS","value":"\#(Self.abandon)"}"#, #"{"cmd":"CANCEL"}"#,
        ]
        let uid = String(repeating: "ab", count: 32)
        let command = #"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS","keyUID":"\#(uid)"}"#
        let end = try await user.run(command)
        #expect(user.last("ENTER_WORDS")?["error"] == .string("The words are those of another wallet"))
        #expect(end.code == "USER_CANCELED")
        #expect(try await bench.info().keyUID == nil)
    }

    @Test("a card with other keys than the words is left as it is", arguments: generations)
    func otherKeys(version: String) async throws {
        let words = "legal winner thank year wave sausage worth useful legal winner thank yellow"
        try await bench.insert(emptyCard(version, #","words":"\#(words)""#))
        let before = try await bench.info().keyUID
        let user = try WalletUser(bench)
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(Self.abandon)"}"#]
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS"}"#)
        #expect(end.code == "DIFFERENT_OWNER_DEVICE")
        #expect(user.names == ["FLOW_STARTED", "ENTER_WORDS", "FLOW_INTERRUPTED"])
        #expect(try await bench.info().keyUID == before)
    }

    @Test("a card that has the keys of the words already is compared with them", arguments: generations)
    func sameKeys(version: String) async throws {
        let user = try await bench.user(with: emptyCard(version, #","words":"\#(Self.abandon)""#))
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(Self.abandon)"}"#]
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS"}"#)
        #expect(end.entity?["address"] == .string(Self.address))
        #expect(end.entity?["created"] == .bool(false))

        // The duress PIN opens another wallet, whose keys are not those of the words. 3.0 has none.
        guard version != "3.0" else { return }
        try await bench.insertAgain()
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"111111"}"#]
        let duress = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS"}"#)
        #expect(duress.code == "WRONG_WALLET")
        try await bench.insertAgain()
        #expect(try await user.run(Self.setup).code == "WRONG_WALLET")
    }

    // MARK: A duress PIN and a passphrase

    @Test("the user chooses the duress PIN, which opens another wallet", arguments: ["3.1", "4.0"])
    func duressPIN(version: String) async throws {
        let user = try await bench.user(with: newCard(version))
        user.answers["ENTER_DURESS_PIN"] = [WalletUser.newPIN, "12345", "1234567", "22222x", WalletUser.duressPIN].map {
            #"{"cmd":"SET_DURESS_PIN","value":"\#($0)"}"#
        }
        let command = #"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE","duressPin":true}"#
        let device = try await user.run(command)
        #expect(device["msg"] == .string("FLOW_COMPLETE"))
        #expect(user.names.prefix(2) == ["FLOW_STARTED", "ENTER_NEW_PIN"] && user.names[7] == "ENTER_NEW_PUK")
        let questions = user.heard.filter { $0["msg"] == .string("ENTER_DURESS_PIN") }
        let form = "You must provide 6 digits"
        #expect(
            questions.map { $0["error"]?.string } == [nil, "The duress PIN must differ from the PIN", form, form, form]
        )
        #expect(questions.allSatisfy { $0["reader"] != nil && $0["retryCounter"] == nil })
        #expect(try await bench.secrets().hasChosenDuressPIN)

        // Both PINs open a wallet; badged knows that the one of the duress PIN is another one.
        for (pin, code) in [(WalletUser.duressPIN, "WRONG_WALLET"), (WalletUser.newPIN, nil)] {
            try await bench.insertAgain()
            user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"\#(pin)"}"#]
            let end = try await user.run(Self.setup)
            #expect(end.code == code, "\(pin)")
            #expect(user.names.contains("PIN_VALIDATED") && !user.names.contains("INVALID_PIN"))
        }
    }

    @Test("without the member the duress PIN is random", arguments: ["3.1", "4.0"])
    func randomDuressPIN(version: String) async throws {
        let user = try await bench.user(with: newCard(version))
        _ = try await user.run(Self.setup)
        #expect(!user.names.contains("ENTER_DURESS_PIN"))
        #expect(try await !bench.secrets().hasChosenDuressPIN)
    }

    @Test(
        "a card that can take no duress PIN is refused before any question",
        arguments: [
            ("3.0", #","initialised":false"#, "UNSUPPORTED_CARD"), ("3.1", "", "DEVICE_ALREADY_SET"),
            ("4.0", "", "DEVICE_ALREADY_SET"),
        ],
        ["SETUP_DEVICE", "AUTHORIZE_DEVICE_WITH_MNEMONICS"]
    )
    func noDuressPIN(card: (version: String, more: String, code: String), workflow: String) async throws {
        let user = try await bench.user(with: emptyCard(card.version, card.more))
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(Self.abandon)"}"#]
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"\#(workflow)","duressPin":true}"#)
        #expect(end.code == card.code, "\(end)")
        #expect(user.names.filter { $0 != "ENTER_WORDS" } == ["FLOW_STARTED", "FLOW_INTERRUPTED"])
        #expect(try await bench.secrets().checks == 0)
    }

    @Test("the keys are those of the words with the passphrase", arguments: generations)
    func passphrase(version: String) async throws {
        let user = try await bench.user(with: newCard(version))
        let device = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE","passphrase":true}"#)
        #expect(
            user.names == [
                "FLOW_STARTED", "ENTER_NEW_PIN", "ENTER_NEW_PUK", "PIN_VALIDATED", "SHOW_PAPER_WALLET", "ENTER_WORDS",
                "ENTER_PASSPHRASE", "REGISTER_DEVICE", "REQUEST_ACKNOWLEDGED", "FLOW_COMPLETE",
            ]
        )
        let words = user.words.joined(separator: " ")
        let mnemonic = try Mnemonic(words: Secret(words.utf8))
        let wallet = try KeycardWallet(seed: try mnemonic.seed(passphrase: Secret(WalletUser.passphrase.utf8)))
        #expect(device.entity?["keyUID"] == .string(Hex.encode(wallet.keyUID)))
        #expect(device.entity?["address"] == .string(EthereumAddress(wallet.firstKey).description))
        #expect(try await bench.info().keyUID == wallet.keyUID)

        // The same words without the passphrase are another wallet; with it they are the one of the card.
        let restore = #"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS""#
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(words)"}"#]
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"\#(WalletUser.newPIN)"}"#]
        try await bench.insertAgain()
        #expect(try await user.run(restore + "}").code == "DIFFERENT_OWNER_DEVICE")
        try await bench.insertAgain()
        let again = try await user.run(restore + #","passphrase":true}"#)
        #expect(again.entity?["address"] == device.entity?["address"])
        #expect(again.entity?["created"] == .bool(false))
    }

    /// The first published vector of BIP-39 with the passphrase TREZOR, and the key UID that BIP-32 derives from its seed.
    @Test("a published vector of BIP-39 restores the wallet of its seed", arguments: generations)
    func publishedSeed(version: String) async throws {
        let seed =
            "c55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e53495531f09a6987599d18264c1e1c92f2cf141"
            + "630c7a3c4ab7c81b2f001698e7463b04"
        let wallet = try KeycardWallet(seed: Secret(try #require(Hex.decode(seed))))
        let user = try await bench.user(with: newCard(version))
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(Self.abandon)"}"#]
        let passphrases = ["", "Z\u{FC}rich", "a\\tb", String(repeating: "x", count: 257), "trezor", "TREZOR"]
        user.answers["ENTER_PASSPHRASE"] = passphrases.map { #"{"cmd":"SET_PASSPHRASE","value":"\#($0)"}"# }
        let command =
            #"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS","passphrase":true,"keyUID":""#
            + #"\#(Hex.encode(wallet.keyUID))"}"#
        let end = try await user.run(command)
        let errors = user.heard.filter { $0["msg"] == .string("ENTER_PASSPHRASE") }.map { $0["error"]?.string }
        let form = "You must provide 1 - 256 ASCII characters"
        #expect(errors == [nil, form, form, form, form, nil])
        #expect(
            user.last("ENTER_WORDS")?["error"] == .string("The words and the passphrase are those of another wallet")
        )
        #expect(end.entity?["address"] == .string(EthereumAddress(wallet.firstKey).description))
        #expect(try await bench.info().keyUID == wallet.keyUID)
    }

    @Test("a card that has keys gets no passphrase, and keeps its tries", arguments: generations)
    func lateForPassphrase(version: String) async throws {
        let user = try await bench.user(with: emptyCard(version, #","words":"\#(Self.abandon)""#))
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE","passphrase":true}"#)
        #expect(end.code == "DEVICE_ALREADY_SET")
        #expect(user.names == ["FLOW_STARTED", "FLOW_INTERRUPTED"])
    }

    @Test("the choices are true or false", arguments: ["generatePUK", "duressPin", "passphrase"])
    func choiceForms(member: String) async throws {
        let user = try WalletUser(bench)
        for value in ["1", #""true""#, "{}"] {
            let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE","\#(member)":\#(value)}"#)
            #expect(
                end.code == "INVALID_DATA" && end["error"]?["message"]?.string?.contains(member) == true,
                "\(value) \(end)"
            )
        }
    }

    @Test("without a store nothing is done with the card")
    func noStore() async throws {
        let bench = try await WalletBench(hasStore: false)
        let user = try await bench.user(with: newCard("4.0"))
        #expect(try await user.run(Self.setup).code == "STORE_UNAVAILABLE")
        #expect(try await bench.info().isInitialized == false)
    }

    @Test("a card of a foreign authority is refused before a PIN is typed for it")
    func foreign() async throws {
        let bench = try await WalletBench(trustsVirtualCards: false)
        let user = try await bench.user(with: newCard("4.0"))
        #expect(try await user.run(Self.setup).code == "FOREIGN_CARD")
        #expect(user.names == ["FLOW_STARTED", "FLOW_INTERRUPTED"])
    }

    @Test("values of a wrong form are refused, and the question stays open")
    func wrongForms() async throws {
        let user = try await bench.user(with: newCard("3.1"))
        user.answers["ENTER_NEW_PIN"] = [
            #"{"cmd":"SET_NEW_PIN","value":"12345"}"#, #"{"cmd":"SET_NEW_PIN","value":"12345a"}"#,
            #"{"cmd":"SET_NEW_PIN","question":0,"value":"123456"}"#,
        ]
        user.answers["BAD_STATE"] = [#"{"cmd":"SET_NEW_PIN","value":"654321"}"#]
        user.answers["ENTER_NEW_PUK"] = [#"{"cmd":"SET_NEW_PUK","value":"123456"}"#, #"{"cmd":"CANCEL","error":{}}"#]
        let end = try await user.run(Self.setup)
        #expect(end.code == "USER_CANCELED")
        #expect(
            user.heard.map { $0["error"]?.string }.dropFirst().dropLast() == [
                nil, "You must provide 6 digits", "You must provide 6 digits", "SET_NEW_PIN", nil,
                "You must provide 12 digits",
            ]
        )
        #expect(try await bench.info().isInitialized == false)
    }

    @Test("a PIN with the prefix of a passphrase is refused by name")
    func passphrasePrefix() async throws {
        let user = try await bench.user(with: emptyCard("4.0"))
        user.answers["ENTER_PIN"] = [
            #"{"cmd":"SET_PIN","value":"000000","passphrasePrefix":"thirty characters and more of a prefix"}"#,
            #"{"cmd":"CANCEL"}"#,
        ]
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(user.last("ENTER_PIN")?["error"]?.string?.hasPrefix("INVALID_PASSPHRASE_PREFIX") == true)
        #expect(try await bench.counter("retryCounter") == 3)
    }
}
