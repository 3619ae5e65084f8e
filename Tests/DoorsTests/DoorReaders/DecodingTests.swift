// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Host
import TestSupport
import Testing

@Suite("Decoding of advertisements", .timeLimit(.minutes(5))) struct DecodingTests {
    private func decode(_ data: [UInt8], _ encoding: RadioConfiguration.CodeEncoding = .binary) -> DecodedAdvertisement
    {
        AdvertisementDecoder(codeEncoding: encoding).decode(data.span)
    }

    struct Example: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var data: [UInt8]
        var profile: ReaderProfile?
        var code: Int?

        init(_ text: String, _ data: [UInt8], _ profile: ReaderProfile?, code: Int? = nil) {
            (testDescription, self.data, self.profile, self.code) = (text, data, profile, code)
        }
    }

    @Test(
        "each profile is recognised",
        arguments: [
            Example("Seos, code 2", Adverts.seos(2), .seos, code: 2),
            Example("Seos, code 33", Adverts.seos(33), .seos, code: 33),
            Example("Seos, code 0 is not a code", Adverts.seos(0), .seos),
            Example("Seos, company only", Adverts.seosCompany(mask: 1, limits: [-70, -50]), .seos),
            Example("another 128-bit service", Adverts.structure(0x07, [UInt8](repeating: 1, count: 16)), nil),
            Example("PKOC", Adverts.structure(0x03, [0x0F, 0x18, 0xF0, 0xFF]), .pkoc),
            Example("PKOC, incomplete list", Adverts.structure(0x02, [0xF0, 0xFF]), .pkoc),
            Example("PKOC, service data", Adverts.structure(0x16, [0xF0, 0xFF, 9]), .pkoc),
            Example(
                "PKOC, 128 bits",
                Adverts.structure(0x06, hex("1018e85a2bb6bb8ce94ad0d4a160fb41")),
                .pkoc
            ),
            Example("Aliro", Adverts.aliro(group: 7, subGroup: 1), .aliro),
            Example("Aliro, one byte short", Array(Adverts.aliro(group: 7, subGroup: 1).dropLast()), nil),
            Example(
                "Aliro, one byte long",
                Adverts.structure(0x16, [0xF2, 0xFF] + [UInt8](repeating: 0, count: 25)),
                nil
            ),
            Example("CCC, 16 bits", Adverts.structure(0x03, [0xF5, 0xFF]), .ccc),
            Example("CCC, service data", Adverts.structure(0x21, hex("e4ccdbe22a2aa3a2e91199b4c0bb1058") + [1]), .ccc),
            Example("iBeacon", Adverts.ibeacon([UInt8](repeating: 5, count: 16)), .ibeacon),
            Example("Apple without a beacon", Adverts.structure(0xFF, [0x4C, 0x00, 0x10, 0x05, 1]), nil),
            Example(
                "Eddystone UID",
                Adverts.structure(0x16, [0xAA, 0xFE, 0x00, 0xEE] + [UInt8](repeating: 1, count: 16)),
                .eddystone
            ),
            Example("Eddystone TLM", Adverts.structure(0x16, [0xAA, 0xFE, 0x20, 0x00]), .eddystone),
            Example("Eddystone, unknown frame", Adverts.structure(0x16, [0xAA, 0xFE, 0x77, 0x00]), nil),
            Example(
                "a reader has precedence over a beacon",
                Adverts.ibeacon([UInt8](repeating: 5, count: 16)) + Adverts.seos(),
                .seos,
                code: 2
            ),
            Example("a name without a profile", Adverts.structure(0x09, Array("Seos".utf8)), nil),
            Example("no data", [], nil),
        ]
    )
    func profiles(example: Example) {
        let found = decode(example.data)
        #expect(found.profile == example.profile)
        #expect(found.lockServiceCode == example.code)
        #expect(!found.isMalformed || example.testDescription.contains("short"))
    }

    @Test(
        "lock service codes are decoded in binary and in decimal",
        arguments: [
            (UInt32(2), RadioConfiguration.CodeEncoding.binary, 2), (0x21, .binary, 33), (0xFFFFFF, .binary, 0xFFFFFF),
            (0, .binary, nil), (2, .decimal, 2), (0x33, .decimal, 33), (0x999999, .decimal, 999_999),
            (0x2A, .decimal, nil), (0, .decimal, nil),
        ] as [(UInt32, RadioConfiguration.CodeEncoding, Int?)]
    )
    func codes(bits: UInt32, encoding: RadioConfiguration.CodeEncoding, code: Int?) {
        #expect(LockServiceCode.decode(bits, encoding) == code)
        #expect(decode(Adverts.seos(bits), encoding).lockServiceCode == code)
    }

    struct Company: Sendable {
        var data: [UInt8]
        var types: OpeningTypes?
        var limits: DecodedAdvertisement.Limits?
    }

    @Test(
        "opening types and limits of a Seos-style reader are decoded",
        arguments: [
            Company(
                data: Adverts.seosCompany(mask: 0x47, limits: [-70, -50, -74, -45]),
                types: [.proximity, .motion, .seamless, .enhancedTap],
                limits: .init(proximity: -50, motion: -74, seamless: -70, enhancedTap: -45)
            ),
            Company(
                data: Adverts.seosCompany(mask: 0x03, limits: [-70, -50], trigger: [1, 2, 3]),
                types: [.proximity, .motion],
                limits: .init(proximity: -50, seamless: -70)
            ),
            // Values that cannot be received are no limits.
            Company(
                data: Adverts.seosCompany(mask: 0x02, limits: [0, 127, -128]),
                types: .motion,
                limits: .init()
            ),
            // With five limits the format is unknown, and only the mask is used.
            Company(data: Adverts.seosCompany(mask: 0x02, limits: [-1, -1, -1, -1, -1]), types: .motion, limits: nil),
            Company(
                data: Adverts.seosCompany(mask: 0x00, limits: [-70, -50]),
                types: nil,
                limits: .init(proximity: -50, seamless: -70)
            ),
            // The trigger block is longer than the data.
            Company(data: Adverts.structure(0xFF, [0x2E, 0x01, 0x01, 0x2E, 0x1F, 1, 2]), types: nil, limits: nil),
            Company(data: Adverts.structure(0xFF, [0x2E, 0x01, 0x02, 0x2E, 0x10, 1, 2]), types: nil, limits: nil),
        ]
    )
    func company(company: Company) {
        let found = decode(company.data)
        #expect(found.openingTypes == company.types)
        #expect(found.limits == company.limits)
        #expect(found.profile == .seos)
    }

    @Test("the beacon of a phone is recognised as such")
    func phone() {
        #expect(decode(Adverts.ibeacon(hex("000098000000100080000000177a0000"))).isPhone == false)
        #expect(decode(Adverts.ibeacon(hex("0000980000001000800000177a000002"))).isPhone)
        #expect(!decode(Adverts.ibeacon(hex("0000999900001000800000177a000002"))).isPhone)
    }

    @Test("the power at one metre is decoded from a beacon")
    func power() {
        #expect(decode(Adverts.ibeacon([UInt8](repeating: 5, count: 16), power: -61)).powerAtOneMetre == -61)
        let beacon = decode(Adverts.ibeacon(hex("0000999900001000800000177a000002"))).beacon
        #expect(beacon?.uuid == "00009999-0000-1000-8000-00177a000002" && beacon?.major == 1 && beacon?.minor == 2)
        #expect(decode(Adverts.seos()).beacon == nil)
        let eddystone = Adverts.structure(0x16, [0xAA, 0xFE, 0x10, UInt8(bitPattern: -20), 0x00])
        #expect(decode(eddystone).powerAtOneMetre == -61)
        #expect(decode(Adverts.aliro(group: 1, subGroup: 1)).txPower == 8)
    }

    @Test(
        "truncated data is decoded up to the fault",
        arguments: [
            (Adverts.seos() + [0x05, 0x09, 0x41], true), ([0x05], true), ([0xFF, 0xFF], true),
            (Adverts.seos() + [0x00, 0xFF, 0xFF], false), ([0x00], false), ([0x01, 0x09], false),
        ] as [([UInt8], Bool)]
    )
    func malformed(data: [UInt8], isMalformed: Bool) {
        let found = decode(data)
        #expect(found.isMalformed == isMalformed)
        #expect(found.profile == (data.count > 10 ? .seos : nil))
    }

    @Test("names are shortened and cleaned of invalid, control and direction characters")
    func names() {
        func name(_ bytes: [UInt8]) -> String? { AdvertisementDecoder.name(bytes.span, 0..<bytes.count) }
        #expect(name(Array("Lobby".utf8)) == "Lobby")
        #expect(name(Array("a\u{202E}b\n\u{7}".utf8)) == "ab")
        #expect(name([0xFF, 0xFE]) == nil)
        #expect(name([0x41, 0xC3]) == "A")
        #expect(name([UInt8](repeating: 0x41, count: 250))?.count == 64)
        #expect(AdvertisementDecoder.name([0x41].span, 0..<2) == nil)
    }

    @Test("all legacy and extended reports of an event are decoded, up to a fault")
    func reports() {
        let report = AdvertisingReport(address: .door(1), rssi: -60)
        let long = AdvertisingReport(
            address: .passing(2),
            rssi: -61,
            txPower: 4,
            isConnectable: false,
            advertisingSet: 9
        )
        let fragment = AdvertisingReport(address: .door(3), rssi: nil, isScanResponse: true, part: .more)
        let events: [(AdvertisingReport, [UInt8])] = [
            (report, Adverts.seos()), (long, [UInt8](repeating: 7, count: 229)), (fragment, [1, 2]), (report, []),
        ]
        for (sent, data) in events {
            let event = HCIEvent.event(sent, data: data)
            var received: [(AdvertisingReport, [UInt8])] = []
            func decode(_ bytes: [UInt8]) -> Bool {
                HCIEvent.forEachReport(in: bytes.span) { received.append(($0, Array(bytes[$1]))) }
            }
            #expect(decode(event))
            #expect(received.map(\.0) == [sent])
            #expect(received.map(\.1) == [data])
            for length in 0..<event.count { #expect(!decode(Array(event[..<length]))) }
            #expect(received.count == 1)
        }
        // Two reports in one event; then the second one is truncated.
        let one = HCIEvent.event(report, data: [1])
        let two = [0x3E, UInt8(one.count - 4) * 2 + 2, 2, 2] + one.dropFirst(4) + one.dropFirst(4)
        var count = 0
        #expect(HCIEvent.forEachReport(in: two.span) { _, _ in count += 1 })
        #expect(count == 2)
        var short = two
        short[1] -= 1
        #expect(!HCIEvent.forEachReport(in: short.span) { _, _ in count += 1 })
        #expect(count == 3)
        #expect(HCIEvent.forEachReport(in: [0x0E, 1, 0].span) { _, _ in count += 1 })
        #expect(count == 3)
    }

    @Test(
        "127 and values above +20 dBm are no signal strengths",
        arguments: [(127, nil), (21, nil), (20, 20), (-128, -128)] as [(Int8, Int8?)]
    )
    func strength(rssi: Int8, valid: Int8?) {
        #expect(AdvertisingReport(address: .door(1), rssi: rssi).rssi == valid)
    }

    @Test("addresses are read from text and bytes, and their kinds are recognised")
    func addresses() throws {
        let address = try #require(DeviceAddress("c0:11:22:33:44:5f", isRandom: true))
        #expect(address.description == "C0:11:22:33:44:5F")
        #expect(address.bytes == [0x5F, 0x44, 0x33, 0x22, 0x11, 0xC0])
        #expect(DeviceAddress(address.bytes.span, at: 0, isRandom: true) == address)
        #expect(DeviceAddress(address.bytes.span, at: 1, isRandom: true) == nil)
        #expect(address.kind == .static)
        #expect(DeviceAddress("40:00:00:00:00:00", isRandom: true)?.kind == .resolvable)
        #expect(DeviceAddress("00:00:00:00:00:00", isRandom: true)?.kind == .nonresolvable)
        #expect(DeviceAddress("80:00:00:00:00:00", isRandom: true)?.kind == .nonresolvable)
        #expect(DeviceAddress("C0:00:00:00:00:00", isRandom: false)?.kind == .public)
        for text in [
            "", "C0:11:22:33:44", "C0:11:22:33:44:5", "C0:11:22:33:44:GG", "C0:11:22:33:44:55:66", "+1:+1:+1:+1:+1:+1",
        ] {
            #expect(DeviceAddress(text, isRandom: true) == nil)
        }
    }
}
