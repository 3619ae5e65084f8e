// SPDX-License-Identifier: GPL-3.0-or-later
package import Host

/// Recognises door readers and beacons by their advertising data.
package struct AdvertisementDecoder: Sendable {
    private let codeEncoding: RadioConfiguration.CodeEncoding

    package init(codeEncoding: RadioConfiguration.CodeEncoding = .binary) { self.codeEncoding = codeEncoding }

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

    private enum UUID128 {
        static let pkoc: UInt128 = 0x41fb_60a1_d4d0_4ae9_8cbb_b62b_5ae8_1810
        static let ccc: UInt128 = 0x5810_bbc0_b499_11e9_a2a3_2a2a_e2db_cce4
        /// The first 104 bits of 00009800-0000-1000-8000-00177Axxxxxx. 00177A is the OUI of ASSA ABLOY.
        static let seos: UInt128 = 0x0000_9800_0000_1000_8000_0017_7A
    }

    /// Decodes advertising data. When several profiles match, the first in the order of `ReaderProfile` is used.
    package func decode(_ data: Span<UInt8>) -> DecodedAdvertisement {
        var result = DecodedAdvertisement()
        let isWhole = AdvertisingData.forEach(in: data) { type, value in
            switch type {
            case AdvertisingData.DataType.incompleteUUIDs16, AdvertisingData.DataType.completeUUIDs16:
                for start in stride(from: value.lowerBound, to: value.upperBound - 1, by: 2) {
                    service(Self.uint16(data, start), &result)
                }
            case AdvertisingData.DataType.incompleteUUIDs128, AdvertisingData.DataType.completeUUIDs128:
                for start in stride(from: value.lowerBound, to: value.upperBound - 15, by: 16) {
                    service(Self.uint128(data, start), &result)
                }
            case AdvertisingData.DataType.serviceData16 where value.count >= 2:
                serviceData(Self.uint16(data, value.lowerBound), data, value.dropFirst(2), &result)
            case AdvertisingData.DataType.serviceData128 where value.count >= 16:
                service(Self.uint128(data, value.lowerBound), &result)
            case AdvertisingData.DataType.manufacturerData where value.count >= 2:
                manufacturer(Self.uint16(data, value.lowerBound), data, value.dropFirst(2), &result)
            case AdvertisingData.DataType.shortenedName:
                if result.name == nil { result.name = Self.name(data, value) }
            case AdvertisingData.DataType.completeName:
                if let name = Self.name(data, value) { result.name = name }
            case AdvertisingData.DataType.txPower where value.count == 1:
                result.txPower = Int8(bitPattern: data[value.lowerBound])
            default: break
            }
        }
        result.isMalformed = !isWhole
        return result
    }

    private static func uint16(_ data: Span<UInt8>, _ start: Int) -> UInt16 {
        UInt16(data[start]) | UInt16(data[start + 1]) << 8
    }

    /// A 128-bit UUID: sixteen bytes, least significant first.
    private static func uint128(_ data: Span<UInt8>, _ start: Int) -> UInt128 {
        var number: UInt128 = 0
        for index in (start..<start + 16).reversed() { number = number << 8 | UInt128(data[index]) }
        return number
    }

    private func setProfile(_ profile: ReaderProfile, _ result: inout DecodedAdvertisement) {
        let present = result.profile ?? profile
        result.profile = ReaderProfile.allCases.first { $0 == profile || $0 == present }
    }

    // MARK: Services

    private func service(_ uuid: UInt16, _ result: inout DecodedAdvertisement) {
        switch uuid {
        case UUID16.pkoc: setProfile(.pkoc, &result)
        case UUID16.ccc: setProfile(.ccc, &result)
        default: break
        }
    }

    private func service(_ uuid: UInt128, _ result: inout DecodedAdvertisement) {
        if uuid >> 24 == UUID128.seos {
            setProfile(.seos, &result)
            let code = UInt32(uuid & 0xFF_FFFF)
            if let code = LockServiceCode.decode(code, codeEncoding), !result.lockServiceCodes.contains(code) {
                result.lockServiceCodes.append(code)
            }
        } else if uuid == UUID128.pkoc {
            setProfile(.pkoc, &result)
        } else if uuid == UUID128.ccc {
            setProfile(.ccc, &result)
        }
    }

    private func serviceData(
        _ uuid: UInt16,
        _ data: Span<UInt8>,
        _ value: Range<Int>,
        _ result: inout DecodedAdvertisement
    ) {
        switch uuid {
        case UUID16.aliro: aliro(data, value, &result)
        case UUID16.eddystone: eddystone(data, value, &result)
        default: service(uuid, &result)
        }
    }

    /// 24 bytes: flags, TX power, group (8), sub-group (2), expiry (4), a reserved byte, tag (7).
    private func aliro(_ data: Span<UInt8>, _ value: Range<Int>, _ result: inout DecodedAdvertisement) {
        guard value.count == 24 else { return }
        setProfile(.aliro, &result)
        result.txPower = Int8(bitPattern: data[value.lowerBound + 1])
        var group: UInt64 = 0
        for index in 2..<10 { group = group << 8 | UInt64(data[value.lowerBound + index]) }
        let subGroup = UInt16(data[value.lowerBound + 10]) << 8 | UInt16(data[value.lowerBound + 11])
        result.aliroReader = .init(group: group, subGroup: subGroup)
    }

    /// UID (0x00), URL (0x10), TLM (0x20) and EID (0x30) frames. UID, URL and EID frames contain the power at a
    /// distance of 0 m, which is 41 dB more than at one metre.
    private func eddystone(_ data: Span<UInt8>, _ value: Range<Int>, _ result: inout DecodedAdvertisement) {
        guard value.count >= 2 else { return }
        switch data[value.lowerBound] {
        case 0x00, 0x10, 0x30:
            setProfile(.eddystone, &result)
            let power = Int8(bitPattern: data[value.lowerBound + 1])
            result.powerAtOneMetre = Int8(clamping: Int(power) - 41)
        case 0x20: setProfile(.eddystone, &result)
        default: break
        }
    }

    // MARK: Companies

    private func manufacturer(
        _ company: UInt16,
        _ data: Span<UInt8>,
        _ value: Range<Int>,
        _ result: inout DecodedAdvertisement
    ) {
        switch company {
        case Company.assaAbloy: assaAbloy(data, value, &result)
        case Company.apple: ibeacon(data, value, &result)
        default: break
        }
    }

    /// The company identifier again (01 2E), version and length of a trigger block in one byte, and the trigger block.
    /// Then profile version, mask of the opening types, and two to four limits in the order seamless, proximity,
    /// motion, enhanced tap. The format is known from one public analysis only, so data that deviates from it is
    /// ignored.
    private func assaAbloy(_ data: Span<UInt8>, _ value: Range<Int>, _ result: inout DecodedAdvertisement) {
        setProfile(.seos, &result)
        guard value.count >= 3, data[value.lowerBound] == 0x01, data[value.lowerBound + 1] == 0x2E,
            data[value.lowerBound + 2] >> 4 == 1
        else { return }
        let profile = value.lowerBound + 3 + Int(data[value.lowerBound + 2] & 0x0F)
        guard profile + 2 <= value.upperBound else { return }
        let mask = data[profile + 1]
        let types = OpeningTypes(rawValue: mask).intersection(.all)
        if !types.isEmpty { result.openingTypes = types }
        result.isUnavailable = mask & 0x80 != 0
        let count = value.upperBound - profile - 2
        guard (2...4).contains(count) else { return }
        func limit(_ index: Int) -> Int8? {
            guard index < count else { return nil }
            // Values outside this range cannot be received signal strengths.
            let limit = Int8(bitPattern: data[profile + 2 + index])
            return (-110 ... -1).contains(limit) ? limit : nil
        }
        result.limits = .init(proximity: limit(1), motion: limit(2), seamless: limit(0), enhancedTap: limit(3))
    }

    /// Type 2, length 21, UUID (16), major (2), minor (2), power at one metre.
    private func ibeacon(_ data: Span<UInt8>, _ value: Range<Int>, _ result: inout DecodedAdvertisement) {
        guard value.count == 23, data[value.lowerBound] == 0x02, data[value.lowerBound + 1] == 0x15 else { return }
        setProfile(.ibeacon, &result)
        result.powerAtOneMetre = Int8(bitPattern: data[value.lowerBound + 22])
        var number: UInt128 = 0
        for index in 2..<18 { number = number << 8 | UInt128(data[value.lowerBound + index]) }
        func half(_ index: Int) -> UInt16 {
            UInt16(data[value.lowerBound + index]) << 8 | UInt16(data[value.lowerBound + index + 1])
        }
        result.beacon = .init(number: number, major: half(18), minor: half(20))
        // Phones that emulate a reader send 00009800-0000-1000-8000-00177A...
        result.isPhone = number >> 24 == UUID128.seos
    }

    // MARK: Name

    /// Longer names are cut to this number of bytes.
    package static let longestName = 64

    /// Reads a local name for display: UTF-8 with invalid bytes removed, without control and direction characters.
    /// - Returns: nil when nothing is left.
    package static func name(_ data: Span<UInt8>, _ range: Range<Int>) -> String? {
        guard range.lowerBound >= 0, range.upperBound <= data.count else { return nil }
        let bytes = range.prefix(longestName).map { data[$0] }
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

/// The number that the readers of one operator share: 1 to 32 are reserved, 2 is the default, 33 and above belong to
/// partners. A Seos-style reader advertises the number in the low 24 bits of its service UUID.
package enum LockServiceCode {
    package static let range = 1...0xFF_FFFF
    package static let usual = 2

    /// Decodes the 24 bits of the service UUID.
    /// - Returns: nil for 0 and for bits that the encoding does not allow.
    package static func decode(_ bits: UInt32, _ encoding: RadioConfiguration.CodeEncoding) -> Int? {
        var code = 0
        switch encoding {
        case .binary:
            code = Int(bits & 0xFF_FFFF)
        case .decimal:
            for shift in stride(from: 20, through: 0, by: -4) {
                let digit = Int(bits >> UInt32(shift)) & 0xF
                guard digit < 10 else { return nil }
                code = code * 10 + digit
            }
        }
        return range.contains(code) ? code : nil
    }
}
