// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816

/// Encodes and parses the data of feature EXECUTE_PACE. PC/SC part 10, amendment 1, 2.6.16.
package enum PACEChannel {
    /// Encodes the input of EstablishPACEChannel; nil when a field is too long for its length bytes.
    package static func establish(_ request: KeypadPACERequest) -> [UInt8]? {
        guard let data = input(request), let length = UInt16(exactly: data.count) else { return nil }
        return [0x02] + littleEndian(length) + data
    }

    /// Encodes the input without function and length, as the remote reader protocol has it.
    package static func input(_ request: KeypadPACERequest) -> [UInt8]? {
        guard let chatLength = UInt8(exactly: request.chat.count),
            let descriptionLength = UInt16(exactly: request.certificateDescription.count)
        else { return nil }
        var data = [request.passwordID, chatLength] + request.chat
        // The password is empty, so the reader asks its user.
        data.append(0)
        data += littleEndian(descriptionLength) + request.certificateDescription
        return data
    }

    /// Parses the input without function and length; nil when it is truncated or has trailing bytes. A password in it
    /// is not used.
    package static func request(_ input: some Sequence<UInt8>) -> KeypadPACERequest? {
        var bytes = Fields(input)
        guard let id = bytes.number(1) else { return nil }
        var request = KeypadPACERequest(passwordID: UInt8(truncatingIfNeeded: id))
        request.chat = bytes.variable(lengthBytes: 1)
        _ = bytes.variable(lengthBytes: 1)
        guard !bytes.isEmpty else { return nil }
        request.certificateDescription = bytes.variable(lengthBytes: 2)
        return bytes.isCut || !bytes.isEmpty ? nil : request
    }

    /// Encodes the output data without result code and length.
    package static func output(_ result: KeypadPACEResult) -> [UInt8] {
        let status = result.mseStatus?.value ?? 0
        let access = result.cardAccess.isEmpty ? [0x31, 0x00] : result.cardAccess
        var bytes = [UInt8(status >> 8), UInt8(truncatingIfNeeded: status)]
        bytes += littleEndian(UInt16(clamping: access.count)) + access.prefix(Int(UInt16.max))
        guard result.outcome == .established else { return bytes }
        for car in [result.carCurrent, result.carPrevious] {
            bytes += [UInt8(clamping: car.count)] + car.prefix(Int(UInt8.max))
        }
        return bytes + littleEndian(UInt16(clamping: result.idPICC.count)) + result.idPICC.prefix(Int(UInt16.max))
    }

    package static func code(_ outcome: KeypadPACEResult.Outcome) -> UInt32 {
        switch outcome {
        case .established: 0
        case .wrongPassword: 0xF006_6300
        case .cancelled: 0xF020_0001
        case .timeout: 0xF020_0002
        case .noCard: 0xF010_0002
        case .failed(let code): code
        }
    }

    /// The input of DestroyPACEChannel.
    package static let destroy: [UInt8] = [0x03, 0x00, 0x00]

    /// Parses the output of EstablishPACEChannel; nil when it is shorter than a result code, or is truncated although
    /// it reports success.
    ///
    /// Fields at the end may be missing. After a failure only the result code is required, because Reiner SCT readers
    /// then omit most fields.
    package static func established(_ output: some Sequence<UInt8>) -> KeypadPACEResult? {
        var bytes = Fields(output)
        guard let code = bytes.number(4) else { return nil }
        var result = KeypadPACEResult(outcome: outcome(code))
        // Drivers may append padding after the announced length.
        var data = Fields(bytes.variable(lengthBytes: 2))
        // Only the status word is big-endian.
        result.mseStatus = data.number(2).map { StatusWord(UInt16(truncatingIfNeeded: $0).byteSwapped) }
        result.cardAccess = data.variable(lengthBytes: 2)
        result.carCurrent = data.variable(lengthBytes: 1)
        result.carPrevious = data.variable(lengthBytes: 1)
        result.idPICC = data.variable(lengthBytes: 2)
        let isWhole = !bytes.isCut && !data.isCut && data.isEmpty
        return code == 0 && !isWhole ? nil : result
    }

    /// Parses the result code of DestroyPACEChannel; nil when there is none.
    package static func destroyed(_ output: some Sequence<UInt8>) -> UInt32? {
        var bytes = Fields(output)
        return bytes.number(4)
    }

    /// The meaning of a result code.
    package static func outcome(_ code: UInt32) -> KeypadPACEResult.Outcome {
        switch code {
        case 0: return .established
        case 0xF010_0002: return .noCard
        case 0xF020_0001: return .cancelled
        case 0xF020_0002: return .timeout
        default: break
        }
        // F0 STEP SW1 SW2: the card refused a command. Steps 3 to 6 are the four GENERAL AUTHENTICATE.
        let (step, sw1) = (code >> 16 & 0xFF, code >> 8 & 0xFF)
        return code >> 24 == 0xF0 && (3...6).contains(step) && sw1 == 0x63 ? .wrongPassword : .failed(code)
    }

    private static func littleEndian(_ number: UInt16) -> [UInt8] {
        [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
    }

    /// Reads fields one after the other. Fields past the end of the bytes are empty; a truncated field ends the
    /// reading.
    private struct Fields {
        private var rest: ArraySlice<UInt8>
        private(set) var isCut = false
        var isEmpty: Bool { rest.isEmpty }

        init(_ bytes: some Sequence<UInt8>) { rest = Array(bytes)[...] }

        /// Reads a little-endian number; nil at the end.
        mutating func number(_ count: Int) -> UInt32? {
            guard !rest.isEmpty, let bytes = read(count) else { return nil }
            return bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
        }

        /// Reads a length and as many bytes; empty at the end.
        mutating func variable(lengthBytes: Int) -> [UInt8] {
            guard let length = number(lengthBytes) else { return [] }
            return read(Int(length)).map { Array($0) } ?? []
        }

        private mutating func read(_ count: Int) -> ArraySlice<UInt8>? {
            guard !isCut, rest.count >= count else {
                isCut = true
                rest = []
                return nil
            }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
    }
}

/// The PIN_MODIFY block of feature MODIFY_PIN_DIRECT. PC/SC part 10, 2.6.3; USB CCID, 6.1.12.
///
/// The reader does not ask for the current PIN, because PACE has proven it. RESET RETRY COUNTER (TR-03110-3 B.11.6)
/// takes the new PIN.
package struct PINModification: Sendable, Equatable {
    /// The time limit for each key in seconds.
    package var seconds: UInt8 = 90
    package var minimumDigits: UInt8 = 6
    package var maximumDigits: UInt8 = 6

    package init() {}

    /// The command that the reader completes with the new PIN: RESET RETRY COUNTER with new data.
    package static let template: [UInt8] = [0x00, 0x2C, 0x02, 0x03]

    package var bytes: [UInt8] {
        var bytes: [UInt8] = [seconds, seconds]
        bytes += [
            0x82,  // bmFormatString: ASCII, left justified, system unit byte
            0x00,  // bmPINBlockString: no length, no fixed size
            0x00,  // bmPINLengthFormat
            0x00,  // bInsertionOffsetOld
            0x00,  // bInsertionOffsetNew
            maximumDigits, minimumDigits,  // wPINMaxExtraDigit, little-endian
            0x01,  // bConfirmPIN: ask twice for the new PIN, and not for the current one
            0x02,  // bEntryValidationCondition: by the validation key
            0x02,  // bNumberMessage
            0x07, 0x04,  // wLangId: German, little-endian
            // bMsgIndex1 to 3. Two messages are announced, but Reiner SCT readers require the third index.
            0x00, 0x01, 0x02,
            0x00, 0x00, 0x00,  // bTeoPrologue
        ]
        let length = UInt32(Self.template.count)
        bytes += (0..<4).map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) }
        return bytes + Self.template
    }
}
