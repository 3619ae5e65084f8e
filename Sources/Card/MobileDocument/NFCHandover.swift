// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Text

/// The service of a phone with which a handover is negotiated. NFC Forum Tag NDEF Exchange Protocol 1.0.
package struct TNEPService: Sendable, Equatable {
    /// How long the phone takes for an answer, at most a second.
    package let wait: Duration
    /// How often the phone may ask for more time. Some phones need more.
    package let maximumWaits: Int

    private static let name = "urn:nfc:sn:handover"
    private static let version: UInt8 = 0x10
    /// 2^(WT/4 - 1) ms is above a second from here.
    private static let longestWait: UInt8 = 44

    /// Finds the service in the first message of a phone: a record `Tp`. TNEP 1.0, 4.1.2.
    /// - Returns: nil if the message offers no such service, and may be the one of a static handover.
    package init?(in message: [UInt8]) throws(MdocProblem) {
        let records = try reading(NFCHandover.records(message))
        for record in records where record.isType(.wellKnown, "Tp") {
            guard record.payload.count >= 2 else { continue }
            let rest = record.payload[2...]
            let count = Int(record.payload[1])
            guard rest.prefix(count).elementsEqual(Self.name.utf8), rest.count >= count + 3 else { continue }
            let parameters = Array(rest.dropFirst(count))
            let time = parameters[1]
            wait =
                time >= Self.longestWait
                ? .seconds(1) : .microseconds(Int64(500 * Self.power(Int(time))))
            maximumWaits = Int(parameters[2] & 0x0F)
            return
        }
        return nil
    }

    /// 2^(n/4).
    private static func power(_ quarters: Int) -> Double {
        let fractions = [1, 1.189207115002721, 1.4142135623730951, 1.6817928305074292]
        return Double(1 << (quarters / 4)) * fractions[quarters % 4]
    }

    /// The message by which a reader chooses the service: a record `Ts`. TNEP 1.0, 4.1.3.
    package static let select: [UInt8] = NDEFRecords.encode([
        NDEFRecords.Record(.wellKnown, "Ts", [UInt8(clamping: name.utf8.count)] + Array(name.utf8))
    ])

    /// Checks the answer of a phone: a record `Te`. TNEP 1.0, 4.1.4.
    /// - Throws: `.noEngagement` if the phone refuses.
    package static func checkStatus(_ message: [UInt8]) throws(MdocProblem) {
        let records = try reading(NFCHandover.records(message))
        guard let status = records.first(where: { $0.isType(.wellKnown, "Te") }), status.payload.first == 0 else {
            throw .noEngagement("the phone refuses to negotiate a handover")
        }
    }

    // MARK: On the side of the phone

    /// The first message of a phone.
    /// `time`: WT; the waiting time is 2^(WT/4 - 1) ms.
    /// `maximumWaits`: N_WAIT, 0 to 15.
    package static func encoding(time: UInt8 = 0, maximumWaits: UInt8 = 15) -> [UInt8] {
        let payload = [version, UInt8(clamping: name.utf8.count)] + Array(name.utf8)
        return NDEFRecords.encode([
            NDEFRecords.Record(.wellKnown, "Tp", payload + [0, time, maximumWaits & 0x0F, 0xFF, 0xFF])
        ])
    }

    /// The answer of a phone to `select`.
    package static func status(_ number: UInt8) -> [UInt8] {
        NDEFRecords.encode([NDEFRecords.Record(.wellKnown, "Te", [number])])
    }
}

/// What both messages of a handover have in common. ISO/IEC 18013-5, 8.2.2.1; NFC Forum Connection Handover 1.5.
enum NFCHandover {
    static let maximumBytes = 16_384
    static let engagementType = "iso.org:18013:deviceengagement"
    static let bleType = "application/vnd.bluetooth.le.oob"
    static let nfcType = "iso.org:18013:nfc"
    /// Version 1.5.
    static let version: UInt8 = 0x15

    static func records(_ message: [UInt8]) throws(Malformed) -> [NDEFRecords.Record] {
        guard message.count <= maximumBytes else { throw Malformed("the message is too long") }
        return try NDEFRecords.read(message)
    }

    /// A Handover Select or Request: the main record with an alternative carrier for each way, and their records.
    static func message(
        _ type: String,
        _ engagement: NDEFRecords.Record,
        _ carriers: [NDEFRecords.Record],
        auxiliary: String?
    ) -> [UInt8] {
        let references = carriers.map { carrier in
            let own: [UInt8] = [1, UInt8(clamping: carrier.identifier.count)] + carrier.identifier
            let other: [UInt8] = auxiliary.map { [1, UInt8(clamping: $0.utf8.count)] + Array($0.utf8) } ?? [0]
            return NDEFRecords.Record(.wellKnown, "ac", own + other)
        }
        let main = NDEFRecords.Record(.wellKnown, type, [version] + NDEFRecords.encode(references))
        return NDEFRecords.encode([main, engagement] + carriers)
    }

    // MARK: Carriers

    /// The role of the sender in Bluetooth Low Energy. Supplement to the Bluetooth Core Specification, A 1.17.
    private enum Role: UInt8 {
        case peripheral, central, bothPeripheralPreferred, bothCentralPreferred
    }

    /// The carrier of Bluetooth. Its UUID is in little endian.
    static func ble(isPeripheral: Bool, isCentral: Bool, uuid: [UInt8]?) -> NDEFRecords.Record {
        let role: Role = isPeripheral ? (isCentral ? .bothCentralPreferred : .peripheral) : .central
        var payload: [UInt8] = [2, 0x1C, role.rawValue]
        if let uuid { payload += [UInt8(clamping: uuid.count + 1), 0x07] + uuid.reversed() }
        return NDEFRecords.Record(.media, bleType, id: "0", payload)
    }

    /// Reads the carrier of Bluetooth.
    /// - Returns: whether the sender can be peripheral and central, and its UUID; nil without a role that is known.
    static func ble(_ payload: [UInt8]) throws(Malformed) -> (isPeripheral: Bool, isCentral: Bool, uuid: [UInt8]?)? {
        var role: Role?
        var uuid: [UInt8]?
        var rest = payload[...]
        while let count = rest.popFirst() {
            // Zeros fill up a list. Core Specification, volume 3, part C, 11.
            guard count > 0 else { continue }
            guard rest.count >= count, let type = rest.popFirst() else {
                throw Malformed("the data of Bluetooth are truncated")
            }
            let value = rest.prefix(Int(count) - 1)
            rest = rest.dropFirst(value.count)
            switch type {
            case 0x1C: role = value.first.flatMap(Role.init)
            case 0x06, 0x07: if value.count >= 16 { uuid = value.suffix(16).reversed() }
            default: break
            }
        }
        return role.map { ($0 != .central, $0 != .peripheral, uuid) }
    }

    /// The carrier of NFC with both lengths; a wallet crashes if they are missing.
    static func nfc(command: Int, response: Int) -> NDEFRecords.Record {
        func field(_ type: UInt8, _ number: Int) -> [UInt8] {
            let digits = Array(withUnsafeBytes(of: UInt32(clamping: number).bigEndian, Array.init).drop { $0 == 0 })
            return [UInt8(clamping: digits.count + 1), type] + digits
        }
        return NDEFRecords.Record(.external, nfcType, id: "nfc", [1] + field(1, command) + field(2, response))
    }

    /// Reads the carrier of NFC. Lengths that are missing or cannot be read are the smallest ones.
    static func nfc(_ payload: [UInt8]) -> DeviceEngagement.Way {
        var lengths: [UInt8: Int64] = [:]
        var rest = payload.dropFirst()
        while let count = rest.popFirst(), (2...5).contains(count), rest.count >= count, let type = rest.popFirst() {
            lengths[type] = rest.prefix(Int(count) - 1).reduce(0) { $0 << 8 | Int64($1) }
            rest = rest.dropFirst(Int(count) - 1)
        }
        return DeviceEngagement.nfc(command: lengths[1] ?? 255, response: lengths[2] ?? 256)
    }
}

/// The request of a reader in a negotiated handover. ISO/IEC 18013-5, 8.2.2.1.
package struct HandoverRequest: Sendable, Equatable {
    /// Whether the reader offers to be a GATT server (central client mode), to be a GATT client (peripheral server
    /// mode), and to go on by NFC.
    package let offersCentralClient: Bool
    package let offersPeripheralServer: Bool
    package let offersNFC: Bool
    /// The service of the reader in central client mode, and of both sides if the phone names none; in network order.
    package let uuid: [UInt8]?

    /// Writes the request of a reader.
    /// `uuid`: 16 new random bytes in network order.
    package static func encoding(
        uuid: [UInt8],
        offersCentralClient: Bool,
        offersPeripheralServer: Bool,
        offersNFC: Bool
    ) -> [UInt8] {
        var carriers: [NDEFRecords.Record] = []
        if offersCentralClient || offersPeripheralServer {
            // The reader is peripheral where the phone is central.
            carriers.append(
                NFCHandover.ble(isPeripheral: offersCentralClient, isCentral: offersPeripheralServer, uuid: uuid)
            )
        }
        if offersNFC { carriers.append(NFCHandover.nfc(command: 65_535, response: 65_536)) }
        let version: CBORValue = [0: "1.0"]
        let engagement = NDEFRecords.Record(
            .external,
            "iso.org:18013:readerengagement",
            id: "mdocreader",
            version.encoding
        )
        return NFCHandover.message("Hr", engagement, carriers, auxiliary: nil)
    }

    /// Reads the request of a reader.
    package init(_ message: [UInt8]) throws(MdocProblem) {
        let records = try reading(NFCHandover.records(message))
        guard records.contains(where: { $0.isType(.wellKnown, "Hr") }) else {
            throw .noEngagement("the message is no handover request")
        }
        var roles: (isPeripheral: Bool, isCentral: Bool, uuid: [UInt8]?)?
        if let ble = records.first(where: { $0.isType(.media, NFCHandover.bleType) }) {
            roles = try reading(NFCHandover.ble(ble.payload))
        }
        offersCentralClient = roles?.isPeripheral ?? false
        offersPeripheralServer = roles?.isCentral ?? false
        offersNFC = records.contains { $0.isType(.external, NFCHandover.nfcType) }
        uuid = roles?.uuid
    }
}

/// The message of a phone that ends a handover, static or negotiated. ISO/IEC 18013-5, 8.2.2.1.
package struct HandoverSelect: Sendable {
    package let engagement: DeviceEngagement
    /// The ways to connect that badged knows, Bluetooth first.
    package let ways: [DeviceEngagement.Way]
    /// What goes into the transcript.
    package let handover: MdocHandover

    /// Reads the message of a phone. Records are found by their types.
    /// `request`: the request as it was sent; nil in a static handover.
    /// - Throws: `.noEngagement` for a message without engagement; `.unsupported` without a way that badged knows.
    package init(_ message: [UInt8], request: [UInt8]?) throws(MdocProblem) {
        let records = try reading(NFCHandover.records(message))
        guard let select = records.first(where: { $0.isType(.wellKnown, "Hs") }),
            select.payload.first.map({ $0 >> 4 }) == 1,
            let engagement = records.first(where: { $0.isType(.external, NFCHandover.engagementType) })
        else { throw .noEngagement("the message has no handover with an engagement of a mobile document") }
        self.engagement = try DeviceEngagement(engagement.payload)
        let offered = try request.map(HandoverRequest.init)
        var ways: [DeviceEngagement.Way] = []
        for record in records where record.isType(.media, NFCHandover.bleType) {
            let found = try reading(NFCHandover.ble(record.payload))
            // In a negotiated handover, the phone as client uses the UUID of the reader. 8.3.3.1.1.2.
            guard let found, let uuid = found.uuid ?? offered?.uuid else { continue }
            let ble = DeviceEngagement.BLE(
                server: found.isPeripheral ? uuid : nil,
                client: found.isCentral ? uuid : nil
            )
            ways.append(.ble(ble))
        }
        if let carrier = records.first(where: { $0.isType(.external, NFCHandover.nfcType) }) {
            ways.append(NFCHandover.nfc(carrier.payload))
        }
        guard !ways.isEmpty else { throw .unsupported("the phone offers no way to connect that badged knows") }
        self.ways = ways
        handover = .nfc(select: message, request: request)
    }

    /// Writes the message of a phone.
    /// `engagement`: without ways.
    /// `namesUUID`: whether the carrier of Bluetooth has a UUID, as it must in a static handover.
    package static func encoding(engagement: [UInt8], ways: [DeviceEngagement.Way], namesUUID: Bool) -> [UInt8] {
        let carriers = ways.map { way in
            switch way {
            case .ble(let ble):
                NFCHandover.ble(
                    isPeripheral: ble.server != nil,
                    isCentral: ble.client != nil,
                    uuid: namesUUID ? ble.server ?? ble.client : nil
                )
            case .nfc(let command, let response): NFCHandover.nfc(command: command, response: response)
            }
        }
        let record = NDEFRecords.Record(.external, NFCHandover.engagementType, id: "mdoc", engagement)
        return NFCHandover.message("Hs", record, carriers, auxiliary: "mdoc")
    }
}
