// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// A card number that waits for its panel.
package struct OSDPCard: Sendable, Equatable {
    package let id: Int
    package let bits: Int
    /// As they go on the line.
    package let bytes: [UInt8]
    /// Whether the panel asks the card instead of getting the number.
    package let isAsked: Bool

    package init(id: Int, bits: Int, bytes: [UInt8], isAsked: Bool = false) {
        self.id = id
        self.bits = bits
        self.bytes = bytes
        self.isAsked = isAsked
    }
}

/// The peripheral that a door panel sees: it answers frames, and has no input or output of its own.
///
/// Times are milliseconds of one clock. A card is told once: after its answer has left, a repeated command gets the
/// same bytes, and a panel that begins anew gets nothing of it.
package final class OSDPPeripheral {
    /// How a card has ended.
    package enum Outcome: Sendable, Equatable {
        /// The panel has gone on after the answer.
        case confirmed
        /// The panel has begun anew after the answer: nobody knows whether it has the number.
        case unconfirmed
        /// The number was not told, for this reason.
        case dropped(String)
    }

    /// The connection to the panel.
    package enum Link: String, Sendable { case silent, clear, installing, secure }

    package enum Effect: Sendable {
        case send([UInt8])
        case ended(card: Int, Outcome)
        case link(Link)
        /// `display` has changed, or has a sound.
        case display
        /// The panel has set this key. Store it, and call `keyStored`: the answer waits for it.
        case storeKey(OSDPKey)
        /// The panel wants this card to sign this transaction. Call `answer` with the result.
        case ask(card: Int, transaction: [UInt8])
        /// After the bytes before have left, the line has this address and baud rate.
        case communication(address: UInt8, baud: Int)
        /// For the log.
        case note(String)
    }

    package static let baudRates = [9600, 19_200, 38_400, 57_600, 115_200, 230_400]
    /// The time without a frame after which the other side counts as off-line. IEC 60839-11-5
    package static let silence: Int64 = 8000
    package static let mostCards = 16

    package private(set) var settings: Settings
    package private(set) var display: OSDPDisplay
    package private(set) var link = Link.silent
    /// Until when SCBK-D is accepted; nil: it is not.
    package private(set) var installsUntil: Int64?
    /// Whether badged reports taps: the state of the reader in RSTATR.
    package private(set) var isReading = false
    private var reader: OSDPFrameReader
    private var session: OSDPSession?
    private var sessionKey: OSDPKey?
    /// The random bytes of a handshake that has begun.
    private var handshake: OSDPSession?
    private var handshakeKey: OSDPKey?
    /// The last command that changed something, and its answer.
    private var last: (sequence: UInt8, command: [UInt8], reply: [UInt8])?
    /// The card in the last answer.
    private var outstanding: (id: Int, until: Int64)?
    private var cards: [(card: OSDPCard, until: Int64)] = []
    private var inquiry: PanelInquiry?
    /// What the next poll of the panel hears about PKOC.
    private var fault: PanelPKOC.Fault?
    /// The longest frame that the panel takes.
    private var receiveSize = PanelPKOC.leastFrame
    private var heard: Int64 = 0
    /// The time of the last frame in the secure channel, or that at which the line was opened.
    private var proven: Int64 = 0
    private var pendingKey: (key: OSDPKey, frame: OSDPFrame, raw: [UInt8])?
    private var effects: [Effect] = []

    /// `gap` is the silence in milliseconds after which an unfinished frame is given up.
    package init(_ settings: Settings, gap: Int64 = 20) {
        self.settings = settings
        display = OSDPDisplay(
            leds: settings.leds,
            rows: settings.rows,
            outputs: settings.outputs,
            silence: settings.silence,
            silenceText: settings.silenceText
        )
        reader = OSDPFrameReader(gap: gap)
    }

    /// Frames with a wrong check, and unfinished ones.
    package var faults: Int { reader.faults }

    // MARK: Inputs

    /// Accepts SCBK-D until then, or until the panel has set a key.
    package func install(until end: Int64) { installsUntil = end }

    package func receive(_ bytes: some Collection<UInt8>, at now: Int64) -> [Effect] {
        // After a standstill of this program or of the machine the time has passed for cards that wait.
        pass(to: now)
        for (frame, raw) in reader.read(bytes, at: now) where !frame.isReply {
            guard frame.address == settings.address || frame.address == OSDPFrame.broadcast else { continue }
            heard = max(heard, now)
            answer(frame, raw, at: now)
            if session != nil { proven = now }
            if link == .silent { becomes(session == nil ? .clear : .secure) }
        }
        return take()
    }

    /// Tells the panel a number at its next poll. `age` is the time since the tap; nil: nobody knows it.
    package func present(_ card: OSDPCard, age: Int64? = 0, at now: Int64) -> [Effect] {
        guard let age else {
            drop(card, "nobody knows how long ago it was", at: now)
            return take()
        }
        if age >= settings.wait {
            drop(card, "it was \(age / 1000) seconds ago", at: now)
        } else if cards.count < Self.mostCards {
            cards.append((card, now + settings.wait - max(0, age)))
        } else {
            drop(card, "too many cards wait for the panel", at: now)
        }
        return take()
    }

    /// What a card has signed for the panel; nil: nothing.
    package func answer(_ card: Int, _ proof: (publicKey: [UInt8], signature: [UInt8])?, at now: Int64) -> [Effect] {
        pass(to: now)
        guard let inquiry, inquiry.card == card, case .asked(let sequence) = inquiry.state else { return take() }
        if let proof {
            let message = PanelPKOC.answer(proof.publicKey, proof.signature, sequence)
            self.inquiry?.state = .answering(message, 0)
        } else {
            endInquiry("the card has not signed for the panel", .timeout, at: now)
        }
        return take()
    }

    /// badged begins or ends to report taps. Its numbers of taps begin anew with it.
    package func setReading(_ isReading: Bool, at now: Int64) -> [Effect] {
        self.isReading = isReading
        if !isReading {
            if case .told? = inquiry?.state { endInquiry("badged is away", .timeout, at: now) }
            for (card, _) in cards where card.isAsked { drop(card, "badged is away", at: now) }
            cards.removeAll { $0.card.isAsked }
        }
        return take()
    }

    /// Shows that a tap is not passed on.
    package func refuse(at now: Int64) -> [Effect] {
        display.refuse(at: now)
        effects.append(.display)
        return take()
    }

    /// When `expire` has something to do; nil: never without an input.
    package var deadline: Int64? {
        [
            cards.map(\.until).min(), inquiry?.until, display.deadline, link == .silent ? nil : heard + Self.silence,
            installsUntil,
        ]
        .lazy.compactMap(\.self).min()
    }

    package func expire(at now: Int64) -> [Effect] {
        pass(to: now)
        return take()
    }

    private func pass(to now: Int64) {
        for late in cards where late.until <= now { drop(late.card, waitReason, at: now) }
        cards.removeAll { $0.until <= now }
        if let inquiry, inquiry.until <= now {
            endInquiry("the panel has not asked the card, or got no answer, in time", .timeout, at: now)
        }
        if link != .silent, heard + Self.silence <= now {
            reset()
            becomes(.silent)
        }
        if let end = installsUntil, end <= now {
            installsUntil = nil
            effects.append(.note("the install mode has ended; no key was set"))
            if sessionKey?.isDefault == true { endSession() }
        }
        if display.expire(at: now) { effects.append(.display) }
    }

    /// The line is open, perhaps again.
    package func lineOpened(at now: Int64) {
        reader.begin(at: now)
        proven = now
    }

    /// Whether another connection may take the place of this one: for so long as a panel needs to count as off-line it has
    /// brought no frame, or none in the secure channel that the panel must open. Who has no key keeps no panel out.
    package func givesWay(at now: Int64) -> Bool {
        settings.security == .required ? now - proven >= Self.silence : reader.isSilent(at: now)
    }

    /// The line was closed: an answer that was sent may not have arrived.
    package func lineLost() -> [Effect] {
        reset()
        // The next connection has not asked for a longer silence.
        heard = 0
        becomes(.silent)
        return take()
    }

    /// This reader ends: no card waits longer, and an answer that was sent may not have arrived.
    package func end(_ reason: String) -> [Effect] {
        reset()
        effects += cards.map { .ended(card: $0.card.id, .dropped(reason)) }
        cards = []
        return take()
    }

    /// The owner has stored the key of `storeKey`, or could not.
    package func keyStored(_ isStored: Bool, at now: Int64) -> [Effect] {
        guard let (key, frame, raw) = pendingKey else { return [] }
        pendingKey = nil
        if isStored {
            reply(OSDPReply.acknowledged, to: frame, raw, isSealed: true)
            settings.key = key
            installsUntil = nil
            effects.append(.note("the panel has set a new key"))
            // Everybody knows the keys of this connection.
            if sessionKey?.isDefault == true { endSession() }
        } else {
            refuse(.cannotBeDone, frame, raw, isSealed: true)
        }
        return take()
    }

    /// Takes the sound that was ordered and is not told yet.
    package func takeBeep() -> OSDPDisplay.Beep? { display.takeBeep() }

    private func take() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    private var waitReason: String {
        switch link {
        case .silent: "the panel was silent"
        case .clear where settings.security == .required: "the panel has opened no secure channel"
        case .installing: "the panel has not set a key yet"
        case .clear, .secure: "the panel has not asked"
        }
    }

    private func becomes(_ new: Link) {
        guard new != link else { return }
        link = new
        display.setSilent(new == .silent)
        effects.append(.link(new))
    }

    private func endSession() {
        endInquiry("the panel has begun anew, or is gone")
        fault = nil
        receiveSize = PanelPKOC.leastFrame
        session = nil
        sessionKey = nil
        handshake = nil
        handshakeKey = nil
        if link != .silent { becomes(.clear) }
    }

    /// The panel begins anew, or is gone.
    private func reset() {
        last = nil
        pendingKey = nil
        endSession()
        lose()
    }

    /// Who waits at the reader sees that the panel does not get the card.
    private func drop(_ card: OSDPCard, _ reason: String, at now: Int64) {
        effects.append(.ended(card: card.id, .dropped(reason)))
        display.refuse(at: now)
        effects.append(.display)
    }

    /// The panel gets no answer about the card.
    private func endInquiry(_ reason: String, _ fault: PanelPKOC.Fault? = nil, at now: Int64? = nil) {
        guard let card = inquiry?.card else { return }
        inquiry = nil
        self.fault = fault
        if let now {
            display.refuse(at: now)
            effects.append(.display)
        }
        // The panel may have parts of the answer.
        if outstanding?.id == card { return lose() }
        effects.append(.ended(card: card, .dropped(reason)))
    }

    private func lose() {
        guard let card = outstanding else { return }
        outstanding = nil
        effects.append(.ended(card: card.id, .unconfirmed))
    }

    // MARK: Frames

    private func answer(_ frame: OSDPFrame, _ raw: [UInt8], at now: Int64) {
        guard pendingKey == nil else { return }
        // libosdp-conformance goes on with 0 after CHLNG.
        if frame.sequence == 0, handshake == nil || frame.blockType != 0x13 {
            reset()
        } else if let last, last.sequence == frame.sequence, last.command == raw {
            // The answer has a card, and the time for it has passed: the panel begins anew.
            if let outstanding, outstanding.until <= now {
                reset()
                return refuse(.wrongSequence, frame)
            }
            return effects.append(.send(last.reply))
        } else if frame.sequence != 0, frame.sequence != (last.map { $0.sequence % 3 + 1 } ?? 0) {
            return refuse(.wrongSequence, frame)
        }
        guard let type = frame.blockType else {
            // Who has no key cannot end the connection of the panel by this.
            guard session == nil else { return refuseUnproven(.needsSecurity, frame, raw) }
            accept(frame.data, of: frame, raw, isSealed: false, at: now)
            return
        }
        guard settings.security != .off else { return refuseUnproven(.unsupportedSecurity, frame, raw) }
        switch (type, frame.code) {
        case (0x11, OSDPCommand.challenge): begin(frame, raw, at: now)
        case (0x13, OSDPCommand.serverCryptogram): finish(frame, raw)
        case (0x15, _), (0x17, _):
            guard let session else { return refuseUnproven(.needsSecurity, frame, raw) }
            guard var data = try? session.open(frame) else {
                effects.append(.note("a frame had a wrong MAC: the secure channel is closed"))
                endSession()
                lose()
                return refuseUnproven(.needsSecurity, frame, raw)
            }
            // KEYSET has the new key.
            defer { data.wipe() }
            accept(data, of: frame, raw, isSealed: true, at: now)
        default: refuseUnproven(.unsupportedSecurity, frame, raw)
        }
    }

    /// CHLNG: CCRYPT with the identifier, random bytes and the client cryptogram.
    private func begin(_ frame: OSDPFrame, _ raw: [UInt8], at now: Int64) {
        guard frame.data.count == 8, frame.securityBlock.count == 2 else {
            return refuseUnproven(.wrongLength, frame, raw)
        }
        let wantsDefault = frame.securityBlock[1] == 0
        let key = wantsDefault ? (installsUntil.map { $0 > now } ?? false ? OSDPKey.installation : nil) : settings.key
        guard let key else {
            let reason = wantsDefault ? "the key of the installation" : "a key, and none is set"
            effects.append(.note("the panel asks for \(reason): refused"))
            return refuseUnproven(.unsupportedSecurity, frame, raw)
        }
        endSession()
        lose()
        do {
            let random = try Random.bytes(8)
            let handshake = try OSDPSession(key, panel: frame.data, peripheral: random)
            self.handshake = handshake
            handshakeKey = key
            let data = settings.identifier + random + handshake.clientCryptogram
            reply(OSDPReply.clientCryptogram, data, to: frame, raw, block: [0x12, wantsDefault ? 0 : 1])
        } catch {
            refuseUnproven(.unsupportedSecurity, frame, raw)
        }
    }

    /// SCRYPT: RMAC_I, if the panel has the key. A handshake has one attempt.
    private func finish(_ frame: OSDPFrame, _ raw: [UInt8]) {
        let (begun, key) = (handshake, handshakeKey)
        handshake = nil
        handshakeKey = nil
        guard session == nil, let begun, let key else {
            return refuseUnproven(.needsSecurity, frame, raw)
        }
        guard ConstantTime.equal(frame.data, begun.serverCryptogram) else {
            effects.append(.note("the panel has another key: no secure channel"))
            return refuseUnproven(.unsupportedSecurity, frame, raw)
        }
        reply(OSDPReply.initialMAC, begun.initialMAC, to: frame, raw, block: [0x14, 1])
        session = begun
        sessionKey = key
        becomes(key.isDefault ? .installing : .secure)
    }

    /// A command whose place and MAC are right.
    private func accept(_ data: [UInt8], of frame: OSDPFrame, _ raw: [UInt8], isSealed: Bool, at now: Int64) {
        if let card = outstanding, inquiry?.card != card.id {
            outstanding = nil
            effects.append(.ended(card: card.id, .confirmed))
        }
        let isOpen =
            switch frame.code {
            case OSDPCommand.identify, OSDPCommand.capabilities: true
            // The poll with which a panel begins tells nothing.
            case OSDPCommand.poll: frame.sequence == 0
            default: false
            }
        guard isSealed || settings.security != .required || isOpen else {
            return refuse(.needsSecurity, frame, raw)
        }
        if frame.code == OSDPCommand.setKey { return setKey(data, frame, raw, isSealed: isSealed) }
        switch result(of: frame.code, data, at: now, isSealed: isSealed) {
        case .success(let answer):
            reply(answer.code, answer.data, to: frame, raw, isSealed: isSealed)
            if frame.code == OSDPCommand.setCommunication { communicate(answer.data) }
        case .failure(let refusal): refuse(refusal.reason, frame, raw, isSealed: isSealed)
        }
    }

    private struct Refused: Error { let reason: OSDPRefusal }

    private typealias Answer = (code: UInt8, data: [UInt8])

    /// Carries out a command.
    private func result(
        of code: UInt8,
        _ data: [UInt8],
        at now: Int64,
        isSealed: Bool
    ) -> Result<Answer, Refused> {
        func refused(_ reason: OSDPRefusal) -> Result<Answer, Refused> { .failure(Refused(reason: reason)) }
        func shown(_ isDone: Bool) -> Result<Answer, Refused> {
            guard isDone else { return refused(.cannotBeDone) }
            effects.append(.display)
            return .success((OSDPReply.acknowledged, []))
        }
        let lengths: (multiple: Int, least: Int)? =
            switch code {
            case OSDPCommand.poll, OSDPCommand.localStatus, OSDPCommand.inputStatus, OSDPCommand.outputStatus,
                OSDPCommand.readerStatus, OSDPCommand.abort:
                (0, 0)
            case OSDPCommand.identify, OSDPCommand.capabilities: (0, 1)
            case OSDPCommand.led: (14, 14)
            case OSDPCommand.buzzer, OSDPCommand.setCommunication: (0, 5)
            case OSDPCommand.text: (1, 6)
            case OSDPCommand.output: (4, 4)
            case OSDPCommand.receiveSize, OSDPCommand.keepActive: (0, 2)
            case OSDPCommand.manufacturer where isQuestion(data, isSealed: isSealed): (1, PanelPKOC.headCount + 1)
            default: nil
            }
        guard let lengths else {
            if code == OSDPCommand.manufacturer, data.starts(with: PanelPKOC.vendor), !settings.asksCards {
                effects.append(.note("the panel wants to check PKOC itself: refused, it gets numbers"))
            }
            return refused(.unknownCommand)
        }
        let isRight =
            lengths.multiple == 0
            ? data.count == lengths.least : data.count >= lengths.least && data.count % lengths.multiple == 0
        guard isRight else { return refused(.wrongLength) }
        switch code {
        case OSDPCommand.poll:
            return .success(mayTell(isSealed: isSealed) ? news() : (OSDPReply.acknowledged, []))
        case OSDPCommand.identify: return .success((OSDPReply.identification, settings.identification))
        case OSDPCommand.capabilities:
            let capabilities = settings.capabilities(isInstalling: installsUntil != nil)
            return .success((OSDPReply.capabilities, capabilities))
        case OSDPCommand.localStatus: return .success((OSDPReply.localStatus, [0, 0]))
        case OSDPCommand.inputStatus: return .success((OSDPReply.inputStatus, []))
        case OSDPCommand.outputStatus:
            return .success((OSDPReply.outputStatus, display.outputs.map { $0 ? 1 : 0 }))
        case OSDPCommand.readerStatus: return .success((OSDPReply.readerStatus, [isReading ? 0 : 1]))
        case OSDPCommand.led: return shown(display.setLights(data, at: now))
        case OSDPCommand.buzzer: return shown(settings.hasBuzzer && display.setBuzzer(data))
        case OSDPCommand.text:
            guard data.count == 6 + Int(data[5]) else { return refused(.wrongLength) }
            return shown(display.setText(data, at: now))
        case OSDPCommand.output: return shown(display.setOutputs(data, at: now))
        case OSDPCommand.setCommunication: return .success((OSDPReply.communication, communication(data)))
        case OSDPCommand.keepActive:
            heard = now + (Int64(data[0]) | Int64(data[1]) << 8)
            return .success((OSDPReply.acknowledged, []))
        case OSDPCommand.receiveSize:
            receiveSize = max(PanelPKOC.leastFrame, min(OSDPFrame.largest, Int(data[0]) | Int(data[1]) << 8))
            return .success((OSDPReply.acknowledged, []))
        case OSDPCommand.manufacturer:
            return ask(data, at: now) ? .success((OSDPReply.acknowledged, [])) : refused(.cannotBeDone)
        default: return .success((OSDPReply.acknowledged, []))
        }
    }

    /// Whether a card may be told on this connection.
    private func mayTell(isSealed: Bool) -> Bool {
        isSealed ? sessionKey?.isDefault == false : settings.security != .required
    }

    /// What a poll is answered. No card is told while the panel may ask about another one.
    private func news() -> Answer {
        if let fault {
            self.fault = nil
            return (OSDPReply.manufacturer, PanelPKOC.readerError(fault))
        }
        if let inquiry {
            guard case .answering(let message, let offset) = inquiry.state else { return (OSDPReply.acknowledged, []) }
            outstanding = (inquiry.card, inquiry.until)
            let (data, next) = PanelPKOC.part(of: message, at: offset, frame: receiveSize)
            self.inquiry?.state = .answering(message, next)
            if next == message.count { self.inquiry = nil }
            return (OSDPReply.manufacturer, data)
        }
        guard !cards.isEmpty else { return (OSDPReply.acknowledged, []) }
        let (card, until) = cards.removeFirst()
        if card.isAsked {
            inquiry = PanelInquiry(card: card.id, until: until)
            return (OSDPReply.manufacturer, PanelPKOC.cardPresent)
        }
        outstanding = (card.id, until)
        let bits = [UInt8(truncatingIfNeeded: card.bits), UInt8(truncatingIfNeeded: card.bits >> 8)]
        return (OSDPReply.raw, [0, 0] + bits + card.bytes)
    }

    // MARK: PKOC over OSDP

    private func isQuestion(_ data: [UInt8], isSealed: Bool) -> Bool {
        settings.asksCards && mayTell(isSealed: isSealed)
            && data.starts(with: PanelPKOC.vendor + [PanelPKOC.authenticate])
    }

    /// AUTH_REQUEST, or a part of it: one question for each card. False: there is no card to ask.
    private func ask(_ data: [UInt8], at now: Int64) -> Bool {
        guard case .told? = inquiry?.state, let card = inquiry?.card else {
            effects.append(.note("the panel asks for a card without a tap, or twice: refused"))
            return false
        }
        do throws(PanelPKOC.Fault) {
            guard let message = try inquiry?.parts.add(data) else { return true }
            let question = try PanelPKOC.Question(message)
            inquiry?.state = .asked(question.sequence)
            effects.append(.ask(card: card, transaction: question.transaction))
        } catch {
            endInquiry("the question of the panel is malformed (\(error))", error, at: now)
        }
        return true
    }

    /// KEYSET: only encrypted, and only SCBK.
    private func setKey(_ data: [UInt8], _ frame: OSDPFrame, _ raw: [UInt8], isSealed: Bool) {
        guard isSealed, frame.blockType == 0x17 else { return refuse(.needsSecurity, frame, raw, isSealed: isSealed) }
        guard data.count == 2 + OSDPKey.count, data[0] == 1, data[1] == OSDPKey.count else {
            return refuse(.wrongLength, frame, raw, isSealed: true)
        }
        var bytes = Array(data[2...])
        defer { bytes.wipe() }
        guard let key = OSDPKey(Secret(bytes)), !key.isDefault, !key.isWeak else {
            effects.append(.note("the panel wants to set SCBK-D, or a key of equal bytes: refused"))
            return refuse(.cannotBeDone, frame, raw, isSealed: true)
        }
        pendingKey = (key, frame, raw)
        effects.append(.storeKey(key))
    }

    /// The address and the rate that hold from now on, for COM: those in force, if the new ones are refused.
    private func communication(_ data: [UInt8]) -> [UInt8] {
        let baud = data[1...].enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
        let isAccepted =
            settings.acceptsCommunication && data[0] < OSDPFrame.broadcast && Self.baudRates.contains(baud)
        let (address, rate) = isAccepted ? (data[0], baud) : (settings.address, settings.baud)
        if !isAccepted { effects.append(.note("the panel wants another address or baud rate: refused")) }
        return [address] + (0..<4).map { UInt8(truncatingIfNeeded: rate >> (8 * $0)) }
    }

    private func communicate(_ data: [UInt8]) {
        let baud = data[1...].enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
        guard data[0] != settings.address || baud != settings.baud else { return }
        settings.address = data[0]
        settings.baud = baud
        effects.append(.communication(address: data[0], baud: baud))
    }

    // MARK: Answers

    private func reply(
        _ code: UInt8,
        _ data: [UInt8] = [],
        to frame: OSDPFrame,
        _ raw: [UInt8]?,
        block: [UInt8] = [],
        isSealed: Bool = false
    ) {
        var reply = OSDPFrame(
            address: frame.address,
            isReply: true,
            sequence: frame.sequence,
            usesCRC: frame.usesCRC,
            securityBlock: block,
            code: code,
            data: data
        )
        if isSealed, let session {
            guard let sealed = try? session.seal(reply) else { return effects.append(.note("libcrypto failed")) }
            reply = sealed
        }
        let bytes = reply.bytes
        if let raw { last = (frame.sequence, raw, bytes) }
        effects.append(.send(bytes))
    }

    /// NAK for a frame that proves nothing: while a secure channel is open, it does not change the place of the panel.
    private func refuseUnproven(_ reason: OSDPRefusal, _ frame: OSDPFrame, _ raw: [UInt8]) {
        refuse(reason, frame, session == nil ? raw : nil)
    }

    /// NAK. Without `raw` the command has changed nothing, also not the place in the sequence.
    private func refuse(
        _ reason: OSDPRefusal,
        _ frame: OSDPFrame,
        _ raw: [UInt8]? = nil,
        isSealed: Bool = false
    ) {
        reply(OSDPReply.refused, [reason.rawValue], to: frame, raw, isSealed: isSealed)
    }
}
