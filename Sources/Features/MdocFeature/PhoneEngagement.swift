// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
import MobileDocument

/// How a phone wants to talk: its engagement, the ways that it offers, and how it came.
struct PhoneEngagement {
    /// `engagement` in MDOC.
    enum Kind: String {
        case qr
        case nfcStatic
        case nfcNegotiated
    }

    let kind: Kind
    let engagement: DeviceEngagement
    let ways: [DeviceEngagement.Way]
    let handover: MdocHandover

    /// The longest data of a command and of an answer over NFC; nil: the phone does not offer it.
    var nfcLimits: NFCTransport.Limits? {
        for case .nfc(let command, let response) in ways { return (command, response) }
        return nil
    }

    var bluetooth: DeviceEngagement.BLE? {
        for case .ble(let ble) in ways { return ble }
        return nil
    }

    /// The ways that the phone offers and badged knows.
    var offers: Set<MdocWay> {
        var ways: Set<MdocWay> = nfcLimits == nil ? [] : [.nfc]
        if bluetooth?.client != nil { ways.insert(.bleCentral) }
        if bluetooth?.server != nil { ways.insert(.blePeripheral) }
        return ways
    }

    /// The engagement in a QR code.
    init(qr engagement: DeviceEngagement) {
        kind = .qr
        self.engagement = engagement
        ways = engagement.ways
        handover = .qr
    }

    private init(_ kind: Kind, _ select: HandoverSelect) {
        self.kind = kind
        engagement = select.engagement
        ways = select.ways
        handover = select.handover
    }

    /// Runs a static or a negotiated handover with the phone on a reader. `offered` are the ways that badged offers in a
    /// negotiated one. ISO/IEC 18013-5, 8.2.2.1.
    static func read(on channel: any CardChannel, offering offered: Set<MdocWay>) async throws(NFCProblem) -> Self {
        let application = try await NDEFApplication(on: channel)
        let first = try await application.message()
        guard let service = try part(of: first, TNEPService(in: first)) else {
            return Self(
                .nfcStatic,
                try part(of: first, HandoverSelect(first, request: nil))
            )
        }
        let pause = Int64(service.wait / .milliseconds(1))
        try await application.write(TNEPService.select)
        let status = try await application.message(pause: pause)
        try part(of: nil, TNEPService.checkStatus(status))
        let request = HandoverRequest.encoding(
            uuid: try uuid(),
            offersCentralClient: offered.contains(.bleCentral),
            offersPeripheralServer: offered.contains(.blePeripheral),
            offersNFC: offered.contains(.nfc)
        )
        try await application.write(request)
        let select = try await application.message(pause: pause)
        return Self(
            .nfcNegotiated,
            try part(of: nil, HandoverSelect(select, request: request))
        )
    }

    private static func uuid() throws(NFCProblem) -> [UInt8] {
        do throws(CryptoError) {
            return try Random.bytes(16)
        } catch {
            throw .mdoc(.library(error))
        }
    }

    /// Reads a message of the phone. The first one may be that of a tag.
    private static func part<Value>(
        of tag: [UInt8]?,
        _ value: @autoclosure () throws(MdocProblem) -> Value
    ) throws(NFCProblem) -> Value {
        do throws(MdocProblem) {
            return try value()
        } catch {
            if case .noEngagement = error, let tag { throw .noHandover(tag) }
            throw .mdoc(error)
        }
    }
}
