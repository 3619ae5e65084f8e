// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import ReadersVirtual
import Taps
import VirtualTaps

/// The memory of a tag of NFC Forum type 2, and a message.
@Sendable func ndefMessage(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    if case .message(let message) = Type2Memory.find(in: bytes) {
        require(message.count < bytes.count, "a message longer than its memory")
    }
    guard let message = try? NDEFMessage(bytes) else { return }
    var count = 0
    for record in message.records {
        switch record {
        case .text(let text, let language): count += text.utf8.count + language.utf8.count
        case .uri(let uri): count += uri.utf8.count
        case .other(let name): count += name.utf8.count
        }
    }
    // One byte may be a prefix of 26 bytes, and an invalid byte of a name three.
    require(count <= bytes.count * 27, "records longer than their message")
}

/// A reading. The input is the answers of the reader and the card, each after two bytes of length. Its length chooses
/// the answer to reset.
@Sendable func tagDialogue(_ input: UnsafeRawBufferPointer) {
    let answers: [[UInt8]] = [
        TagType.storageAnswerToReset(selectAnswer: 0x00), [0x3B, 0x81, 0x80, 0x01, 0x80, 0x80],
        TagType.storageAnswerToReset(selectAnswer: 0x08),
    ]
    let answerToReset = answers[input.count % answers.count]
    runDialogue(input) { channel in
        if let reader = try? await TagReader.identify(on: channel, answerToReset: answerToReset) {
            _ = try? await reader.named()
            if let message = try? await reader.message() {
                require(message.records.count <= 64, "too many records")
            }
        }
        require(await channel.sent.count < 5000, "the dialogue does not end")
    }
}

/// Commands to a virtual tag, each after one byte of length. Every answer has a status word.
@Sendable func virtualTag(_ input: UnsafeRawBufferPointer) {
    var description = VirtualTagDescription()
    if let first = input.first {
        description.type = TagType.allCases[Int(first) % TagType.allCases.count]
        description.message = first & 0x80 == 0 ? [0xD0, 0x00, 0x00] : nil
    }
    guard let card = try? description.makeCard() else { return require(false, "no tag") }
    runCommands(UnsafeRawBufferPointer(rebasing: input.dropFirst()), card)
}

/// The list of pcsc-tools. The first byte is the length of the answer to reset, which follows; the rest is the list.
@Sendable func cardList(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    guard let count = bytes.first else { return }
    let atr = Array(bytes.dropFirst().prefix(Int(count)))
    let names = CardList.names(of: atr, in: bytes.dropFirst(1 + Int(count)))
    require(names.count <= CardList.maximumNames, "too many names")
    require(names.reduce(0) { $0 + $1.unicodeScalars.count } <= bytes.count, "names longer than the list")
}
