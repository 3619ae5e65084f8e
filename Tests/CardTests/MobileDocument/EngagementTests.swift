// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import MobileDocument
import Testing
import Text

@Suite("Engagement of mobile documents") struct EngagementTests {
    private static let uuid = Array(1...16).map { UInt8($0) }

    private static let fixedKey: ECPublicKey = {
        let scalar = Secret([UInt8](repeating: 7, count: 32))
        guard let group = try? Curve.secp256r1.group, let key = try? ECPrivateKey(scalar, on: group) else {
            fatalError("libcrypto has the curve")
        }
        return key.publicKey
    }()

    private static func key(_ curve: Curve = .secp256r1) throws -> ECPublicKey {
        try ECPrivateKey(on: try curve.group).publicKey
    }

    /// An engagement with one way, and with changes of a test.
    private static func engagement(
        version: CBORValue = "1.0",
        suite: CBORValue = 1,
        key: CBORValue? = nil,
        ways: CBORValue? = [[2, 1, [0: false, 1: true, 11: .bytes(uuid)]]],
        others: [(CBORValue, CBORValue)] = []
    ) throws -> [UInt8] {
        var pairs: [(CBORValue, CBORValue)] = [
            (0, version), (1, [suite, .embedded(try key ?? #require(try Self.key().cose))]),
        ]
        if let ways { pairs.append((2, ways)) }
        return CBORValue.map(pairs + others).encoding
    }

    private static func way(_ bytes: [UInt8]) throws -> DeviceEngagement.Way? { try DeviceEngagement(bytes).ways.first }

    @Test(
        "a key on every curve is read, with y in full and as a sign",
        arguments: [Curve.secp256r1, .secp384r1, .secp521r1, .brainpoolP256r1, .brainpoolP320r1, .brainpoolP384r1]
            + [.brainpoolP512r1]
    )
    func curves(curve: Curve) throws {
        let key = try Self.key(curve)
        #expect(try DeviceEngagement(try Self.engagement(key: key.cose)).key == key)
        let full = try CBOR(try #require(key.cose).encoding)
        let number = try #require(full[-1]?.integer)
        let isOdd = (key.uncompressed.last ?? 0) & 1 == 1
        let short: CBORValue = [1: 2, -1: .integer(number), -2: .bytes(key.compressed), -3: .bool(isOdd)]
        #expect(try DeviceEngagement(try Self.engagement(key: short)).key == key)
    }

    @Test(
        "a key off its curve, of a wrong length, or of another kind is refused",
        arguments: [
            (
                [
                    1: 2, -1: 1, -2: .bytes([UInt8](repeating: 1, count: 32)),
                    -3: .bytes([UInt8](repeating: 1, count: 32)),
                ], false
            ),
            (
                [
                    1: 2, -1: 1, -2: .bytes([UInt8](repeating: 0, count: 32)),
                    -3: .bytes([UInt8](repeating: 0, count: 32)),
                ], false
            ),
            ([1: 2, -1: 1, -2: .bytes([1]), -3: true], false), ([1: 2, -1: 1, -2: .bytes([]), -3: .bytes([])], false),
            ([1: 2, -1: 1, -2: .bytes([UInt8](repeating: 0xFF, count: 32)), -3: true], false),
            ([1: 2, -1: 1], false), ([1: 2], false), ([:], false), (5, false),
            ([1: 1, -1: 4, -2: .bytes([UInt8](repeating: 9, count: 32))], true),
            ([1: 2, -1: 8, -2: .bytes([UInt8](repeating: 9, count: 32)), -3: true], true),
        ] as [(CBORValue, Bool)]
    )
    func wrongKeys(key: CBORValue, isUnsupported: Bool) throws {
        let bytes = try Self.engagement(key: key)
        let problem = #expect(throws: MdocProblem.self) { try DeviceEngagement(bytes) }
        if case .unsupported = problem {
            #expect(isUnsupported)
        } else {
            #expect(!isUnsupported)
        }
    }

    @Test("versions are compared by number, and the capabilities count from 1.1 on")
    func versions() throws {
        let capabilities: [(CBORValue, CBORValue)] = [(5, .array([])), (6, [2: true, 3: true, 4: true])]
        let new = try DeviceEngagement(try Self.engagement(version: "1.10", others: capabilities))
        #expect(new.capabilities.readerAuthAll && new.capabilities.extendedRequest)
        let old = try DeviceEngagement(try Self.engagement(version: "1.0", others: [(5, ["x"]), (6, [3: true])]))
        #expect(!old.capabilities.readerAuthAll)
        for (version, isUnsupported) in [("2.0", true), ("0.9", true), ("1.x", false), ("", false), ("1.-1", false)] {
            let bytes = try Self.engagement(version: .text(version))
            let problem = #expect(throws: MdocProblem.self) { try DeviceEngagement(bytes) }
            if case .unsupported = problem { #expect(isUnsupported) } else { #expect(!isUnsupported, "\(version)") }
        }
        let suite = try Self.engagement(suite: 2)
        #expect(throws: MdocProblem.unsupported("the cipher suite 2")) { try DeviceEngagement(suite) }
    }

    @Test("what a later standard adds is ignored, and the bytes are kept as they came")
    func unknown() throws {
        let bytes = try Self.engagement(others: [(17, ["a": [1, 2]]), (-4, .bytes([1]))])
        let indefinite = [0xBF] + bytes.dropFirst() + [0xFF]
        #expect(try DeviceEngagement(indefinite).encoded == indefinite)
        #expect(throws: MdocProblem.self) { try DeviceEngagement(bytes + [0]) }
    }

    @Test("ways with a UUID as bytes or text are read; unknown ones are left out")
    func ways() throws {
        let uuid = CBORValue.bytes(Self.uuid)
        let ways: CBORValue = [
            [9, 3, [0: "later"]], [3, 1, [:]], [2, 2, [1: true, 11: uuid]], [2, 1, [1: true, 11: .bytes([1])]],
            [1, 1, [0: 300, 1: 70_000]], [2, 1, [0: true, 1: true, 10: .text(UUIDText.encode(Self.uuid)), 11: uuid]],
        ]
        let ble = DeviceEngagement.BLE(server: Self.uuid, client: Self.uuid)
        let engagement = try DeviceEngagement(try Self.engagement(ways: ways))
        #expect(engagement.ways == [.nfc(command: 300, response: 65_536), .ble(ble)])
        #expect(try DeviceEngagement(try Self.engagement(ways: nil)).ways.isEmpty)
        let wrong = try Self.engagement(ways: 5)
        #expect(throws: MdocProblem.self) { try DeviceEngagement(wrong) }
    }

    @Test("QR codes are read as wallets and scanners write them, and others are refused")
    func qr() throws {
        // Bytes whose digits differ in both alphabets, and that need padding.
        let bytes = try Self.engagement(key: Self.fixedKey.cose, others: [(9, .bytes([0xFF, 0xEF, 0xBE]))])
        let url = Base64.url.encode(bytes)
        let standard = Base64.standard.encode(bytes)
        for text in ["mdoc:\(url)", "MDOC:\(url)", "mdoc://\(url)", " mdoc:\(url)\r\n", "mdoc:\(standard)"] {
            #expect(try DeviceEngagement(qr: text).encoded == bytes, "\(text)")
        }
        let others = [
            "", "https://example.org", "mdoc:", "mdoc:!", "mdoc", "mdoc:\(String(repeating: "A", count: 9000))",
        ]
        for text in others {
            #expect(throws: MdocProblem.self) { try DeviceEngagement(qr: text) }
        }
    }

    // MARK: Handover

    @Test("the request of a reader is the message of the other implementations, byte by byte")
    func request() throws {
        let uuid = try #require(UUIDText.decode("45efef74-2b2c-4837-a9a3-b0e1d05a6917"))
        let bytes = HandoverRequest.encoding(
            uuid: uuid,
            offersCentralClient: true,
            offersPeripheralServer: true,
            offersNFC: true
        )
        #expect(
            Hex.encode(bytes)
                == "910215487215910204616301013000510206616301036e6663001c1e060a69736f2e6f72673a31383031333a72656164657265"
                + "6e676167656d656e746d646f63726561646572a10063312e301a2015016170706c69636174696f6e2f766e642e626c7565746f"
                + "6f74682e6c652e6f6f6230021c03110717695ad0e1b0a3a937482c2b74efef455c110a0369736f2e6f72673a31383031333a6e"
                + "66636e6663010301ffff0402010000"
        )
        let read = try HandoverRequest(bytes)
        #expect(read.offersCentralClient && read.offersPeripheralServer && read.offersNFC && read.uuid == uuid)
    }

    @Test("the service of a handover is that of the other implementations; its times are bounded")
    func service() throws {
        #expect(Hex.encode(TNEPService.select) == "d1021454731375726e3a6e66633a736e3a68616e646f766572")
        let message = try #require(Hex.decode("d1021a5470101375726e3a6e66633a736e3a68616e646f76657200000fffff"))
        #expect(TNEPService.encoding() == message)
        let service = try #require(try TNEPService(in: message))
        #expect(service.wait == .microseconds(500) && service.maximumWaits == 15)
        #expect(try TNEPService(in: TNEPService.encoding(time: 63))?.wait == .seconds(1))
        #expect(try TNEPService(in: TNEPService.encoding(time: 24))?.wait == .milliseconds(32))
        try TNEPService.checkStatus(try #require(Hex.decode("d10201546500")))
        #expect(TNEPService.status(0) == Hex.decode("d10201546500"))
        #expect(throws: MdocProblem.self) { try TNEPService.checkStatus(TNEPService.status(1)) }
        let engagement = try Self.engagement(ways: nil)
        let select = HandoverSelect.encoding(engagement: engagement, ways: [], namesUUID: true)
        #expect(try TNEPService(in: select) == nil)
    }

    @Test(
        "the ways of both handovers are read in each role",
        arguments: [
            DeviceEngagement.BLE(client: uuid), .init(server: uuid), .init(server: uuid, client: uuid),
        ]
    )
    func handover(ble: DeviceEngagement.BLE) throws {
        let engagement = try Self.engagement(ways: nil)
        let ways: [DeviceEngagement.Way] = [.ble(ble), .nfc(command: 255, response: 65_535)]
        let named = HandoverSelect.encoding(engagement: engagement, ways: ways, namesUUID: true)
        let fixed = try HandoverSelect(named, request: nil)
        #expect(fixed.ways == ways && fixed.engagement.encoded == engagement)
        #expect(fixed.handover == .nfc(select: named, request: nil))
        let request = HandoverRequest.encoding(
            uuid: Self.uuid,
            offersCentralClient: true,
            offersPeripheralServer: true,
            offersNFC: false
        )
        let unnamed = HandoverSelect.encoding(engagement: engagement, ways: ways, namesUUID: false)
        #expect(try HandoverSelect(unnamed, request: request).ways == ways)
        // Without a request nobody has named the service.
        #expect(try HandoverSelect(unnamed, request: nil).ways == [ways[1]])
    }

    @Test("a handover of something else is no engagement, and one that is cut off is malformed")
    func wrongHandover() throws {
        let engagement = try Self.engagement(key: Self.fixedKey.cose, ways: nil)
        let message = HandoverSelect.encoding(
            engagement: engagement,
            ways: [.ble(DeviceEngagement.BLE(client: Self.uuid))],
            namesUUID: true
        )
        func problem(_ bytes: [UInt8]) -> MdocProblem? {
            #expect(throws: MdocProblem.self) { try HandoverSelect(bytes, request: nil) }
        }
        func replacing(_ text: String, _ other: String) -> [UInt8] {
            let hex = Hex.encode(message)
            let (old, new) = (Hex.encode(Array(text.utf8)), Hex.encode(Array(other.utf8)))
            return Hex.decode(hex.replacing(old, with: new)) ?? []
        }
        for bytes in [replacing("Hs", "Hx"), replacing("deviceengagement", "deviceengagemenx"), []] {
            guard case .noEngagement = problem(bytes) else {
                Issue.record("not refused: \(Hex.encode(bytes))")
                continue
            }
        }
        guard case .unsupported = problem(replacing("bluetooth.le.oob", "bluetooth.ep.oob")) else {
            Issue.record("a way that nobody knows")
            return
        }
        for count in 1..<message.count {
            #expect(problem(Array(message.prefix(count))) != nil)
        }
        #expect(problem([UInt8](repeating: 0, count: 20_000)) == .malformed("the message is too long"))
        // The UUID is longer than its record.
        let cut = try #require(Hex.decode(Hex.encode(message).replacing("021c011107", with: "021c01ff07")))
        guard case .malformed = problem(cut) else {
            Issue.record("a list of Bluetooth that is cut off")
            return
        }
    }
}
