// SPDX-License-Identifier: GPL-3.0-or-later
import ReadersRemote
import Text

/// The state of one slot, as the message IFDStatus reports it.
package struct IFDStatus: Sendable, Equatable {
    package var slot: String
    /// Whether the other device asks its user for PIN, CAN and PUK.
    package var hasKeypad = false
    /// The longest APDU in bytes; nil: not known.
    package var maximumAPDU: Int?
    package var isConnected = true
    package var hasCard = false

    package init(slot: String, hasKeypad: Bool = false, maximumAPDU: Int? = nil, hasCard: Bool = false) {
        self.slot = slot
        self.hasKeypad = hasKeypad
        self.maximumAPDU = maximumAPDU
        self.hasCard = hasCard
    }

    /// Whether extended-length APDUs pass. Less than 500 bytes counts as "no".
    package var hasExtendedLength: Bool { maximumAPDU.map { $0 >= 500 } ?? true }
}

/// One message of the remote reader protocol. There are no message numbers: an answer is identified by its type.
package enum IFDMessage: Sendable, Equatable {
    case establishContext(protocolName: String, deviceName: String)
    case establishContextResponse(deviceName: String, IFDResult)
    /// An empty slot asks for all.
    case getStatus(slot: String)
    case status(IFDStatus)
    case connect(slot: String)
    case connectResponse(handle: String, IFDResult)
    case disconnect(handle: String)
    case disconnectResponse(handle: String, IFDResult)
    /// `text` is for the display of the other device; a number with `%` moves its progress bar. Version 2 only.
    case transmit(handle: String, apdu: [UInt8], text: String? = nil)
    case transmitResponse(handle: String, apdu: [UInt8], IFDResult)
    /// `input` as in PC/SC part 10, amendment 1.
    case establishPACE(handle: String, input: [UInt8])
    /// `code` has 4 bytes, little-endian.
    case establishPACEResponse(handle: String, code: UInt32, output: [UInt8], IFDResult)
    case modifyPIN(handle: String, input: [UInt8])
    case modifyPINResponse(handle: String, output: [UInt8], IFDResult)
    case destroyPACE(handle: String)
    case destroyPACEResponse(handle: String, IFDResult)
    case error(IFDResult)

    package static let maximumAPDU = 65_600
    /// The longest message: an APDU of the greatest length in hexadecimal, and its members.
    package static let maximumCount = 2 * maximumAPDU + 4096
    package static let maximumNameCount = 512
}

/// A message and the context that it belongs to.
package struct IFDEnvelope: Sendable, Equatable {
    /// nil: the member is missing.
    package var context: String?
    package var message: IFDMessage

    package init(context: String?, _ message: IFDMessage) { (self.context, self.message) = (context, message) }
}

/// Why a message cannot be read.
package enum IFDParseError: Error, Sendable, Equatable {
    /// No JSON object, or one without `msg`.
    case notAMessage
    /// A `msg` that this protocol does not have.
    case unknown
    /// A member is missing or has another type or a wrong value. The names are those of messages of this protocol.
    case incomplete(name: String, context: String?)
}

extension IFDEnvelope {
    /// Parses a message of either version.
    package init(_ bytes: [UInt8]) throws(IFDParseError) {
        guard bytes.count <= IFDMessage.maximumCount, let json = try? JSON(bytes), json.members != nil,
            let name = json["msg"]?.string
        else { throw .notAMessage }
        let context = json["ContextHandle"]?.string
        guard let parse = Self.questions[name] ?? Self.answers[name] else { throw .unknown }
        guard let message = parse(Members(json)) else { throw .incomplete(name: name, context: context) }
        self.init(context: context, message)
    }

    /// The members of a message, with their bounds.
    private struct Members {
        let json: JSON

        init(_ json: JSON) { self.json = json }

        func text(_ key: String) -> String? {
            guard let text = json[key]?.string, text.utf8.count <= IFDMessage.maximumNameCount else { return nil }
            return text
        }

        func bytes(_ key: String) -> [UInt8]? { Self.bytes(json[key]) }

        static func bytes(_ value: JSON?) -> [UInt8]? {
            value?.string.flatMap { Hex.decode($0, limit: IFDMessage.maximumAPDU) }
        }

        var handle: String? { text("SlotHandle") }
        var result: IFDResult? { IFDResult(json) }
    }

    private typealias Parser = @Sendable (Members) -> IFDMessage?

    /// The questions, and what is said without one.
    private static let questions: [String: Parser] = [
        "IFDEstablishContext": { members in
            guard let version = members.text("Protocol"), let name = members.text("UDName") else { return nil }
            return .establishContext(protocolName: version, deviceName: DeviceName.clean(name))
        },
        "IFDGetStatus": { members in members.text("SlotName").map { .getStatus(slot: $0) } },
        "IFDStatus": { members in
            guard let slot = members.text("SlotName"), let isConnected = members.json["ConnectedReader"]?.bool,
                let hasCard = members.json["CardAvailable"]?.bool
            else { return nil }
            let keypad = members.json["PINPad"] ?? members.json["PINCapabilities"]?["PACE"]
            var status = IFDStatus(slot: slot, hasKeypad: keypad?.bool ?? false, hasCard: isConnected && hasCard)
            status.isConnected = isConnected
            if let most = members.json["MaxAPDULength"]?.int, most >= 0 { status.maximumAPDU = most }
            return .status(status)
        },
        "IFDConnect": { members in members.text("SlotName").map { .connect(slot: $0) } },
        "IFDDisconnect": { members in members.handle.map { .disconnect(handle: $0) } },
        "IFDTransmit": { members in
            guard let handle = members.handle else { return nil }
            // Version 0 has an array, of which only the first command counts.
            let first = members.json["CommandAPDUs"]?.array?.first?["InputAPDU"]
            guard let apdu = members.bytes("InputAPDU") ?? Members.bytes(first) else { return nil }
            return .transmit(handle: handle, apdu: apdu, text: members.text("DisplayText"))
        },
        "IFDEstablishPACEChannel": { members in
            guard let handle = members.handle, let input = members.bytes("InputData") else { return nil }
            return .establishPACE(handle: handle, input: input)
        },
        "IFDModifyPIN": { members in
            guard let handle = members.handle, let input = members.bytes("InputData") else { return nil }
            return .modifyPIN(handle: handle, input: input)
        },
        "IFDDestroyPACEChannel": { members in members.handle.map { .destroyPACE(handle: $0) } },
    ]

    private static let answers: [String: Parser] = [
        "IFDEstablishContextResponse": { members in
            guard let result = members.result else { return nil }
            let name = members.text("IFDName") ?? ""
            return .establishContextResponse(deviceName: DeviceName.clean(name), result)
        },
        "IFDConnectResponse": { members in
            guard let handle = members.handle, let result = members.result else { return nil }
            return .connectResponse(handle: handle, result)
        },
        "IFDDisconnectResponse": { members in
            guard let handle = members.handle, let result = members.result else { return nil }
            return .disconnectResponse(handle: handle, result)
        },
        "IFDTransmitResponse": { members in
            guard let handle = members.handle, let result = members.result else { return nil }
            let first = members.json["ResponseAPDUs"]?.array?.first
            let apdu = members.bytes("ResponseAPDU") ?? Members.bytes(first)
            guard let apdu = result == .ok ? apdu : apdu ?? [] else { return nil }
            return .transmitResponse(handle: handle, apdu: apdu, result)
        },
        "IFDEstablishPACEChannelResponse": { members in
            guard let handle = members.handle, let result = members.result, let code = members.bytes("ResultCode"),
                code.count == 4, let output = members.bytes("OutputData")
            else { return nil }
            let number = code.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            return .establishPACEResponse(handle: handle, code: number, output: output, result)
        },
        "IFDModifyPINResponse": { members in
            guard let handle = members.handle, let result = members.result, let output = members.bytes("OutputData")
            else { return nil }
            return .modifyPINResponse(handle: handle, output: output, result)
        },
        "IFDDestroyPACEChannelResponse": { members in
            guard let handle = members.handle, let result = members.result else { return nil }
            return .destroyPACEResponse(handle: handle, result)
        },
        "IFDError": { members in members.result.map { .error($0) } },
    ]

    /// Whether a message of this name is an answer.
    package static func isAnswer(_ name: String) -> Bool { answers[name] != nil }

    /// Encodes a message with sorted members, as AusweisApp does.
    package func encode(_ version: IFDVersion) -> [UInt8] {
        JSONWriter.bytes { object in
            if let context { object.member("ContextHandle", context) }
            message.write(to: &object, version)
        }
    }
}

extension IFDMessage {
    fileprivate func write(to object: inout JSONWriter, _ version: IFDVersion) {
        switch self {
        case .establishContext(let name, let device):
            object.member("Protocol", name)
            object.member("UDName", device)
            object.member("msg", "IFDEstablishContext")
        case .establishContextResponse(let device, let result):
            object.member("IFDName", device)
            result.write(to: &object)
            object.member("msg", "IFDEstablishContextResponse")
        case .getStatus(let slot):
            object.member("SlotName", slot)
            object.member("msg", "IFDGetStatus")
        case .status(let status): Self.write(status, to: &object, version)
        case .connect(let slot):
            object.member("SlotName", slot)
            object.member("exclusive", true)
            object.member("msg", "IFDConnect")
        case .connectResponse(let handle, let result):
            Self.write("IFDConnectResponse", handle, result, to: &object)
        case .disconnect(let handle): Self.write("IFDDisconnect", handle, nil, to: &object)
        case .disconnectResponse(let handle, let result):
            Self.write("IFDDisconnectResponse", handle, result, to: &object)
        case .transmit(let handle, let apdu, let text):
            switch version {
            case .two:
                if let text { object.member("DisplayText", text) }
                object.member("InputAPDU", Hex.encode(apdu))
            case .zero:
                object.array("CommandAPDUs", [apdu]) { array, apdu in
                    array.object { entry in
                        entry.member("AcceptableStatusCodes", JSON.null)
                        entry.member("InputAPDU", Hex.encode(apdu))
                    }
                }
            }
            Self.write("IFDTransmit", handle, nil, to: &object)
        case .transmitResponse(let handle, let apdu, let result):
            switch version {
            case .two: object.member("ResponseAPDU", Hex.encode(apdu))
            case .zero: object.member("ResponseAPDUs", [Hex.encode(apdu)])
            }
            Self.write("IFDTransmitResponse", handle, result, to: &object)
        case .establishPACE(let handle, let input):
            object.member("InputData", Hex.encode(input))
            Self.write("IFDEstablishPACEChannel", handle, nil, to: &object)
        case .establishPACEResponse(let handle, let code, let output, let result):
            object.member("OutputData", Hex.encode(output))
            object.member("ResultCode", Hex.encode(code.byteSwapped))
            Self.write("IFDEstablishPACEChannelResponse", handle, result, to: &object)
        case .modifyPIN(let handle, let input):
            object.member("InputData", Hex.encode(input))
            Self.write("IFDModifyPIN", handle, nil, to: &object)
        case .modifyPINResponse(let handle, let output, let result):
            object.member("OutputData", Hex.encode(output))
            Self.write("IFDModifyPINResponse", handle, result, to: &object)
        case .destroyPACE(let handle): Self.write("IFDDestroyPACEChannel", handle, nil, to: &object)
        case .destroyPACEResponse(let handle, let result):
            Self.write("IFDDestroyPACEChannelResponse", handle, result, to: &object)
        case .error(let result): Self.write("IFDError", "", result, to: &object)
        }
    }

    private static func write(_ name: String, _ handle: String, _ result: IFDResult?, to object: inout JSONWriter) {
        result?.write(to: &object)
        object.member("SlotHandle", handle)
        object.member("msg", name)
    }

    private static func write(_ status: IFDStatus, to object: inout JSONWriter, _ version: IFDVersion) {
        object.member("CardAvailable", status.hasCard)
        object.member("ConnectedReader", status.isConnected)
        object.member("EFATR", JSON.null)
        object.member("EFDIR", JSON.null)
        object.member("MaxAPDULength", status.maximumAPDU ?? -1)
        switch version {
        case .two: object.member("PINPad", status.hasKeypad)
        case .zero:
            object.object("PINCapabilities") { entry in
                entry.member("Destroy", false)
                // The blocks of version 0 are not supported.
                entry.member("PACE", false)
                entry.member("eID", false)
                entry.member("eSign", false)
            }
        }
        object.member("SlotName", status.slot)
        object.member("msg", "IFDStatus")
    }
}

/// The result members of an answer: `ResultMajor` and `ResultMinor`.
package enum IFDResult: Sendable, Equatable {
    case ok
    case failed(Minor)

    /// The known reasons; every other one reads as `unknownError`.
    package enum Minor: String, Sendable, CaseIterable {
        case unknownError = "/al/common#unknownError"
        case unknownAPIFunction = "/al/common#unknownAPIFunction"
        case unknownSlot = "/ifdl/terminal#unknownSlot"
        case sharingViolation = "/ifdl/terminal#IFDSharingViolation"
        case invalidSlotHandle = "/ifdl/common#invalidSlotHandle"
        case noCard = "/ifdl/terminal#noCard"
        case timeout = "/ifdl/common#timeoutError"
        case cancelled = "/ifdl#cancellationByUser"
        case repeatedDataMismatch = "/ifdl/IO#repeatedDataMismatch"
        case unknownPINFormat = "/ifdl/IO#unknownPINFormat"
    }

    private static let major = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor"
    private static let minor = "http://www.bsi.bund.de/ecard/api/1.1/resultminor"

    /// Reads the members; nil if `ResultMajor` is missing or unknown.
    init?(_ json: JSON) {
        switch json["ResultMajor"]?.string {
        case Self.major + "#ok": self = .ok
        case Self.major + "#error":
            let text = json["ResultMinor"]?.string ?? ""
            let ending = text.hasPrefix(Self.minor) ? String(text.dropFirst(Self.minor.count)) : ""
            self = .failed(Minor(rawValue: ending) ?? .unknownError)
        default: return nil
        }
    }

    func write(to object: inout JSONWriter) {
        switch self {
        case .ok:
            object.member("ResultMajor", Self.major + "#ok")
            object.member("ResultMinor", JSON.null)
        case .failed(let reason):
            object.member("ResultMajor", Self.major + "#error")
            object.member("ResultMinor", Self.minor + reason.rawValue)
        }
    }
}
