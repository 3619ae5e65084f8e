// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CNFC
import Glibc
import Synchronization

/// An open device of libnfc. One thread uses it; other threads may call only `abort`.
///
/// The driver sends raw frames to the card. libnfc's own block protocol ("easy framing") writes past its buffer with
/// commands of 263 bytes and more, and takes no long answers. The chip must not activate cards of type A, because
/// libnfc then copies the card's answer by the length that the card states.
final class NFCDevice: @unchecked Sendable {
    private let library: NFCLibrary
    private var device: OpaquePointer?
    let connection: ConnectionString
    /// The name that libnfc assigns to the device.
    let name: String
    /// Whether the device sends raw frames. If not, the chip makes the blocks and commands are short.
    private(set) var sendsFrames = true
    /// How long the chip waits for the answer of a card, as last set.
    private var waitingTime = Duration.zero
    /// Whether the chip searches without a time limit, as last set.
    private var hasInfiniteSearch = false
    /// Whether the chip supports cards of type B.
    let hasTypeB: Bool
    /// An eventfd that `abort` makes readable; -1 where libnfc's own abort works.
    private let abortEvent: Int32
    private let answer: UnsafeMutableBufferPointer<UInt8>
    /// When the running call of libnfc has begun.
    private let callStart = Mutex<ContinuousClock.Instant?>(nil)

    /// The longest answer of a chip: 262 bytes and a status.
    private static let maximumAnswer = 264
    /// The longest command that libnfc's own block protocol takes.
    private static let maximumFramedCommand = 262
    /// The time that a device may need in addition to the card's waiting time.
    private static let deviceTimeout = Duration.milliseconds(1500)

    /// Opens the device and switches its field on. Blocks, for some seconds when no device answers.
    /// - Throws: `.openFailed`, for which libnfc reports no reason; or the error of the preparation.
    init(_ connection: ConnectionString, _ library: NFCLibrary) throws(NFCCode) {
        self.connection = connection
        self.library = library
        let opened = connection.text.withCString { text in
            library.withContext(for: connection) { UInt(bitPattern: nfc_open($0, text)) }
        }
        guard let opened, let device = OpaquePointer(bitPattern: opened) else { throw .openFailed }
        abortEvent = connection.search == .alternating ? clinux_eventfd() : -1
        self.device = device
        name = String(cString: nfc_device_get_name(device))
        answer = .allocate(capacity: Self.maximumAnswer)
        hasTypeB = Self.supportsTypeB(device)
        try call { nfc_initiator_init($0) }
        try call { nfc_device_set_property_bool($0, NP_INFINITE_SELECT, false) }
        do throws(NFCCode) {
            try call { nfc_device_set_property_bool($0, NP_AUTO_ISO14443_4, false) }
            try call { nfc_device_set_property_bool($0, NP_EASY_FRAMING, false) }
        } catch {
            guard error.meaning == .unsupported else { throw error }
            sendsFrames = false
        }
    }

    private static func supportsTypeB(_ device: OpaquePointer) -> Bool {
        var list: UnsafePointer<nfc_modulation_type>?
        guard nfc_device_get_supported_modulation(device, N_INITIATOR, &list) == NFC_SUCCESS, var next = list else {
            return true
        }
        // The list ends with a zero.
        while next.pointee.rawValue != 0 {
            if next.pointee == NMT_ISO14443B { return true }
            next += 1
        }
        return false
    }

    deinit {
        close()
        answer.deallocate()
        if abortEvent >= 0 { Glibc.close(abortEvent) }
    }

    /// Switches the field off and closes the device.
    func close() {
        guard let device else { return }
        self.device = nil
        callStart.withLock { $0 = .now }
        defer { callStart.withLock { $0 = nil } }
        _ = library.withContext(for: connection) { _ in nfc_close(device) }
    }

    /// Has the chip make the blocks from now on. For a chip that takes no raw frames.
    func disableRawFrames() throws(NFCCode) {
        sendsFrames = false
        try call { nfc_device_set_property_bool($0, NP_AUTO_ISO14443_4, true) }
        try call { nfc_device_set_property_bool($0, NP_EASY_FRAMING, true) }
    }

    /// How long the running call of libnfc has lasted; 0 without one. For other threads.
    var callTime: Duration { callStart.withLock { $0.map { ContinuousClock.now - $0 } ?? .zero } }

    @discardableResult
    private func call(_ body: (OpaquePointer) -> Int32) throws(NFCCode) -> Int32 {
        guard let device else { throw .openFailed }
        callStart.withLock { $0 = .now }
        let result = body(device)
        callStart.withLock { $0 = nil }
        guard result >= 0 else { throw NFCCode(value: result) }
        // A function that libnfc's driver lacks returns 0 and sets this error.
        guard nfc_device_get_last_error(device) != NFC_EDEVNOTSUPP else { throw .unsupported }
        return result
    }

    // MARK: Looking for cards

    /// Lets the chip look for cards of both types until there is one. Blocks. The C function is
    /// nfc_initiator_poll_target.
    /// - Parameter isOnce: look for 150 ms for each type only.
    /// - Returns: nil when the chip found something that libnfc could not read, or nothing in time.
    /// - Throws: `.aborted` after `abort`.
    func poll(isOnce: Bool = false) throws(NFCCode) -> Target? {
        var target = nfc_target()
        var modulations = [Self.typeA, Self.typeB]
        // 0xFF: no limit; 1: 150 ms for each type.
        let found = try call { nfc_initiator_poll_target($0, &modulations, 2, isOnce ? 1 : 0xFF, 1, &target) }
        return found > 0 ? Target(target) : nil
    }

    /// Lets the chip look for cards of one type until there is one or `time` has passed (nil: no limit). Blocks.
    /// - Returns: nil when there was no card, or after `abort`.
    func wait(typeB: Bool, for time: Duration?) throws(NFCCode) -> Target? {
        try setInfiniteSearch(true)
        // libnfc reads in steps of 200 ms and checks for an abort between them. `cnfc_wait` makes this one read, which
        // ends with the time or `abortEvent`.
        var wait = cnfc_wait(
            milliseconds: time.map { Int32(clamping: Self.milliseconds($0)) } ?? -1,
            descriptor: abortEvent,
            ended: { device in _ = device.map { nfc_abort_command(OpaquePointer($0)) } },
            context: device.map { UnsafeMutableRawPointer($0) }
        )
        var result = Result<Target?, NFCCode>.success(nil)
        withUnsafePointer(to: &wait) { wait in
            cnfc_wait(wait)
            defer { cnfc_wait(nil) }
            do throws(NFCCode) { result = .success(try selectOnce(typeB: typeB)) } catch { result = .failure(error) }
        }
        guard case .failure(let error) = result, error.meaning == .aborted else { return try result.get() }
        // The next search begins anew.
        var count: UInt64 = 0
        if abortEvent >= 0 { _ = read(abortEvent, &count, 8) }
        return nil
    }

    /// Ends `poll` or `wait` on another thread. An abort that comes just before `poll` begins to wait is lost, so the
    /// caller repeats it until `poll` has ended. The C function is nfc_abort_command.
    func abort() {
        if abortEvent >= 0 {
            var one: UInt64 = 1
            _ = write(abortEvent, &one, 8)
        } else if let device {
            nfc_abort_command(device)
        }
    }

    private func setInfiniteSearch(_ isOn: Bool) throws(NFCCode) {
        guard hasInfiniteSearch != isOn else { return }
        try call { nfc_device_set_property_bool($0, NP_INFINITE_SELECT, isOn) }
        hasInfiniteSearch = isOn
    }

    /// Looks once for a card of one type. The C function is nfc_initiator_select_passive_target.
    func select(typeB: Bool) throws(NFCCode) -> Target? {
        try setInfiniteSearch(false)
        return try selectOnce(typeB: typeB)
    }

    private func selectOnce(typeB: Bool) throws(NFCCode) -> Target? {
        var target = nfc_target()
        let modulation = typeB ? Self.typeB : Self.typeA
        do throws(NFCCode) {
            let found = try call { nfc_initiator_select_passive_target($0, modulation, nil, 0, &target) }
            return found > 0 ? Target(target) : nil
        } catch {
            // A chip without type B finds no card of type B. Some chips report "no card" by an error or a timeout.
            guard error.meaning == .radio || error.meaning == .unsupported || error.value == NFC_ETIMEOUT else {
                throw error
            }
            return nil
        }
    }

    private static let typeA = nfc_modulation(nmt: NMT_ISO14443A, nbr: NBR_106)
    private static let typeB = nfc_modulation(nmt: NMT_ISO14443B, nbr: NBR_106)

    /// Switches the field on or off. Cards without a field have no power and lose their state.
    func setField(on isOn: Bool) throws(NFCCode) {
        try call { nfc_device_set_property_bool($0, NP_ACTIVATE_FIELD, isOn) }
    }

    // MARK: Talking to a card

    /// Sends a frame, to which the chip adds the CRC. The C function is nfc_initiator_transceive_bytes.
    /// - Returns: the answer without CRC; nil when the answer was late or damaged, which libnfc does not distinguish.
    func exchange(_ frame: [UInt8], within time: Duration) throws(NFCCode) -> [UInt8]? {
        guard frame.count <= FrameSize.maximum.bytes else { throw .unsupported }
        try setWaitingTime(time)
        return try transceive(frame, within: waitingTime + Self.deviceTimeout)
    }

    /// Sends a whole command, which the chip divides into blocks.
    func exchangeCommand(_ command: [UInt8], within time: Duration) throws(NFCCode) -> [UInt8]? {
        guard command.count <= Self.maximumFramedCommand else { throw .unsupported }
        return try transceive(command, within: time)
    }

    private func transceive(_ bytes: [UInt8], within time: Duration) throws(NFCCode) -> [UInt8]? {
        do throws(NFCCode) {
            let count = try call {
                nfc_initiator_transceive_bytes(
                    $0,
                    bytes,
                    bytes.count,
                    answer.baseAddress,
                    answer.count,
                    Int32(clamping: Self.milliseconds(time))
                )
            }
            return Array(answer.prefix(Int(count)))
        } catch {
            guard error.meaning == .radio else { throw error }
            return nil
        }
    }

    /// Sets how long the chip waits for a card. The chip has steps of 0.1 ms × 2^n up to 3.3 s. libnfc takes
    /// milliseconds and rounds down to a step, so it gets one and a half times the step.
    private func setWaitingTime(_ time: Duration) throws(NFCCode) {
        // A longer time is set at once. A shorter one is set only when the difference matters after the loss of a card.
        guard time > waitingTime || time * 4 < waitingTime else { return }
        var step = Duration.microseconds(1600)
        let maximum = step * 2048
        while step < time, step < maximum { step = step * 2 }
        guard step != waitingTime else { return }
        let value = Int32(clamping: Self.milliseconds(step + step / 2) + 1)
        try call { nfc_device_set_property_int($0, NP_TIMEOUT_COM, value) }
        waitingTime = step
    }

    private static func milliseconds(_ time: Duration) -> Int64 { Int64(time / .milliseconds(1)) }
}

/// An error code of libnfc.
struct NFCCode: Error, Sendable, Equatable {
    let value: Int32

    static let openFailed = NFCCode(value: Int32(NFC_ENOTSUCHDEV))
    static let unsupported = NFCCode(value: Int32(NFC_EDEVNOTSUPP))

    enum Meaning: Sendable, Equatable {
        /// The card did not answer, or the answer was damaged. The device works.
        case radio
        case aborted
        /// The chip or libnfc's driver for it does not have this function.
        case unsupported
        /// The device does not answer or is gone.
        case device
    }

    var meaning: Meaning {
        switch value {
        // libnfc reports NFC_ECHIP for a frame that has the wrong length or form.
        case NFC_ERFTRANS, NFC_ETGRELEASED, NFC_ECHIP, NFC_EOVFLOW, NFC_EMFCAUTHFAIL: .radio
        case NFC_EOPABORTED: .aborted
        case NFC_EDEVNOTSUPP, NFC_ENOTIMPL, NFC_EINVARG: .unsupported
        default: .device
        }
    }
}
