// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Text

/// How a phone offers to talk: its key for the session, and the ways to connect. ISO/IEC 18013-5, 8.2.1.1.
package struct DeviceEngagement: Sendable {
    /// A way to connect, with what it needs.
    package enum Way: Sendable, Equatable {
        /// NFC with the longest command and response data that the phone takes, in bytes. 8.2.2.2.
        case nfc(command: Int, response: Int)
        /// Bluetooth Low Energy. 8.3.3.1.1.
        case ble(BLE)
    }

    /// The modes of Bluetooth Low Energy that a phone offers; at least one. UUIDs have 16 bytes in network order.
    package struct BLE: Sendable, Equatable {
        /// The service that the phone has as GATT server (peripheral server mode); nil without this mode.
        package var server: [UInt8]?
        /// The service that the reader must have (central client mode); nil without this mode.
        package var client: [UInt8]?
        /// The address of the phone, 6 bytes.
        package var address: [UInt8]?

        package init(server: [UInt8]? = nil, client: [UInt8]? = nil, address: [UInt8]? = nil) {
            self.server = server
            self.client = client
            self.address = address
        }
    }

    /// What a phone of the second edition says that it can do.
    package struct Capabilities: Sendable, Equatable {
        package var readerAuthAll = false
        package var extendedRequest = false

        package init(readerAuthAll: Bool = false) { self.readerAuthAll = readerAuthAll }
    }

    /// The longest engagement that is read.
    package static let maximumBytes = 4096

    /// The bytes as they came, which are hashed.
    package let encoded: [UInt8]
    /// The key of the phone for this session.
    package let key: ECPublicKey
    /// The key as it came, with tag 24: EDeviceKeyBytes.
    package let keyBytes: [UInt8]
    /// The ways that badged knows; empty in an engagement by NFC, whose carriers are in `HandoverSelect`.
    package let ways: [Way]
    package let capabilities: Capabilities

    /// Reads an engagement.
    /// - Throws: `.unsupported` for another version, cipher suite or curve; `.malformed`.
    package init(_ bytes: [UInt8]) throws(MdocProblem) {
        var limits = CBOR.Limits()
        limits.bytes = Self.maximumBytes
        let item = try reading(CBOR(bytes, limits: limits))
        guard item.kind == .map else { throw .malformed("the engagement is no map") }
        let minor = try MdocVersion.minor(item[0]?.text)
        guard let security = item[1]?.array, security.count >= 2, let suite = security[0].integer else {
            throw .malformed("the engagement has no key")
        }
        guard suite == 1 else { throw .unsupported("the cipher suite \(suite)") }
        encoded = bytes
        key = try ECPublicKey(cose: try reading(security[1].embedded()))
        keyBytes = security[1].encoded
        guard let methods = item[2].map(\.array) ?? [] else { throw .malformed("the ways to connect are no list") }
        ways = methods.compactMap(Self.way)
        // Before version 1.1 a wallet used these keys for something else.
        capabilities = minor >= 1 ? Self.capabilities(item[6]) : Capabilities()
    }

    /// Reads the text of a QR code: `mdoc:` and base64url. Scanners and wallets add spaces, slashes and padding. 8.2.2.3.
    /// - Throws: `.noEngagement` for the code of something else, and as the initialiser for bytes.
    package init(qr text: String) throws(MdocProblem) {
        let bytes = text.utf8.filter { $0 > 0x20 }
        let prefix = Array("mdoc:".utf8)
        guard bytes.count <= 2 * Self.maximumBytes, bytes.prefix(prefix.count).map({ $0 | 0x20 }) == prefix else {
            throw .noEngagement("the text is no QR code of a mobile document, which begins with mdoc:")
        }
        let digits = bytes.dropFirst(prefix.count).drop { $0 == UInt8(ascii: "/") }.map { digit in
            switch digit {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: digit
            }
        }
        guard let engagement = Base64.url.decode(ignoringPadding: String(decoding: digits, as: UTF8.self)) else {
            throw .noEngagement("the QR code is no base64url")
        }
        try self.init(engagement)
    }

    private static func way(_ item: CBOR) -> Way? {
        guard let parts = item.array, parts.count >= 3, let type = parts[0].integer, parts[1].integer == 1 else {
            return nil
        }
        let options = parts[2]
        switch type {
        case 1:
            return nfc(command: options[0]?.integer ?? 255, response: options[1]?.integer ?? 256)
        case 2:
            let offers = (server: options[0]?.bool == true, client: options[1]?.bool == true)
            let ble = BLE(
                server: offers.server ? uuid(options[10]) : nil,
                client: offers.client ? uuid(options[11]) : nil,
                address: options[20]?.bytes.flatMap { $0.count == 6 ? $0 : nil }
            )
            return ble.server == nil && ble.client == nil ? nil : .ble(ble)
        default: return nil
        }
    }

    /// The lengths of a phone within what the standard allows. 8.2.2.2.
    static func nfc(command: Int64, response: Int64) -> Way {
        .nfc(command: Int(min(max(command, 255), 65_535)), response: Int(min(max(response, 256), 65_536)))
    }

    /// A UUID; old wallets write it as text.
    private static func uuid(_ item: CBOR?) -> [UInt8]? {
        let bytes = item?.bytes ?? item?.text.flatMap(UUIDText.decode)
        return bytes?.count == 16 ? bytes : nil
    }

    private static func capabilities(_ item: CBOR?) -> Capabilities {
        var capabilities = Capabilities()
        capabilities.readerAuthAll = item?[3]?.bool ?? false
        capabilities.extendedRequest = item?[4]?.bool ?? false
        return capabilities
    }

    /// Writes the engagement of a phone.
    /// `ways`: nil in an engagement by NFC.
    /// `capabilities`: makes an engagement of version 1.1.
    package static func encoding(
        key: ECPublicKey,
        ways: [Way]?,
        capabilities: Capabilities? = nil
    ) throws(MdocProblem) -> [UInt8] {
        guard let key = key.cose else { throw .unsupported("the curve of the phone's key") }
        var pairs: [(CBORValue, CBORValue)] = [
            (0, .text(capabilities == nil ? "1.0" : "1.1")), (1, [1, .embedded(key)]),
        ]
        if let ways { pairs.append((2, .array(ways.map(\.value)))) }
        if let capabilities {
            let value: CBORValue = [3: .bool(capabilities.readerAuthAll), 4: .bool(capabilities.extendedRequest)]
            pairs.append((6, value))
        }
        return CBORValue.map(pairs).encoding
    }
}

extension DeviceEngagement.Way {
    fileprivate var value: CBORValue {
        switch self {
        case .nfc(let command, let response):
            return [1, 1, [0: .integer(Int64(command)), 1: .integer(Int64(response))]]
        case .ble(let ble):
            var options: [(CBORValue, CBORValue)] = [(0, .bool(ble.server != nil)), (1, .bool(ble.client != nil))]
            if let server = ble.server { options.append((10, .bytes(server))) }
            if let client = ble.client { options.append((11, .bytes(client))) }
            if let address = ble.address { options.append((20, .bytes(address))) }
            return [2, 1, .map(options)]
        }
    }
}

/// Versions of structures: two numbers with a point. ISO/IEC 18013-5, 8.2.1.1.
enum MdocVersion {
    /// The number after the point of a version 1.x. A higher one than known is read as the highest known.
    /// - Throws: `.unsupported` for another major version, `.malformed` for something else.
    static func minor(_ text: String?) throws(MdocProblem) -> Int {
        guard let text else { throw .malformed("there is no version") }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard text.utf8.count <= 16, parts.count <= 2, let major = Int(Substring(parts[0])), major >= 0,
            let minor = parts.count < 2 ? 0 : Int(Substring(parts[1])), minor >= 0
        else { throw .malformed("the version is no number") }
        guard major == 1 else { throw .unsupported("the version \(major).\(minor)") }
        return minor
    }
}
