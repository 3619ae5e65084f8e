// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Dispatch
import EID
import ISO7816
import ReadersVirtual
import Text

@Sendable func berTLV(_ input: UnsafeRawBufferPointer) {
    guard let object = try? BERTLV(input) else { return }
    // The input may write a length in more bytes than needed, so compare objects and not bytes.
    guard let again = try? BERTLV(object.encoded) else { return require(false, "a written object cannot be read") }
    require(again == object, "an object changes when it is written and read")
    _ = try? object.children.flatMap { try $0.children }
}

@Sendable func securityInfos(_ input: UnsafeRawBufferPointer) {
    _ = try? SecurityInfos(input)
    if let access = try? CardAccess(Array(input)) {
        require((8...18).contains(access.pace.parameterID), "a curve that is not standardized")
    }
}

@Sendable func applicationDirectory(_ input: UnsafeRawBufferPointer) {
    guard let directory = try? ApplicationDirectory(Array(input)) else { return }
    require(directory.applicationIDs.allSatisfy { $0.count <= input.count }, "an identifier longer than its file")
}

/// Both sides of a secure channel get bytes that the other side has not sent. An error ends the channel.
@Sendable func secureMessaging(_ input: UnsafeRawBufferPointer) {
    let key = [UInt8](repeating: 0x5A, count: 16)
    func endpoint() -> SecureMessaging {
        SecureMessaging(SessionKeys(encryption: Secret(key), authentication: Secret(key)))
    }
    if let answer = ResponseAPDU(bytes: input) {
        var terminal = endpoint()
        if (try? terminal.wrap(CommandAPDU(0, 0xB0, 0, 0, le: 256))) != nil {
            let first = try? terminal.unwrap(answer)
            if first == nil { require(terminal.isDead, "the channel is open after a wrong answer") }
        }
    }
    if let command = CommandAPDU(bytes: input) {
        var chip = endpoint()
        if (try? chip.unwrap(command)) == nil { require(chip.isDead, "the channel is open after a wrong command") }
    }
}

/// A whole dialogue with a card. The input is its answers, each after two bytes of length.
@Sendable func cardDialogue(_ input: UnsafeRawBufferPointer) {
    runDialogue(input, dialogue)
}

/// Runs a dialogue with a card to its end. The input is the answers of the card, each after two bytes of length.
func runDialogue(_ input: UnsafeRawBufferPointer, _ dialogue: @escaping @Sendable (InputChannel) async -> Void) {
    let channel = InputChannel(Array(input))
    let done = DispatchSemaphore(value: 0)
    Task {
        await dialogue(channel)
        done.signal()
    }
    done.wait()
}

/// Sends commands to a virtual card after its reset, each after one byte of length. Every answer has a status word.
func runCommands(
    _ input: UnsafeRawBufferPointer,
    _ card: VirtualCard,
    check: @escaping @Sendable () async -> Void = {}
) {
    let bytes = Array(input)
    let done = DispatchSemaphore(value: 0)
    Task {
        await card.reset()
        var rest = bytes[...]
        while let count = rest.popFirst() {
            if case .answer(let answer) = await card.exchange(Array(rest.prefix(Int(count)))) {
                require(answer.count >= 2, "an answer without a status word")
            }
            rest = rest.dropFirst(Int(count))
        }
        await check()
        done.signal()
    }
    done.wait()
}

@Sendable private func dialogue(_ channel: InputChannel) async {
    guard case .eid(let profile)? = try? await EIDCard.identify(on: channel) else { return }
    let card = EIDCard(channel: channel, profile: profile)
    _ = try? await card.select()
    _ = try? await card.readPINStatus()
    _ = try? await card.establishPACE(.can, password: Secret("500540".utf8))
    _ = try? await card.establishPACE(.pin, password: Secret("123456".utf8))
    _ = try? await card.changePIN(to: Secret("654321".utf8))
    _ = try? await card.unblockPIN()
    await card.destroyChannel()
    let sent = await channel.sent
    require(!sent.contains { $0.contains("654321") }, "the new PIN is sent in clear")
    require(sent.count < 3000, "the dialogue does not end")
}

/// A card whose answers are the input of a target.
actor InputChannel: CardChannel {
    private var input: ArraySlice<UInt8>
    private(set) var sent: [String] = []

    init(_ input: [UInt8]) { self.input = input[...] }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        sent.append(String(decoding: command.data, as: UTF8.self))
        guard input.count >= 2 else { throw .removed }
        let count = Int(input[input.startIndex]) << 8 | Int(input[input.startIndex + 1])
        let answer = input.dropFirst(2).prefix(count)
        input = input.dropFirst(2 + count)
        guard let response = ResponseAPDU(bytes: answer) else { throw .mute }
        return response
    }
}
