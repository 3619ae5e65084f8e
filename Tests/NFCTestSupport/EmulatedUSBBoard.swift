// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Readers
import Synchronization

/// An emulated USB board with a chip of the PN53x family, plugged into a kernel that has vhci_hcd. It uses the chip and the
/// radio field of `EmulatedPN532`. The kernel, udev, libusb and libnfc above are real.
package final class EmulatedUSBBoard: Sendable {
    package enum Model: String, Sendable, CaseIterable { case pn531, pn533, acr122u }

    package struct SetupError: Error {
        package let text: String
    }

    private struct State {
        var chip: Chip
        /// nil when the board is unplugged.
        var cable: USBCable?
        /// Messages that the host has not read yet.
        var messages: [[UInt8]] = []
        /// Transfers in which the host waits for data.
        var readers: [USBCable.Transfer] = []
        /// The next message to the host is no frame.
        var isDisturbed = false
        /// The board is unplugged after this number of exchanges with the card.
        var lastExchange: Int?
    }

    package let model: Model
    package let field: RadioField
    private let state: Mutex<State>

    package init(_ model: Model, field: RadioField = RadioField()) {
        (self.model, self.field) = (model, field)
        state = Mutex(State(chip: Chip(model.options, field)))
    }

    deinit { unplug() }

    /// Plugs the board into a port of the kernel.
    package func plug(port: Int = 0) throws(SetupError) {
        unplug()
        field.turn(on: false)
        field.onChange { [weak self] in self?.fieldChanged() }
        let cable = try USBCable(port: port, speed: .full)
        state.withLock { state in
            state = State(chip: Chip(model.options, field), cable: cable)
        }
        let isStarted = startThread("usb-board") { [weak self] in
            while let request = cable.next() { self?.serve(request, cable) }
        }
        guard isStarted else { throw SetupError(text: "no thread is left") }
    }

    /// Unplugs the board at once.
    package func unplug() {
        let cable = state.withLock { state in
            state.lastExchange = nil
            return state.cable.take()
        }
        cable?.cut()
    }

    /// Unplugs the board after this number of further frames to the card.
    package func unplug(after frames: Int) {
        let exchanges = field.exchanges
        state.withLock { $0.lastExchange = exchanges + frames }
    }

    /// Sends bytes that are no frame, as a disturbed line does. libnfc takes this for a failed device.
    package func disturbLine() {
        state.withLock { state in
            state.isDisturbed = true
            if state.readers.contains(where: { $0.endpoint == model.endpoint }) {
                Self.disturb(&state)
                Self.deliver(&state, model.endpoint)
            }
        }
    }

    private static func disturb(_ state: inout State) {
        guard state.isDisturbed else { return }
        state.isDisturbed = false
        state.messages.insert([UInt8](repeating: 0x55, count: 16), at: 0)
    }

    /// The number of commands that the chip has executed since it was plugged in.
    package var commands: Int { state.withLock { $0.chip.commands } }

    // MARK: - Transfers

    private func serve(_ request: USBCable.Request, _ cable: USBCable) {
        switch request {
        case .submitted(let transfer) where transfer.endpoint == 0:
            cable.answer(transfer, control(transfer))
        case .submitted(let transfer) where transfer.isToHost:
            // The interrupt endpoint never has data.
            guard transfer.endpoint == model.endpoint else { return state.withLock { $0.readers.append(transfer) } }
            state.withLock { state in
                state.readers.append(transfer)
                Self.deliver(&state, model.endpoint)
            }
        case .submitted(let transfer):
            cable.answer(transfer, [])
            let isLast = state.withLock { state in
                // A new command ends the one before, whose answer may not have been read.
                var messages: [[UInt8]] = []
                if model == .acr122u {
                    messages = Self.ccid(transfer.data, &state.chip)
                } else {
                    state.chip.feed(transfer.data) { messages.append($0) }
                }
                state.messages = messages
                Self.disturb(&state)
                let isLast = state.lastExchange.map { field.exchanges >= $0 } ?? false
                if !isLast { Self.deliver(&state, model.endpoint) }
                return isLast
            }
            if isLast { unplug() }
        case .unlinked(let sequence, let cancelled):
            let wasWaiting = state.withLock { state in
                let index = state.readers.firstIndex { $0.sequence == cancelled }
                if let index { state.readers.remove(at: index) }
                return index != nil
            }
            cable.confirmUnlink(sequence, wasWaiting: wasWaiting)
        }
    }

    private static func deliver(_ state: inout State, _ endpoint: UInt32) {
        while let index = state.readers.firstIndex(where: { $0.endpoint == endpoint }), !state.messages.isEmpty {
            let reader = state.readers.remove(at: index)
            let message = state.messages.removeFirst()
            if message.count > reader.length { state.messages.insert(Array(message[reader.length...]), at: 0) }
            state.cable?.answer(reader, Array(message.prefix(reader.length)))
        }
    }

    private func fieldChanged() {
        state.withLock { state in
            // The controller of an ACR122U does not wait for cards.
            guard model != .acr122u, let response = state.chip.fieldChanged() else { return }
            state.messages.append(Chip.frame(response))
            Self.deliver(&state, model.endpoint)
        }
    }

    /// Answers a control request; nil: endpoint 0 stalls. USB 2.0, 9.4.
    private func control(_ transfer: USBCable.Transfer) -> [UInt8]? {
        let setup = transfer.setup
        let length = Int(setup[6]) | Int(setup[7]) << 8
        switch (setup[0], setup[1]) {
        case (0x80, 6): return model.descriptor(setup[3], index: setup[2]).map { Array($0.prefix(length)) }
        case (0x80, 0): return [0, 0]
        case (0x80, 8): return [1]
        case (0x00...0x02, 1), (0x00...0x02, 3), (0x00...0x02, 9), (0x00...0x02, 11): return []
        default: return nil
        }
    }

    // MARK: - The controller of an ACR122U

    /// Answers a CCID message to the controller of the PN532. Pseudo-APDUs FF 00 00 00 carry the chip's commands.
    /// ACS, ACR122U application programming interface, 6 and 7.
    private static func ccid(_ message: [UInt8], _ chip: inout Chip) -> [[UInt8]] {
        guard message.count >= 10 else { return [] }
        let data = message[10...].prefix(Int(message[1]) | Int(message[2]) << 8)
        func answer(_ type: UInt8, _ data: [UInt8]) -> [[UInt8]] {
            let length = [UInt8(truncatingIfNeeded: data.count), UInt8(truncatingIfNeeded: data.count >> 8), 0, 0]
            return [[type] + length + [message[5], message[6], 0, 0, 0] + data]
        }
        switch message[0] {
        case 0x62: return answer(0x80, [0x3B, 0x00])
        case 0x63, 0x65: return answer(0x81, [])
        case 0x6F: return answer(0x80, pseudoAPDU(Array(data), &chip))
        case 0x6B: return answer(0x83, pseudoAPDU(Array(data), &chip))
        default: return answer(0x81, [])
        }
    }

    private static func pseudoAPDU(_ command: [UInt8], _ chip: inout Chip) -> [UInt8] {
        guard command.count >= 5, command[0] == 0xFF, command[1] == 0x00 else { return [0x6D, 0x00] }
        guard command[2] == 0x00 else { return [0x90, 0x00] }
        let data = Array(command[5...].prefix(Int(command[4])))
        guard data.first == 0xD4, let response = chip.perform(Array(data.dropFirst())) else { return [0x63, 0x00] }
        return [0xD5] + response + [0x90, 0x00]
    }
}

extension EmulatedUSBBoard.Model {
    fileprivate var options: EmulatedPN532.Options {
        var options = EmulatedPN532.Options()
        switch self {
        case .pn531: (options.model, options.hasTypeB) = (.pn531, false)
        case .pn533: options.model = .pn533
        case .acr122u: options.model = .pn532
        }
        return options
    }

    private var identity: (vendor: UInt16, product: UInt16, names: [String]) {
        switch self {
        case .pn531: (0x04CC, 0x0531, ["NXP", "PN531"])
        case .pn533: (0x04E6, 0x5591, ["SCM Micro", "SCL3711-NFC&RW"])
        case .acr122u: (0x072F, 0x2200, ["ACS", "ACR122U PICC Interface"])
        }
    }

    /// The number of the two bulk endpoints.
    fileprivate var endpoint: UInt32 { self == .acr122u ? 2 : 4 }

    /// A descriptor of the device. USB 2.0, 9.6.
    fileprivate func descriptor(_ type: UInt8, index: UInt8) -> [UInt8]? {
        func word(_ value: UInt16) -> [UInt8] { [UInt8(truncatingIfNeeded: value), UInt8(value >> 8)] }
        let (vendor, product, names) = identity
        switch type {
        case 1: return [18, 1, 0x00, 0x02, 0, 0, 0, 64] + word(vendor) + word(product) + [0x00, 0x01, 1, 2, 0, 1]
        case 2:
            let number = UInt8(endpoint)
            var endpoints: [UInt8] = [7, 5, number, 2, 64, 0, 0, 7, 5, 0x80 | number, 2, 64, 0, 0]
            var body: [UInt8] = [9, 4, 0, 0, 2, 0xFF, 0, 0, 0]
            if self == .acr122u {
                // The CCID descriptor: one slot, T=0 and T=1, short APDUs, messages of 271 bytes.
                body = [9, 4, 0, 0, 3, 0x0B, 0, 0, 0, 54, 0x21, 0x10, 0x01, 0, 7, 3, 0, 0, 0]
                body += [0xA0, 0x0F, 0, 0, 0xA0, 0x0F, 0, 0, 0, 0, 0x2A, 0, 0, 0, 0x2A, 0, 0, 0]
                body += [0xFE, 0, 0, 0] + [0, 0, 0, 0] + [0, 0, 0, 0] + [0xBA, 0x04, 0x02, 0] + [0x0F, 0x01, 0, 0]
                body += [0, 0, 0, 0, 0, 1]
                endpoints += [7, 5, 0x81, 3, 8, 0, 10]
            }
            body += endpoints
            return [9, 2] + word(UInt16(9 + body.count)) + [1, 1, 0, 0x80, 50] + body
        case 3:
            guard index > 0 else { return [4, 3, 0x09, 0x04] }
            guard Int(index) <= names.count else { return nil }
            let text = names[Int(index) - 1].utf16.flatMap { word($0) }
            return [UInt8(text.count + 2), 3] + text
        default: return nil
        }
    }
}
