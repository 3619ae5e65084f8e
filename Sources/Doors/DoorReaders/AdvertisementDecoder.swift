// SPDX-License-Identifier: GPL-3.0-or-later

/// Finds the marks of door readers and beacons in advertising data.
package struct AdvertisementDecoder: Sendable {
    package var codeEncoding: LockServiceCode.Encoding

    package init(codeEncoding: LockServiceCode.Encoding = .binary) { self.codeEncoding = codeEncoding }

    private enum UUID16 {
        static let pkoc: UInt16 = 0xFFF0
        static let aliro: UInt16 = 0xFFF2
        static let ccc: UInt16 = 0xFFF5
        static let eddystone: UInt16 = 0xFEAA
    }

    private enum Company {
        static let assaAbloy: UInt16 = 0x012E
        static let apple: UInt16 = 0x004C
    }

    /// A 128-bit UUID as two halves of the number as it is written.
    private struct UUID128: Equatable {
        var high: UInt64
        var low: UInt64

        /// Sixteen bytes, least significant first.
        init(_ data: Span<UInt8>, at start: Int) {
            var (high, low): (UInt64, UInt64) = (0, 0)
            for index in 0..<8 {
                low |= UInt64(data[start + index]) << (8 * index)
                high |= UInt64(data[start + 8 + index]) << (8 * index)
            }
            (self.high, self.low) = (high, low)
        }

        init(_ high: UInt64, _ low: UInt64) { (self.high, self.low) = (high, low) }

        static let pkoc = UUID128(0x41fb_60a1_d4d0_4ae9, 0x8cbb_b62b_5ae8_1810)
        static let ccc = UUID128(0x5810_bbc0_b499_11e9, 0xa2a3_2a2a_e2db_cce4)

        /// 00009800-0000-1000-8000-00177Axxxxxx: the last 24 bits. 00177A is the OUI of ASSA ABLOY.
        var seosCode: UInt32? {
            guard high == 0x0000_9800_0000_1000, low >> 24 == 0x80_0000_177A else { return nil }
            return UInt32(low & 0xFF_FFFF)
        }
    }

    /// What the data says. Which profile wins when several match: the order of `ReaderProfile`.
    package func facts(in data: Span<UInt8>) -> ReaderFacts {
        var facts = ReaderFacts()
        let isWhole = AdvertisingData.forEach(in: data) { type, value in
            switch type {
            case AdvertisingData.DataType.incompleteUUIDs16, AdvertisingData.DataType.completeUUIDs16:
                for start in stride(from: value.lowerBound, to: value.upperBound - 1, by: 2) {
                    service(Self.uint16(data, start), &facts)
                }
            case AdvertisingData.DataType.incompleteUUIDs128, AdvertisingData.DataType.completeUUIDs128:
                for start in stride(from: value.lowerBound, to: value.upperBound - 15, by: 16) {
                    service(UUID128(data, at: start), &facts)
                }
            case AdvertisingData.DataType.serviceData16 where value.count >= 2:
                serviceData(Self.uint16(data, value.lowerBound), data, value.dropFirst(2), &facts)
            case AdvertisingData.DataType.serviceData128 where value.count >= 16:
                service(UUID128(data, at: value.lowerBound), &facts)
            case AdvertisingData.DataType.manufacturerData where value.count >= 2:
                manufacturer(Self.uint16(data, value.lowerBound), data, value.dropFirst(2), &facts)
            case AdvertisingData.DataType.shortenedName:
                if facts.name == nil { facts.name = value }
            case AdvertisingData.DataType.completeName:
                facts.name = value
            case AdvertisingData.DataType.txPower where value.count == 1:
                facts.txPower = Int8(bitPattern: data[value.lowerBound])
            default: break
            }
        }
        facts.isMalformed = !isWhole
        return facts
    }

    private static func uint16(_ data: Span<UInt8>, _ start: Int) -> UInt16 {
        UInt16(data[start]) | UInt16(data[start + 1]) << 8
    }

    /// An earlier case of `ReaderProfile` is the stronger mark.
    private static let order = Dictionary(uniqueKeysWithValues: ReaderProfile.allCases.enumerated().map { ($1, $0) })

    private func claim(_ profile: ReaderProfile, _ facts: inout ReaderFacts) {
        guard let present = facts.profile else {
            facts.profile = profile
            return
        }
        if Self.order[profile, default: 0] < Self.order[present, default: 0] { facts.profile = profile }
    }

    // MARK: Services

    private func service(_ uuid: UInt16, _ facts: inout ReaderFacts) {
        switch uuid {
        case UUID16.pkoc: claim(.pkoc, &facts)
        case UUID16.ccc: claim(.ccc, &facts)
        default: break
        }
    }

    private func service(_ uuid: UUID128, _ facts: inout ReaderFacts) {
        if let code = uuid.seosCode {
            claim(.seos, &facts)
            if let code = LockServiceCode.decode(code, codeEncoding) { facts.lockServiceCode = code }
        } else if uuid == .pkoc {
            claim(.pkoc, &facts)
        } else if uuid == .ccc {
            claim(.ccc, &facts)
        }
    }

    private func serviceData(_ uuid: UInt16, _ data: Span<UInt8>, _ value: Range<Int>, _ facts: inout ReaderFacts) {
        switch uuid {
        case UUID16.aliro: aliro(data, value, &facts)
        case UUID16.eddystone: eddystone(data, value, &facts)
        default: service(uuid, &facts)
        }
    }

    /// Flags, TX power, 8 bytes of group, 2 of sub-group, 4 of expiry, a reserved one, a tag of 7: 24 bytes.
    private func aliro(_ data: Span<UInt8>, _ value: Range<Int>, _ facts: inout ReaderFacts) {
        guard value.count == 24 else { return }
        claim(.aliro, &facts)
        facts.txPower = Int8(bitPattern: data[value.lowerBound + 1])
        var group: UInt64 = 0
        for index in 2..<10 { group = group << 8 | UInt64(data[value.lowerBound + index]) }
        let subGroup = UInt16(data[value.lowerBound + 10]) << 8 | UInt16(data[value.lowerBound + 11])
        facts.aliroReader = .init(group: group, subGroup: subGroup)
    }

    /// UID, URL, TLM and EID frames. UID, URL and EID begin with the power at a distance of 0 m; 41 dB are lost on the
    /// first metre.
    private func eddystone(_ data: Span<UInt8>, _ value: Range<Int>, _ facts: inout ReaderFacts) {
        guard value.count >= 2 else { return }
        switch data[value.lowerBound] {
        case 0x00, 0x10, 0x30:
            claim(.eddystone, &facts)
            let power = Int8(bitPattern: data[value.lowerBound + 1])
            facts.powerAtOneMetre = Int8(clamping: Int(power) - 41)
        case 0x20: claim(.eddystone, &facts)
        default: break
        }
    }

    // MARK: Companies

    private func manufacturer(_ company: UInt16, _ data: Span<UInt8>, _ value: Range<Int>, _ facts: inout ReaderFacts) {
        switch company {
        case Company.assaAbloy: assaAbloy(data, value, &facts)
        case Company.apple: ibeacon(data, value, &facts)
        default: break
        }
    }

    /// Company echo 01 2E; version and length of a trigger block in one byte; that block; profile version; mask of the
    /// opening types; two to four limits, in the order seamless, proximity, motion, enhanced. Known from one public
    /// analysis only, so what does not fit exactly is left out.
    private func assaAbloy(_ data: Span<UInt8>, _ value: Range<Int>, _ facts: inout ReaderFacts) {
        claim(.seos, &facts)
        guard value.count >= 3, data[value.lowerBound] == 0x01, data[value.lowerBound + 1] == 0x2E,
            data[value.lowerBound + 2] >> 4 == 1
        else { return }
        let profile = value.lowerBound + 3 + Int(data[value.lowerBound + 2] & 0x0F)
        guard profile + 2 <= value.upperBound else { return }
        let mask = data[profile + 1]
        let types = OpeningTypes(rawValue: mask).intersection(.all)
        if !types.isEmpty { facts.openingTypes = types }
        facts.isUnavailable = mask & 0x80 != 0
        let count = value.upperBound - profile - 2
        guard (2...4).contains(count) else { return }
        func limit(_ index: Int) -> Int8? {
            guard index < count else { return nil }
            // A limit is a strength that can be received.
            let limit = Int8(bitPattern: data[profile + 2 + index])
            return (-110 ... -1).contains(limit) ? limit : nil
        }
        facts.limits = .init(proximity: limit(1), motion: limit(2), seamless: limit(0), enhancedTap: limit(3))
    }

    /// Type 2, length 21, UUID, major, minor, power at one metre.
    private func ibeacon(_ data: Span<UInt8>, _ value: Range<Int>, _ facts: inout ReaderFacts) {
        guard value.count == 23, data[value.lowerBound] == 0x02, data[value.lowerBound + 1] == 0x15 else { return }
        claim(.ibeacon, &facts)
        facts.powerAtOneMetre = Int8(bitPattern: data[value.lowerBound + 22])
        // The UUID is written in the order of reading. 00009800-0000-1000-8000-00177A... is what phones send.
        let phone: [13 of UInt8] = [0, 0, 0x98, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0x17, 0x7A]
        facts.isPhone = phone.indices.allSatisfy { data[value.lowerBound + 2 + $0] == phone[$0] }
    }

    // MARK: Name

    /// Longest name that is kept, in bytes.
    package static let longestName = 64

    /// A local name for people: UTF-8 with faults replaced, without control and direction characters, at most 64 bytes;
    /// nil when nothing is left.
    package static func name(_ data: Span<UInt8>, _ range: Range<Int>) -> String? {
        guard range.lowerBound >= 0, range.upperBound <= data.count else { return nil }
        var bytes: [UInt8] = []
        for index in range.prefix(longestName) { bytes.append(data[index]) }
        let scalars = String(decoding: bytes, as: UTF8.self).unicodeScalars.filter { scalar in
            switch scalar.value {
            case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFFD: false
            default: true
            }
        }
        let name = String(String.UnicodeScalarView(scalars))
        return name.isEmpty ? nil : name
    }
}
