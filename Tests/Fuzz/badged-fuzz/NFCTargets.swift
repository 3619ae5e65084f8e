// SPDX-License-Identifier: GPL-3.0-or-later
import CNFC
import ISODEP
import ReadersNFC

/// Activation answers: what was accepted gives parameters that frames can be made with.
@Sendable func cardActivation(_ input: UnsafeRawBufferPointer) {
    if let ats = try? ATS(input) {
        require((16...256).contains(ats.parameters.frameSize.bytes), "a frame size that does not exist")
        require(ats.parameters.waitingTime <= Duration.seconds(5), "a waiting time that does not exist")
        require(ContactlessATR.typeA(historicalBytes: ats.historicalBytes).count <= 20, "an ATR too long")
    }
    if let atqb = try? ATQB(input) {
        require(atqb.attrib().count == 9, "ATTRIB of a wrong length")
        require((16...256).contains(atqb.parameters.frameSize.bytes), "a frame size that does not exist")
    }
    _ = try? ATQB.bufferLength(input)
}

/// Whatever libnfc has put into its structure.
@Sendable func nfcTarget(_ input: UnsafeRawBufferPointer) {
    var target = nfc_target()
    withUnsafeMutableBytes(of: &target) { $0.copyBytes(from: input.prefix($0.count)) }
    for type in [NMT_ISO14443A, NMT_ISO14443B] {
        target.nm.nmt = type
        switch Target(target) {
        case .a(let identifier, _): require([4, 7, 10].contains(identifier.count), "a UID of a wrong length")
        case .b(let answer): require(answer.attrib().count == 9, "ATTRIB of a wrong length")
        case .malformed: break
        }
    }
}

@Sendable func connectionString(_ input: UnsafeRawBufferPointer) {
    guard let connection = ConnectionString(String(decoding: input, as: UTF8.self)) else { return }
    require(connection.text.utf8.count < 1024, "longer than libnfc's buffer")
    require(connection.text.hasPrefix(connection.driver), "a driver that was not named")
    require(ConnectionString(connection.text) == connection, "a string changes when it is read again")
}

/// A command to a card that answers with whatever comes: frame size, length of the command, then frames, each with its
/// length before it; 255 stands for silence. It ends, what is sent fits the card's frames, nothing grows without bound.
@Sendable func isoDEP(_ input: UnsafeRawBufferPointer) {
    var rest = Array(input)[...]
    guard let code = rest.popFirst(), let length = rest.popFirst() else { return }
    let size = FrameSize(code: code)
    var transmission = BlockTransmission(
        CardParameters(
            frameSize: size,
            waitingTime: FrameWaitingTime.time(code: code >> 4, reserved: 4),
            guardTime: .zero
        )
    )
    var step = transmission.begin([UInt8](repeating: 0xC0, count: Int(length) * 16 + 1))
    // The frames come again and again, as from a card that never ends.
    let frames = Array(rest)
    var position = 0
    var given = 0
    for _ in 0..<7_000 {
        switch step {
        case .done(let answer):
            require(answer.count <= given, "more answered than came")
            require(answer.count <= BlockTransmission.longestAnswer, "an answer too long")
            return
        case .failed: return
        case .send(let frame, let time):
            require(!frame.isEmpty && frame.count + 2 <= size.bytes, "a frame longer than the card takes")
            require(time <= Duration.seconds(6), "a wait without end")
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
            given += frame.count
            step = transmission.receive(frame)
        }
    }
    require(false, "no end")
}
