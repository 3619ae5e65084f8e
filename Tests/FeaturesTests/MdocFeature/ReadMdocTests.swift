// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import CredentialFeature
import Crypto
import Document
import Host
import ISO7816
import MdocFeature
import MobileDocument
import Readers
import ReadersVirtual
import Server
import Synchronization
import Taps
import TestSupport
import Testing
import Text
import VirtualTaps

@testable import VirtualDocument

/// RUN_READ_MDOC over a socket, with virtual phones in a virtual reader.
@Suite("Reading a phone", .timeLimit(.minutes(5)))
@Loop struct ReadMdocTests {
    private static let over18 = #"{"cmd":"RUN_READ_MDOC","ageOver":18}"#
    private static let mdl = "org.iso.18013.5.1.mDL"

    @Loop final class Stage {
        let server: TestServer
        let client: TestClient
        private let phones = VirtualMdocKind()

        /// `second` is the milliseconds of a second of `timeout`; `isTrusted` says whether badged trusts the authority of
        /// the virtual phones.
        init(
            second: Int64 = 1000,
            readers: Int = 1,
            isTrusted: Bool = true,
            identities: [String: DeviceRequest.Identity] = [:],
            permissions: Permissions = .all,
            authorities: @escaping MdocFeature.Authorities = { _ in MdocAuthorities() },
            time: @escaping @Sendable () -> Int = { Int(Loop.wallClock / 1000) }
        ) async throws {
            let phones = phones
            server = try await TestServer(
                readers: readers,
                permissions: permissions,
                moreCards: [phones, VirtualTagKind()],
                moreFeatures: {
                    [
                        CredentialFeature($0, PKOCSite(), [TagTapReader()]),
                        MdocFeature(
                            $0,
                            authorities: authorities,
                            identities: identities,
                            virtualAuthority: { isTrusted ? try? phones.issuer().certificate : nil },
                            time: time,
                            second: second
                        ),
                    ]
                }
            )
            client = try server.connect()
            _ = await client.exchange()
        }

        /// Begins a reading, up to the wish for a phone.
        func begin(_ command: String = ReadMdocTests.over18) async -> JSON? { await client.ask(command, "INSERT_CARD") }

        /// Puts a phone with these entries on the reader.
        func tap(_ entries: String = "", kind: String = "mdoc") async {
            let card = #"{"kind":"\#(kind)"\#(entries.isEmpty ? "" : ",")\#(entries)}"#
            await client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":\#(card)}"#)
        }

        /// Puts the same phone back on the reader.
        func tapAgain() async { await client.send(#"{"cmd":"SET_CARD","name":"Simulator"}"#) }

        /// Takes the phone away, and puts it back.
        func liftAndTap() async {
            await server.removeCard(from: "Simulator")
            await tapAgain()
        }

        /// Reads a phone, and returns the final message.
        func read(_ entries: String = "", _ command: String = ReadMdocTests.over18) async -> JSON? {
            _ = await begin(command)
            await tap(entries)
            return await client.next("MDOC")
        }

        /// A counter of the phone, such as `selects`.
        func counter(_ name: String) async -> JSON? {
            await server.readers?.card(in: "Simulator")?.counters.first { $0.key == name }?.value
        }
    }

    private static func documents(_ names: String..., docType: String = mdl) -> String {
        let items = names.map { #"{"name":"\#($0)"}"# }.joined(separator: ",")
        let document = #"{"docType":"\#(docType)","items":{"org.iso.18013.5.1":[\#(items)]}}"#
        return #"{"cmd":"RUN_READ_MDOC","documents":[\#(document)]}"#
    }

    // MARK: What a phone shows

    @Test(
        "a phone proves an age over NFC, with either handover and either proof, and one SELECT",
        arguments: [("static", "nfcStatic"), ("negotiated", "nfcNegotiated")],
        ["signature", "mac"]
    )
    func age(handover: (String, String), proof: String) async throws {
        let stage = try await Stage()
        let end = try #require(await stage.read(#""handover":"\#(handover.0)","proof":"\#(proof)""#))
        #expect(end["success"] == .bool(true) && end["verdict"] == .string("genuine"), "\(end)")
        #expect(end["age"] == #"{"over":18,"answer":"yes"}"#)
        #expect(
            end["engagement"] == .string(handover.1) && end["transport"] == .string("nfc")
                && end["reader"] == .string("Simulator")
        )
        let document = try #require(end["documents"]?.array?.first { $0["docType"] == .string("eu.europa.ec.av.1") })
        #expect(document["items"] == #"{"eu.europa.ec.av.1":{"age_over_18":true}}"#)
        #expect(document["checks"]?["device"]?["method"] == .string(proof))
        #expect(await stage.counter("selects") == .number("1"))
    }

    @Test("a phone that was waited for is judged by the clock and the authorities of its answer")
    func waited() async throws {
        let clock = TestTime()
        let asked = Mutex<[Int]>([])
        let stage = try await Stage(
            authorities: { time in
                asked.withLock { $0.append(time) }
                return MdocAuthorities()
            },
            time: { clock.now }
        )
        _ = await stage.begin()
        clock.advance(600)
        await stage.tap()
        #expect(await stage.client.next("MDOC")?["success"] == .bool(true))
        #expect(asked.withLock { $0 } == [clock.now])
    }

    @Test(
        "the answer about an age is yes or no; a phone gives nothing if no age of it answers",
        arguments: [21, 70, 40]
    )
    func answers(age: Int) async throws {
        let stage = try await Stage()
        let end = await stage.read("", #"{"cmd":"RUN_READ_MDOC","ageOver":\#(age)}"#)
        let answer = end?["age"]?["answer"]?.string ?? end?["error"]?.string
        #expect(answer == [21: "yes", 70: "no", 40: "Declined"][age], "\(String(describing: end))")
    }

    @Test("elements have their values, and what the holder does not give is withheld")
    func values() async throws {
        let stage = try await Stage()
        let command = Self.documents("family_name", "birth_date", "portrait", "sex", "driving_privileges", "given_name")
        let end = try #require(await stage.read(#""withheld":["given_name"]"#, command))
        let document = try #require(end["documents"]?.array?.first)
        let items = try #require(document["items"]?["org.iso.18013.5.1"])
        #expect(end["verdict"] == .string("genuine"), "\(end)")
        #expect(
            items["family_name"] == .string("Eriksson") && items["birth_date"] == .string("1974-08-12")
                && items["sex"] == .number("2")
        )
        #expect(items["portrait"]?["format"] == .string("jpeg"))
        #expect(items["driving_privileges"]?.array?.first?["vehicle_category_code"] == .string("B"))
        #expect(document["withheld"] == #"["given_name"]"# && document["unasked"] == "[]")
        #expect(end["age"] == nil)
    }

    @Test("a long text is read, and an answer that no message can hold names the bound of messages")
    func tooLarge() async throws {
        let long = String(repeating: "x", count: 200_000)
        let read = await (try await Stage()).read(
            #""documents":[{"docType":"\#(Self.mdl)","items":{"org.iso.18013.5.1":{"a":"\#(long)"}}}]"#,
            Self.documents("a")
        )
        #expect(read?["documents"]?.array?.first?["items"]?["org.iso.18013.5.1"]?["a"] == .string(long))
        let text = String(repeating: "x", count: 990_000)
        let end = await (try await Stage()).read(
            #""documents":[{"docType":"\#(Self.mdl)","items":{"org.iso.18013.5.1":{"a":"\#(text)"}}}]"#,
            Self.documents("a")
        )
        #expect(end?["error"] == .string("TooLarge"), "\(String(describing: end))")
        #expect(end?["message"]?.string?.contains("1 MiB") == true && end?["message"]?.string?.contains("2") == false)
    }

    @Test("without the authority nothing is genuine, and a yes is no answer")
    func unknownAuthority() async throws {
        let end = await (try await Stage(isTrusted: false)).read()
        #expect(end?["verdict"] == .string("unverified") && end?["age"]?["answer"] == .string("unknown"))
        let end2 = await (try await Stage()).read(#""quirks":["unknownIssuer"]"#)
        #expect(end2?["verdict"] == .string("unverified") && end2?["age"]?["answer"] == .string("unknown"))
    }

    @Test(
        "a document that is changed, copied or over is suspect",
        arguments: [
            ("changedItem", "hashes", "wrongHash"), ("itemTwice", "hashes", "malformed"),
            ("clone", "device", "wrongSignature"), ("replayed", "device", "wrongSignature"),
        ]
    )
    func forged(quirk: String, check: String, reason: String) async throws {
        for proof in ["signature", "mac"] {
            let end = await (try await Stage()).read(#""proof":"\#(proof)","quirks":["\#(quirk)"]"#)
            #expect(
                end?["verdict"] == .string("suspect") && end?["age"]?["answer"] == .string("unknown"),
                "\(String(describing: end))"
            )
            let found = end?["documents"]?.array?.first?["checks"]?[check]
            #expect(found?["result"] == .string("failed") && found?["reason"] == .string(reason))
        }
        let over = await (try await Stage()).read(#""quirks":["expired"]"#)
        #expect(over?["documents"]?.array?.first?["checks"]?["document"]?["findings"] == #"["expired"]"#)
    }

    @Test(
        "what a phone does wrong has its word",
        arguments: [
            (#""consent":"no""#, "Declined"), (#""consent":"no","quirks":["documentErrors"]"#, "Declined"),
            (#""documents":[]"#, "Declined"), (#""quirks":["sessionStatus20"]"#, "Declined"),
            (#""quirks":["responseStatus10"]"#, "ReaderRefused"), (#""quirks":["responseStatus11"]"#, "Malformed"),
            (#""quirks":["sessionStatus10"]"#, "SessionError"), (#""quirks":["notCBOR"]"#, "SessionError"),
            (#""quirks":["wrongTag"]"#, "SessionError"), (#""quirks":["bytesAfterResponse"]"#, "Malformed"),
            (#""quirks":["wrongLength"]"#, "Malformed"), (#""quirks":["wrongObject"]"#, "Malformed"),
            (#""handover":"negotiated","quirks":["refusesService"]"#, "NoEngagement"),
            (#""transports":["bleCentral"]"#, "EngagementUnsupported"),
        ]
    )
    func faults(entries: String, error: String) async throws {
        let stage = try await Stage()
        let end = try #require(await stage.read(entries))
        #expect(end["success"] == .bool(false) && end["error"] == .string(error), "\(end)")
    }

    @Test(
        "what differs between phones does not matter",
        arguments: [
            #""handover":"negotiated","waits":3"#, #""longestRead":15"#,
            #""handover":"negotiated","longestWrite":13"#, #""longestCommand":255,"longestResponse":256"#,
            #""quirks":["endsWithData"]"#, #""quirks":["deviceItems"]"#, #""consentMs":30"#,
            #""quirks":["otherFile"]"#, #""quirks":["wrongRest"],"longestResponse":256"#,
            #""transports":["nfc","bleCentral","blePeripheral"],"handover":"negotiated""#,
        ]
    )
    func odd(entries: String) async throws {
        let end = await (try await Stage()).read(entries)
        #expect(end?["verdict"] == .string("genuine"), "\(String(describing: end))")
    }

    @Test("of several ages a phone gives two, and the others are not called withheld")
    func twoAges() async throws {
        let ages = ["age_over_16", "age_over_18", "age_over_21"]
        let command = Self.documents(ages[0], ages[1], ages[2])
        let end = await (try await Stage()).read("", command)
        let document = end?["documents"]?.array?.first
        let given = document?["items"]?["org.iso.18013.5.1"]?.members?.map(\.key) ?? []
        #expect(end?["verdict"] == .string("genuine") && document?["withheld"] == "[]", "\(String(describing: end))")
        #expect(given.count == 2 && given.allSatisfy { ages.contains($0) })
    }

    // MARK: Who asks

    /// A certificate that signs itself.
    private static func certificate(_ key: borrowing ECPrivateKey) throws -> [UInt8] {
        let name = "desk of a site"
        return try VirtualMdocCertificate(
            subject: name,
            issuer: name,
            key: key.publicKey,
            issuerKey: key.publicKey,
            validity: 1_700_000_000...2_000_000_000,
            isAuthority: false
        ).signed(with: key)
    }

    @Test(
        "the wallet can check the signature of the site, for each document and for all, and has its registration",
        arguments: ["[]", #"["readerAuthAll"]"#],
        ["static", "negotiated"]
    )
    func signed(quirks: String, handover: String) async throws {
        for registration in [nil, [0xD8, 0x18, 0x00, 0xFF] + Array("any bytes".utf8)] as [[UInt8]?] {
            let key = try ECPrivateKey(on: try Curve.secp256r1.group)
            let certificate = try Self.certificate(key)
            let identity = DeviceRequest.Identity(key: key, certificates: [certificate], registration: registration)
            let stage = try await Stage(identities: ["desk": identity])
            let end = await stage.read(#""quirks":\#(quirks),"handover":"\#(handover)""#)
            #expect(end?["verdict"] == .string("genuine"), "\(String(describing: end))")
            #expect(await stage.counter("reader") == .string(Base64.standard.encode(certificate)))
            #expect(await stage.counter("isSignedAsOne") == .bool(quirks.contains("All")))
            let sent = registration.map { JSON.string(Base64.standard.encode($0)) } ?? .null
            #expect(await stage.counter("registration") == sent)
        }
    }

    @Test("an unsigned request has no registration")
    func unsigned() async throws {
        let key = try ECPrivateKey(on: try Curve.secp256r1.group)
        let identity = DeviceRequest.Identity(key: key, certificates: [[1]], registration: [2])
        let stage = try await Stage(identities: ["desk": identity])
        let command = #"{"cmd":"RUN_READ_MDOC","ageOver":18,"identity":null}"#
        #expect(await stage.read("", command)?["verdict"] == .string("genuine"))
        #expect(await stage.counter("reader") == .null)
        #expect(await stage.counter("registration") == .null)
    }

    // MARK: Steps

    @Test("the steps are reported, and READER says that a phone is there and no more")
    func steps() async throws {
        let stage = try await Stage()
        _ = await stage.begin()
        await stage.tap()
        var steps: [String] = []
        var kinds: [JSON] = []
        while let message = await stage.client.next(), message["msg"] != .string("MDOC") {
            if message["msg"] == .string("STATUS"), let step = message["step"]?.string { steps.append(step) }
            if message["msg"] == .string("READER"), let card = message["card"], card != .null { kinds.append(card) }
        }
        #expect(steps.first == "engaging" && steps.contains("checking"), "\(steps)")
        #expect(kinds.last == #"{"kind":"mdoc"}"#)
    }

    @Test("the text of a QR code engages, with the command and later, and the phone answers on the reader")
    func code() async throws {
        for isLater in [false, true] {
            let stage = try await Stage()
            _ = await stage.begin()
            await stage.tap(#""quirks":["locked"]"#)
            _ = await stage.client.next("INSERT_CARD")
            let text = try #require(await stage.counter("engagement")?.string)
            let engagement = #""\#(text)""#
            if isLater {
                await stage.client.send(#"{"cmd":"SET_ENGAGEMENT","value":\#(engagement)}"#)
            } else {
                _ = await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MDOC")
                await stage.client.send(#"{"cmd":"RUN_READ_MDOC","ageOver":18,"engagement":\#(engagement)}"#)
                _ = await stage.client.next("MDOC")
                _ = await stage.client.next("INSERT_CARD")
                await stage.tapAgain()
            }
            let end = await stage.client.next("MDOC")
            #expect(
                end?["verdict"] == .string("genuine") && end?["engagement"] == .string("qr"),
                "\(String(describing: end))"
            )
        }
    }

    @Test("a text that is no QR code of a mobile document is refused, and the reading goes on")
    func otherCode() async throws {
        let stage = try await Stage()
        _ = await stage.begin()
        let refused = await stage.client.ask(#"{"cmd":"SET_ENGAGEMENT","value":"https://example.org"}"#, "INSERT_CARD")
        #expect(refused?["error"]?.string?.contains("mdoc:") == true, "\(String(describing: refused))")
        await stage.tap()
        #expect(await stage.client.next("MDOC")?["verdict"] == .string("genuine"))
        let late = await stage.client.answer(to: #"{"cmd":"SET_ENGAGEMENT","value":"mdoc:x"}"#)
        #expect(late?["msg"] == .string("BAD_STATE"))
    }

    // Recognition has one command; then come six of the handover, SELECT, and ENVELOPE.
    @Test(
        "a phone that leaves within the handover or before its answer is put back, and is asked again",
        arguments: [
            #"{"afterApdu":20,"do":"remove"},{"afterApdu":13,"do":"removeAfter"}"#,
            #"{"afterApdu":2,"do":"remove"}"#, #"{"afterApdu":6,"do":"remove"}"#,
            #"{"afterApdu":7,"do":"removeAfter"}"#,
        ]
    )
    func comesBack(faults: String) async throws {
        let stage = try await Stage()
        _ = await stage.begin()
        await stage.tap(#""faults":[\#(faults)]"#)
        var again: JSON?
        while let message = await stage.client.next("INSERT_CARD", "MDOC") {
            again = message
            guard message["msg"] == .string("INSERT_CARD") else { break }
            await stage.tapAgain()
        }
        #expect(again?["verdict"] == .string("genuine"), "\(String(describing: again))")
    }

    // Here recognition has four commands, the handover six; then come SELECT, ENVELOPE, more of it in short commands, and GET RESPONSE.
    private nonisolated static let refusals: [(entries: String, command: Int)] = [
        (#""handover":"static""#, 11), (#""longestCommand":255,"longestResponse":256"#, 11),
        (#""longestCommand":255,"longestResponse":256"#, 13), (#""longestCommand":255,"longestResponse":256"#, 15),
    ]

    @Test(
        "a phone that refuses to go on, as a wallet that asks its holder or whose time is over, may answer the next time",
        arguments: ["6985", "6A82", "6F00"],
        refusals
    )
    func refusesOnce(status: String, at place: (entries: String, command: Int)) async throws {
        let stage = try await Stage()
        _ = await stage.begin()
        await stage.tap(#"\#(place.entries),"faults":[{"afterApdu":\#(place.command),"do":"sw:\#(status)"}]"#)
        let asks = await stage.client.next("INSERT_CARD", "MDOC")
        #expect(asks?["error"]?.string?.contains("take it away") == true, "\(String(describing: asks))")
        await stage.liftAndTap()
        let end = await stage.client.next("MDOC", "INSERT_CARD")
        #expect(end?["verdict"] == .string("genuine"), "\(String(describing: end))")
    }

    private static func isRefused(_ end: JSON?) -> Bool {
        end?["error"] == .string("ConnectionLost")
            && end?["message"]?.string?.contains("the phone refuses to go on: 6F00") == true
    }

    @Test("a phone that refuses twice ends the reading with what it has answered", arguments: refusals)
    func refusesAgain(place: (entries: String, command: Int)) async throws {
        let fault = #"{"afterApdu":\#(place.command),"do":"sw:6F00"}"#
        let stage = try await Stage()
        _ = await stage.begin()
        await stage.tap(#"\#(place.entries),"faults":[\#(fault),\#(fault)]"#)
        #expect(await stage.client.next("INSERT_CARD", "MDOC")?["msg"] == .string("INSERT_CARD"))
        await stage.liftAndTap()
        let end = await stage.client.next("MDOC", "INSERT_CARD")
        #expect(Self.isRefused(end), "\(String(describing: end))")
    }

    @Test("a phone that refuses, and is not put back in time, ends the reading with what it has answered")
    func refusesAndStays() async throws {
        let stage = try await Stage(second: 1000)
        _ = await stage.begin(#"{"cmd":"RUN_READ_MDOC","ageOver":18,"timeout":10}"#)
        await stage.tap(#""faults":[{"afterApdu":11,"do":"sw:6F00"}]"#)
        let end = await stage.client.next("MDOC")
        #expect(Self.isRefused(end), "\(String(describing: end))")
    }

    @Test("a phone that cannot go on ends the reading at once", arguments: ["6D00", "6982", "6A80"], refusals)
    func cannot(status: String, at place: (entries: String, command: Int)) async throws {
        let stage = try await Stage()
        _ = await stage.begin()
        await stage.tap(#"\#(place.entries),"faults":[{"afterApdu":\#(place.command),"do":"sw:\#(status)"}]"#)
        let end = await stage.client.next("INSERT_CARD", "MDOC")
        #expect(end?["error"] == .string("ConnectionLost"), "\(String(describing: end))")
        #expect(end?["message"]?.string?.contains(status) == true)
    }

    @Test("a wallet that ends the session by an empty answer ends the reading at once")
    func endsAtOnce() async throws {
        let stage = try await Stage()
        _ = await stage.begin()
        await stage.tap(#""quirks":["endsAfterRequest"]"#)
        let end = await stage.client.next("INSERT_CARD", "MDOC")
        #expect(end?["error"] == .string("ConnectionLost"), "\(String(describing: end))")
        #expect(end?["message"]?.string?.contains("the phone has ended the session") == true)
    }

    @Test(
        "a locked phone and a tag are named",
        arguments: [
            (#""quirks":["locked"]"#, "mdoc", "unlock"),
            (#""type":"iso14443-4","uid":"08123456","ndef":"d1010c55046578616d706c652e6f7267""#, "tag", "is a tag"),
        ]
    )
    func named(entries: String, kind: String, words: String) async throws {
        let stage = try await Stage()
        _ = await stage.begin()
        await stage.tap(entries, kind: kind)
        let said = await stage.client.next("INSERT_CARD", "MDOC")
        #expect(said?["reader"] == .string("Simulator") && said?["error"]?.string?.contains(words) == true)
    }

    private nonisolated static let noReader = "no NFC reader is connected: connect one"
    private nonisolated static let noRadio =
        "badged runs without the Bluetooth radio: set enabled = yes in [ble] of badged.conf, leave out the option --no-ble, and "
        + "restart badged"

    @Test(
        "a host that cannot read any phone, or this one, says at once what it lacks and what helps",
        arguments: [
            (0, "", "", "\(noReader); \(noRadio)"), (0, "nfc", "", noReader),
            (0, "bleCentral", "", "\(noReader); \(noRadio)"), (1, "bleCentral", "", noRadio),
            (0, "", #""nfc""#, noReader), (0, "", #""bleCentral""#, noRadio),
            (0, "", #""nfc","blePeripheral""#, "\(noReader); \(noRadio)"), (1, "", #""blePeripheral""#, noRadio),
            (1, "bleCentral", #""nfc","bleCentral""#, noRadio),
        ]
    )
    func lacks(readers: Int, transports: String, offer: String, lack: String) async throws {
        let stage = try await Stage(second: 1, readers: readers)
        var command = #"{"cmd":"RUN_READ_MDOC","ageOver":18,"timeout":300"#
        if !transports.isEmpty { command += #","transports":["\#(transports)"]"# }
        if !offer.isEmpty {
            let card = try JSON(#"{"kind":"mdoc","transports":[\#(offer)]}"#.utf8)
            let wallet = try VirtualMdocDescription(try VirtualMdocKind().issuer(), card: card).makeWallet()
            command += #","engagement":"\#(wallet.code)""#
        }
        await stage.client.send(command + "}")
        _ = await stage.client.next("MDOC")
        let end = await stage.client.next("MDOC", "INSERT_CARD")
        #expect(end?["error"] == .string("EngagementUnsupported"), "\(String(describing: end))")
        #expect(end?["message"] == .string(lack))
    }

    @Test("a reader that badged finds a moment after its start is used")
    func lateReader() async throws {
        let stage = try await Stage(second: 100_000, readers: 0)
        await stage.client.send(Self.over18)
        _ = await stage.client.next("MDOC")
        #expect(await stage.client.ask(#"{"cmd":"SET_ENGAGEMENT","value":"mdoc:x"}"#, "BAD_STATE") != nil)
        let late = VirtualReaders(count: 1, kinds: [VirtualMdocKind()])
        stage.server.registry.add(late)
        #expect(await stage.client.next("INSERT_CARD", "MDOC")?["msg"] == .string("INSERT_CARD"))
        withExtendedLifetime(late) {}
    }

    @Test("without a phone the time ends with NoEngagement")
    func nobody() async throws {
        let stage = try await Stage(second: 5)
        _ = await stage.begin(#"{"cmd":"RUN_READ_MDOC","ageOver":18,"timeout":10}"#)
        #expect(await stage.client.next("MDOC")?["error"] == .string("NoEngagement"))
    }

    @Test("a holder who says nothing is waited for, and CANCEL frees the reader at once")
    func silent() async throws {
        let stage = try await Stage(second: 1000)
        _ = await stage.begin(#"{"cmd":"RUN_READ_MDOC","ageOver":18,"timeout":10}"#)
        await stage.tap(#""consent":"never""#)
        #expect(await stage.client.next("MDOC")?["error"] == .string("Prompt_Timeout"))
        let other = try await Stage()
        _ = await other.begin()
        await other.tap(#""consent":"never""#)
        while let status = await other.client.next("STATUS"), status["step"] != .string("waitingForHolder") {}
        #expect(await other.client.ask(#"{"cmd":"CANCEL"}"#, "MDOC")?["error"] == .string("User_Cancelled"))
        _ = await other.begin()
        await other.tap()
        #expect(await other.client.next("MDOC")?["verdict"] == .string("genuine"))
    }

    @Test("the time of the holder ends with the answer, however long its check takes")
    func slowCheck() async throws {
        // As long as the holder has, from a later moment on.
        let stage = try await Stage(second: 1000) { _ in
            await Loop.sleep(milliseconds: 10_000)
            return MdocAuthorities()
        }
        let end = await stage.read("", #"{"cmd":"RUN_READ_MDOC","ageOver":18,"timeout":10}"#)
        #expect(end?["verdict"] == .string("genuine"), "\(String(describing: end))")
    }

    // MARK: Others who read cards

    @Test("recognition and a client that watches without ndef do not wake a wallet")
    func sleeping() async throws {
        let stage = try await Stage()
        let watcher = try stage.server.connect()
        _ = await watcher.ask(#"{"cmd":"START_CREDENTIALS"}"#, "CREDENTIALS")
        _ = await stage.begin(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        await stage.tap()
        _ = await watcher.next("CREDENTIAL")
        #expect(await stage.counter("selects") == .number("0"))
    }

    @Test("one SELECT serves a reading and a client that watches with ndef")
    func shared() async throws {
        let stage = try await Stage()
        let watcher = try stage.server.connect()
        _ = await watcher.ask(#"{"cmd":"START_CREDENTIALS","ndef":true}"#, "CREDENTIALS")
        _ = await stage.begin()
        await stage.tap(#""quirks":["sessionStatus10"]"#)
        #expect(await stage.client.next("MDOC")?["error"] == .string("SessionError"))
        #expect(await stage.counter("selects") == .number("1"))
    }

    @Test("a reading that finds a tag gives its message to a client that watches")
    func tagForOthers() async throws {
        let stage = try await Stage()
        let watcher = try stage.server.connect()
        _ = await watcher.ask(#"{"cmd":"START_CREDENTIALS","ndef":true}"#, "CREDENTIALS")
        _ = await stage.begin()
        await stage.tap(#""type":"iso14443-4","uid":"08123456","ndef":"d1010c55046578616d706c652e6f7267""#, kind: "tag")
        let told = await watcher.next("CREDENTIAL")
        #expect(
            told?["tag"]?["ndef"]?.array?.first?["uri"] == .string("https://example.org"),
            "\(String(describing: told))"
        )
    }

    @Test("no line of the log has an element, a document or a number of a phone")
    func log() async throws {
        let stage = try await Stage()
        _ = await stage.read("", Self.documents("family_name"))
        let log = stage.server.logged.joined(separator: "\n")
        for word in ["family_name", "Eriksson", "18013", "mDL", "mdoc:"] { #expect(!log.contains(word), "\(word)") }
        let metrics = stage.server.server.features.flatMap { $0.metrics() }
        #expect(metrics.contains { $0.name == "badged_mdocs_total" })
    }

    // MARK: Arguments

    @Test(
        "wrong arguments are refused before anything is sent, and the text names the place",
        arguments: [
            ("", "unless there is ageOver"), (#","ageOver":0"#, "ageOver"), (#","ageOver":100"#, "ageOver"),
            (#","ageOver":18,"documents":[]"#, "'ageOver' excludes"), (#","documents":[]"#, "documents must be"),
            (#","documents":[{"items":{}}]"#, "documents[0].docType"),
            (#","documents":[{"docType":"a"}]"#, "documents[0].items must be"),
            (#","documents":[{"docType":"a","items":{}}]"#, "documents[0].items must be"),
            (#","documents":[{"docType":"a","items":{"":[{"name":"c"}]}}]"#, "documents[0].items must be"),
            (#","documents":[{"docType":"a","items":{"b":[]}}]"#, "documents[0].items.b must be a list"),
            (#","documents":[{"docType":"a","items":{"b":[{"name":"c"},{}]}}]"#, "documents[0].items.b[1].name"),
            (#","documents":[{"docType":"a","items":{"b":[{"name":"c","retain":1}]}}]"#, "items.b[0].retain"),
            (#","documents":[{"docType":"a","items":{"b":[{"name":"c"},{"name":"c"}]}}]"#, "items.b[1].name"),
            (
                #","documents":[{"docType":"a","items":{"b":[{"name":"c"}]}},{"docType":"a","items":{"b":[{"name":"c"}]}}]"#,
                "documents[1].docType must be another one"
            ),
            (#","ageOver":18,"timeout":9"#, "timeout"), (#","ageOver":18,"timeout":301"#, "timeout"),
            (#","ageOver":18,"transports":["wifi"]"#, "transports"), (#","ageOver":18,"engagement":"x""#, "engagement"),
            (#","ageOver":18,"identity":"nobody""#, "identity"), (#","ageOver":18,"raw":1"#, "raw"),
        ]
    )
    func arguments(members: String, place: String) async throws {
        let stage = try await Stage()
        let end = await stage.client.ask(#"{"cmd":"RUN_READ_MDOC"\#(members)}"#, "MDOC")
        #expect(["InvalidParameter", "MissingParameter"].contains(end?["error"]?.string), "\(String(describing: end))")
        #expect(end?["message"]?.string?.contains(place) == true, "\(String(describing: end))")
    }

    @Test(
        "an engagement that cannot be used has its word",
        arguments: [("mdoc:AA", "Malformed"), ("mdoc:oQBjMi4w", "EngagementUnsupported")]
    )
    func engagements(text: String, error: String) async throws {
        let stage = try await Stage()
        let end = await stage.client.ask(#"{"cmd":"RUN_READ_MDOC","ageOver":18,"engagement":"\#(text)"}"#, "MDOC")
        #expect(end?["error"] == .string(error), "\(String(describing: end))")
    }

    @Test("without the permission nothing is read")
    func permission() async throws {
        let stage = try await Stage(permissions: [.cards, .readers])
        #expect(await stage.client.ask(Self.over18, "ACCESS_DENIED", "MDOC")?["msg"] == .string("ACCESS_DENIED"))
    }
}
