// SPDX-License-Identifier: GPL-3.0-or-later
import CNFC
import NFCDevices
import Text

/// Accepted activation answers give valid transmission parameters.
@Sendable func cardActivation(_ input: UnsafeRawBufferPointer) {
    if let ats = try? ATS(input) {
        require((16...256).contains(ats.parameters.frameSize.bytes), "invalid frame size")
        require(ats.parameters.waitingTime <= Duration.seconds(5), "invalid waiting time")
        require(ContactlessATR.typeA(historicalBytes: ats.historicalBytes).count <= 20, "ATR too long")
    }
    if let atqb = try? ATQB(input) {
        require(atqb.attrib().count == 9, "ATTRIB has a wrong length")
        require((16...256).contains(atqb.parameters.frameSize.bytes), "invalid frame size")
    }
    _ = try? ATQB.bufferLength(input)
}

/// Any content of the structure of libnfc can be read.
@Sendable func nfcTarget(_ input: UnsafeRawBufferPointer) {
    var target = nfc_target()
    withUnsafeMutableBytes(of: &target) { $0.copyBytes(from: input.prefix($0.count)) }
    for type in [NMT_ISO14443A, NMT_ISO14443B] {
        target.nm.nmt = type
        switch Target(target) {
        case .a(let identifier, _): require([4, 7, 10].contains(identifier.count), "UID has a wrong length")
        case .b(let answer): require(answer.attrib().count == 9, "ATTRIB has a wrong length")
        case .malformed: break
        }
    }
}

@Sendable func connectionString(_ input: UnsafeRawBufferPointer) {
    guard let connection = ConnectionString(String(decoding: input, as: UTF8.self)) else { return }
    require(connection.text.utf8.count < 1024, "longer than libnfc's buffer")
    require(connection.text.hasPrefix(connection.driver), "wrong driver")
    require(ConnectionString(connection.text) == connection, "the string does not parse to the same value")
}

/// The input is a frame size, the length of a command, and the card's frames, each after its length; 255 means no answer.
/// The exchange ends, and every sent frame fits the card's frame size.
@Sendable func isoDEP(_ input: UnsafeRawBufferPointer) {
    var input = Array(input)[...]
    guard let code = input.popFirst(), let length = input.popFirst() else { return }
    let size = FrameSize(code: code)
    var transmission = BlockTransmission(
        CardParameters(
            frameSize: size,
            waitingTime: FrameWaitingTime.time(code: code >> 4, reserved: 4),
            guardTime: .zero
        )
    )
    var step = transmission.begin([UInt8](repeating: 0xC0, count: Int(length) * 16 + 1))
    // The card repeats its frames without end.
    let frames = Array(input)
    var position = 0
    var received = 0
    for _ in 0..<7_000 {
        switch step {
        case .done(let answer):
            require(answer.count <= received, "the answer is longer than what was received")
            require(answer.count <= BlockTransmission.maximumAnswer, "answer too long")
            return
        case .failed: return
        case .send(let frame, let time):
            require(!frame.isEmpty && frame.count + 2 <= size.bytes, "frame longer than the card's maximum")
            require(time <= Duration.seconds(6), "waiting time too long")
        }
        if position >= frames.count { position = 0 }
        guard position < frames.count else {
            step = transmission.receiveNothing()
            continue
        }
        let count = Int(frames[position])
        position += 1
        if count == 255 {
            step = transmission.receiveNothing()
        } else {
            let frame = Array(frames[position..<min(position + count, frames.count)])
            position += count
            received += frame.count
            step = transmission.receive(frame)
        }
    }
    require(false, "the exchange does not end")
}
