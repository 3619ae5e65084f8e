// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CNFC
import Glibc
import ISODEP

/// An open device of libnfc. Used by one thread alone, but for `abort`.
///
/// Frames go to the card raw: libnfc's own way ("easy framing") writes past its buffer with commands of 263 bytes and
/// more, and cannot take longer answers. And the chip must not activate cards of type A by itself: libnfc copies their
/// answer by the length that the card says.
final class NFCDevice: @unchecked Sendable {
    private let library: NFCLibrary
    private var device: OpaquePointer?
    let connection: ConnectionString
    /// As libnfc calls it.
    let name: String
    /// Can send frames as they are. Else the chip makes the blocks, and commands are short.
    private(set) var sendsFrames = true
    /// How long the chip waits for an answer of a card now.
    private var waitingTime = Duration.zero
    /// Does the chip look for a card until there is one?
    private var searchesForEver = false
    /// Does it know cards of type B?
    let hasTypeB: Bool
    /// Readable from the first `abort` on; -1 where libnfc does that alone.
    private let stopper: Int32
    private let answer: UnsafeMutableBufferPointer<UInt8>

    /// No answer of a chip is longer: 262 bytes and a status.
    private static let longestAnswer = 264
    /// Longest command that libnfc's own framing takes.
    private static let longestFramedCommand = 262
    /// What a device may take for itself beside the wait for the card.
    private static let patience = Duration.milliseconds(1500)

    /// Opens the device and turns its field on. Blocks, up to some seconds when nobody answers.
    /// - Throws: `.openFailed`, without a reason: libnfc tells none. What happened while it was prepared.
    init(_ connection: ConnectionString, _ library: NFCLibrary) throws(NFCCode) {
        (self.connection, self.library) = (connection, library)
        let opened = connection.text.withCString { text in
            library.withContext(for: connection) { UInt(bitPattern: nfc_open($0, text)) }
        }
        stopper = connection.search == .inTurns ? clinux_eventfd() : -1
        guard let opened, let device = OpaquePointer(bitPattern: opened) else { throw .openFailed }
        self.device = device
        name = String(cString: nfc_device_get_name(device))
        answer = .allocate(capacity: Self.longestAnswer)
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
        // A zero ends it.
        while next.pointee.rawValue != 0 {
            if next.pointee == NMT_ISO14443B { return true }
            next += 1
        }
        return false
    }

    deinit {
        close()
        answer.deallocate()
        if stopper >= 0 { Glibc.close(stopper) }
    }

    /// Turns the field off and gives the device back.
    func close() {
        guard let device else { return }
        self.device = nil
        _ = library.withContext(for: connection) { _ in nfc_close(device) }
    }

    /// The chip does not take raw frames after all: it shall make the blocks itself from now on.
    func giveUpFrames() throws(NFCCode) {
        sendsFrames = false
        try call { nfc_device_set_property_bool($0, NP_AUTO_ISO14443_4, true) }
        try call { nfc_device_set_property_bool($0, NP_EASY_FRAMING, true) }
    }

    @discardableResult
    private func call(_ body: (OpaquePointer) -> Int32) throws(NFCCode) -> Int32 {
        guard let device else { throw .openFailed }
        let result = body(device)
        guard result >= 0 else { throw NFCCode(value: result) }
        // What a driver of libnfc lacks gives 0 and leaves this.
        guard nfc_device_get_last_error(device) != NFC_EDEVNOTSUPP else { throw .unsupported }
        return result
    }

    // MARK: Looking for cards

    /// Lets the chip look for cards of both types until there is one. Sleeps. The C function is
    /// nfc_initiator_poll_target.
    /// - Returns: nil when it found something that it could not read.
    /// - Throws: `.aborted` after `abort`.
    func poll() throws(NFCCode) -> Target? {
        var target = nfc_target()
        var modulations = [Self.typeA, Self.typeB]
        // Without end; 150 ms for each type.
        let found = try call { nfc_initiator_poll_target($0, &modulations, 2, 0xFF, 1, &target) }
        return found > 0 ? Target(target) : nil
    }

    /// Lets the chip look for cards of one type until there is one, for at most so long (nil: without end). Sleeps.
    /// - Returns: nil when there was none, or `abort` was called.
    func wait(typeB: Bool, for time: Duration?) throws(NFCCode) -> Target? {
        try searchForEver(true)
        // libnfc waits for the answer in pieces of 200 ms, between which it looks whether it shall abort the command.
        var wait = cnfc_wait(
            milliseconds: time.map { Int32(clamping: Self.milliseconds($0)) } ?? -1,
            descriptor: stopper,
            ended: { device in _ = device.map { nfc_abort_command(OpaquePointer($0)) } },
            context: device.map { UnsafeMutableRawPointer($0) }
        )
        var result = Result<Target?, NFCCode>.success(nil)
        withUnsafePointer(to: &wait) { wait in
            cnfc_wait(wait)
            defer { cnfc_wait(nil) }
            do throws(NFCCode) { result = .success(try selectOnce(typeB: typeB)) } catch { result = .failure(error) }
        }
        if case .failure(let error) = result, error.meaning == .aborted { return nil }
        return try result.get()
    }

    /// Ends `poll` or `wait` on another thread. With `poll` it may come too early and be lost: to be repeated until
    /// that has ended. The C function is nfc_abort_command.
    func abort() {
        if stopper >= 0 {
            var one: UInt64 = 1
            _ = write(stopper, &one, 8)
        } else if let device {
            nfc_abort_command(device)
        }
    }

    private func searchForEver(_ isOn: Bool) throws(NFCCode) {
        guard searchesForEver != isOn else { return }
        try call { nfc_device_set_property_bool($0, NP_INFINITE_SELECT, isOn) }
        searchesForEver = isOn
    }

    /// Looks once for a card of one type. The C function is nfc_initiator_select_passive_target.
    func select(typeB: Bool) throws(NFCCode) -> Target? {
        try searchForEver(false)
        return try selectOnce(typeB: typeB)
    }

    private func selectOnce(typeB: Bool) throws(NFCCode) -> Target? {
        var target = nfc_target()
        let modulation = typeB ? Self.typeB : Self.typeA
        do throws(NFCCode) {
            let found = try call { nfc_initiator_select_passive_target($0, modulation, nil, 0, &target) }
            return found > 0 ? Target(target) : nil
        } catch {
            // A chip that does not know type B has found none; some say "nothing" by an error or a host's time-out.
            guard error.meaning == .radio || error.meaning == .unsupported || error.value == NFC_ETIMEOUT else {
                throw error
            }
            return nil
        }
    }

    private static let typeA = nfc_modulation(nmt: NMT_ISO14443A, nbr: NBR_106)
    private static let typeB = nfc_modulation(nmt: NMT_ISO14443B, nbr: NBR_106)

    /// Without field cards forget everything.
    func setField(on isOn: Bool) throws(NFCCode) {
        try call { nfc_device_set_property_bool($0, NP_ACTIVATE_FIELD, isOn) }
    }

    // MARK: Talking to a card

    /// Sends a frame, to which the chip adds the CRC. The C function is nfc_initiator_transceive_bytes.
    /// - Returns: the answer without CRC; nil when none came in time, or a broken one: libnfc does not tell which.
    func exchange(_ frame: [UInt8], within time: Duration) throws(NFCCode) -> [UInt8]? {
        guard frame.count <= FrameSize.largest.bytes else { throw .unsupported }
        try wait(time)
        return try transceive(frame, within: waitingTime + Self.patience)
    }

    /// Sends a whole command, which the chip cuts into blocks.
    func exchangeCommand(_ command: [UInt8], within time: Duration) throws(NFCCode) -> [UInt8]? {
        guard command.count <= Self.longestFramedCommand else { throw .unsupported }
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

    /// Has the chip wait so long for a card, if it does not yet. It knows 0.1 ms × 2^n, up to 3.3 s; libnfc takes
    /// milliseconds and rounds down, so it gets half as much again as the step that is meant.
    private func wait(_ time: Duration) throws(NFCCode) {
        // Growing is needed at once; shrinking only when a lost card would keep us much longer than it must.
        guard time > waitingTime || time * 4 < waitingTime else { return }
        var step = Duration.microseconds(1600)
        let longest = step * 2048
        while step < time, step < longest { step = step * 2 }
        guard step != waitingTime else { return }
        let value = Int32(clamping: Self.milliseconds(step + step / 2) + 1)
        try call { nfc_device_set_property_int($0, NP_TIMEOUT_COM, value) }
        waitingTime = step
    }

    private static func milliseconds(_ time: Duration) -> Int64 {
        time.components.seconds * 1000 + time.components.attoseconds / 1_000_000_000_000_000
    }
}
