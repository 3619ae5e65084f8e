// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// The control panel for the readers on one line: it polls them in turn, and has no input or output of its own.
///
/// Times are milliseconds of one clock.
package final class OSDPControlPanel {
    package struct Member: Sendable {
        package var name: String
        package var address: UInt8
        package var security: OSDPPeripheral.Security
        package var key: OSDPKey?

        package init(name: String, address: UInt8, security: OSDPPeripheral.Security = .required, key: OSDPKey? = nil) {
            self.name = name
            self.address = address
            self.security = security
            self.key = key
        }
    }

    package enum Link: String, Sendable { case silent, clear, secure }

    /// Why a reader is silent, in words for the log.
    package enum Fault: String, Sendable {
        case lineGone = "the line is gone"
        case noAnswer = "it does not answer"
        case busy = "it is busy all the time"
        case channelClosed = "it has closed the secure channel"
        case otherChannel = "it answers within another secure channel"
        case wrongMAC = "an answer had a wrong MAC"
        case otherKey = "it has another key"
        case keyRefused = "it refuses the key of the secure channel"
        case commandRefused = "it refuses a command"
        case needsSecurity = "it is not read in clear: it requires the secure channel"
        case malformed = "its answer breaks the protocol"
        case noCrypto = "libcrypto failed"
    }

    package enum Effect: Sendable {
        case send([UInt8])
        /// A reader has read a card, at `since` or later: it had none when it answered before. The bytes are as they
        /// came.
        case read(member: Int, bits: Int, bytes: [UInt8], isWiegand: Bool, since: Int64)
        /// `fault` says why a reader is silent.
        case link(member: Int, Link, fault: Fault?)
        /// An answer of a reader was not passed on, for this reason.
        case ignored(member: Int, String)
    }

    private enum Phase { case away, identifying, capable, challenging, proving, online }

    private struct Peer {
        var settings: Member
        var phase = Phase.away
        var link = Link.silent
        /// The reason of the last failure that was told.
        var fault: Fault?
        var sequence: UInt8 = 0
        var random: [UInt8] = []
        var session: OSDPSession?
        var next: Int64
        var failures = 0
        var activeUntil: Int64 = 0
        /// The time of the last answer to a poll, also in an earlier connection. At first a card may be as old as this
        /// start of the machine.
        var polled: Int64 = 0
        /// The card in the last answer to a poll, also in an earlier connection.
        var lastCard: [UInt8]?
        /// Whether no poll was answered in this connection yet.
        var isFresh = false
    }

    /// The command that waits for its answer. A repeated one has the same bytes.
    private struct Pending {
        let member: Int
        let frame: OSDPFrame
        var attempts = 1
        var busy = 0
        var until: Int64
        /// Sent again at `until`, and not counted as an attempt.
        var waitsForBusy = false
    }

    private static let answerTime: Int64 = 200
    private static let busyPause: Int64 = 100
    private static let idlePause: Int64 = 500
    private static let activePause: Int64 = 50
    private static let activeTime: Int64 = 5000
    private static let mostAttempts = 4
    private static let mostBusy = 20
    /// What people do at a reader, and badged does not pass on.
    private static let unsupported = [
        OSDPReply.formatted: "a card was dropped: characters (FMT) are not supported, set the reader to raw data",
        OSDPReply.keypad: "keys of its keypad are not passed on",
    ]
    package static let mostBits = 1024

    private var peers: [Peer]
    private var reader: OSDPFrameReader
    private var pending: Pending?
    /// Whether the line is open. A closed one is not polled.
    private var isOpen = false
    private var openedAt: Int64 = 0
    private let baud: Int
    private var effects: [Effect] = []
    /// Answers that nobody waits for.
    package private(set) var strangers = 0

    package init(_ members: [Member], baud: Int, gap: Int64 = 20, at now: Int64) {
        peers = members.map { Peer(settings: $0, next: now) }
        self.baud = baud
        reader = OSDPFrameReader(gap: gap)
    }

    package var faults: Int { reader.faults }

    // MARK: Inputs

    /// When `expire` has something to do; nil: not before the line is open.
    package var deadline: Int64? { isOpen ? pending?.until ?? peers.map(\.next).min() : nil }

    package func expire(at now: Int64) -> [Effect] {
        if let waiting = pending, waiting.until <= now {
            let isLast =
                waiting.waitsForBusy ? waiting.busy >= Self.mostBusy : waiting.attempts >= Self.mostAttempts
            if isLast {
                fail(waiting.member, waiting.waitsForBusy ? .busy : .noAnswer, at: now)
            } else {
                var again = waiting
                if !again.waitsForBusy { again.attempts += 1 }
                again.waitsForBusy = false
                again.until = now + timeout(of: again.frame)
                pending = again
                effects.append(.send(again.frame.bytes))
            }
        }
        proceed(at: now)
        return take()
    }

    package func receive(_ bytes: some Collection<UInt8>, at now: Int64) -> [Effect] {
        for (frame, _) in reader.read(bytes, at: now) {
            guard let waiting = pending, frame.isReply, frame.address == peers[waiting.member].settings.address else {
                if frame.isReply { strangers += 1 }
                continue
            }
            handle(frame, of: waiting, at: now)
        }
        proceed(at: now)
        return take()
    }

    /// The line is open, perhaps again.
    package func lineOpened(at now: Int64) -> [Effect] {
        isOpen = true
        openedAt = now
        reader.begin(at: now)
        for index in peers.indices {
            peers[index].next = now
            peers[index].failures = 0
        }
        return expire(at: now)
    }

    /// The line was closed.
    package func lineLost(at now: Int64) -> [Effect] {
        isOpen = false
        pending = nil
        for index in peers.indices { fail(index, .lineGone, at: now) }
        return take()
    }

    /// Whether another connection may take the place of this one: for so long as a reader needs to count as off-line, no
    /// reader has answered a poll with the security that its settings want.
    package func givesWay(at now: Int64) -> Bool {
        now - max(openedAt, peers.map(\.polled).max() ?? 0) >= OSDPPeripheral.silence
    }

    private func take() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    // MARK: Commands

    /// Sends the next command, if the line is open and free.
    private func proceed(at now: Int64) {
        guard isOpen, pending == nil,
            let index = peers.indices.filter({ peers[$0].next <= now }).min(by: { peers[$0].next < peers[$1].next })
        else { return }
        var peer = peers[index]
        var frame = OSDPFrame(
            address: peer.settings.address,
            isReply: false,
            sequence: peer.sequence,
            code: OSDPCommand.poll
        )
        switch peer.phase {
        case .away, .identifying:
            peer.phase = .identifying
            peer.sequence = 0
            frame.sequence = 0
            frame.code = OSDPCommand.identify
            frame.data = [0]
        case .capable:
            frame.code = OSDPCommand.capabilities
            frame.data = [0]
        case .challenging:
            guard let random = try? Random.bytes(8) else { return fail(index, .noCrypto, at: now) }
            peer.random = random
            frame.code = OSDPCommand.challenge
            frame.securityBlock = [0x11, 1]
            frame.data = random
        case .proving:
            frame.code = OSDPCommand.serverCryptogram
            frame.securityBlock = [0x13, 1]
            frame.data = peer.session?.serverCryptogram ?? []
        case .online:
            if let session = peer.session {
                guard let sealed = try? session.seal(frame) else { return fail(index, .noCrypto, at: now) }
                frame = sealed
            }
        }
        peers[index] = peer
        pending = Pending(member: index, frame: frame, until: now + timeout(of: frame))
        effects.append(.send(frame.bytes))
    }

    /// How long an answer may take, with the time of the bytes on the line.
    private func timeout(of frame: OSDPFrame) -> Int64 {
        Self.answerTime + Int64(frame.bytes.count * 10_000 / max(baud, 1))
    }

    // MARK: Answers

    private func handle(_ frame: OSDPFrame, of waiting: Pending, at now: Int64) {
        let index = waiting.member
        // A reader that says BUSY again and again does not put the next attempt off.
        guard !waiting.waitsForBusy else {
            strangers += 1
            return
        }
        if frame.code == OSDPReply.busy, frame.data.isEmpty, frame.securityBlock.isEmpty {
            var again = waiting
            again.busy += 1
            again.waitsForBusy = true
            again.until = now + Self.busyPause
            pending = again
            return
        }
        guard frame.sequence == waiting.frame.sequence else {
            strangers += 1
            return
        }
        let session = peers[index].phase == .online ? peers[index].session : nil
        var data = frame.data
        if let session {
            if frame.securityBlock.isEmpty, frame.code == OSDPReply.refused {
                return fail(index, .channelClosed, at: now)
            }
            guard let clear = try? session.open(frame) else {
                return fail(index, .wrongMAC, at: now)
            }
            data = clear
        } else if frame.blockType.map({ $0 >= 0x15 }) ?? false {
            return fail(index, .otherChannel, at: now)
        }
        if let fault = fault(of: frame, data, peers[index].phase) { return fail(index, fault, at: now) }
        pending = nil
        peers[index].sequence = waiting.frame.sequence % 3 + 1
        peers[index].failures = 0
        advance(index, frame, data, at: now)
    }

    /// Why an answer does not fit to its command; nil: it does.
    private func fault(of frame: OSDPFrame, _ data: [UInt8], _ phase: Phase) -> Fault? {
        let wanted: (code: UInt8, count: Int)
        switch phase {
        case .away: return nil
        case .online:
            // A reader that has begun anew refuses each poll until the connection begins anew as well.
            guard frame.code == OSDPReply.refused else { return nil }
            return data == [OSDPRefusal.needsSecurity.rawValue] ? .needsSecurity : .commandRefused
        case .identifying: wanted = (OSDPReply.identification, 12)
        case .capable: wanted = (OSDPReply.capabilities, data.count / 3 * 3)
        case .challenging: wanted = (OSDPReply.clientCryptogram, 32)
        case .proving: wanted = (OSDPReply.initialMAC, 16)
        }
        if frame.code == wanted.code, data.count == wanted.count { return nil }
        guard frame.code == OSDPReply.refused else { return .malformed }
        return phase == .challenging || phase == .proving ? .keyRefused : .commandRefused
    }

    private func advance(_ index: Int, _ frame: OSDPFrame, _ data: [UInt8], at now: Int64) {
        peers[index].next = now
        switch peers[index].phase {
        case .away: break
        case .identifying: peers[index].phase = .capable
        case .capable:
            let settings = peers[index].settings
            if settings.security == .off || settings.security == .optional && settings.key == nil {
                comesOnline(index)
            } else {
                peers[index].phase = .challenging
            }
        case .challenging:
            let random = Array(data[8..<16])
            guard let key = peers[index].settings.key,
                let session = try? OSDPSession(key, panel: peers[index].random, peripheral: random),
                ConstantTime.equal(session.clientCryptogram, Array(data[16...]))
            else { return fail(index, .otherKey, at: now) }
            peers[index].session = session
            peers[index].phase = .proving
        case .proving:
            guard let session = peers[index].session, ConstantTime.equal(session.initialMAC, data) else {
                return fail(index, .otherKey, at: now)
            }
            comesOnline(index)
            tell(index, .secure)
        case .online: polled(index, frame.code, data, at: now)
        }
    }

    private func comesOnline(_ index: Int) {
        peers[index].phase = .online
        peers[index].isFresh = true
    }

    private func tell(_ index: Int, _ link: Link) {
        peers[index].link = link
        peers[index].fault = nil
        effects.append(.link(member: index, link, fault: nil))
    }

    private func polled(_ index: Int, _ code: UInt8, _ data: [UInt8], at now: Int64) {
        // Only the answer to a poll shows that a reader is read in clear.
        if peers[index].link == .silent { tell(index, .clear) }
        let since = peers[index].polled
        let isRepeated = peers[index].isFresh && code == OSDPReply.raw && data == peers[index].lastCard
        peers[index].polled = now
        peers[index].isFresh = false
        peers[index].lastCard = code == OSDPReply.raw ? data : nil
        if code == OSDPReply.raw {
            peers[index].activeUntil = now + Self.activeTime
            let bits = data.count >= 4 ? Int(data[2]) | Int(data[3]) << 8 : 0
            if isRepeated {
                // A reader may keep a card until the next poll, which has not come.
                let reason = "a card was dropped: the same one was told just before the connection was lost"
                effects.append(.ignored(member: index, reason))
            } else if (1...Self.mostBits).contains(bits), data.count == 4 + (bits + 7) / 8 {
                let bytes = Array(data[4...])
                effects.append(
                    .read(member: index, bits: bits, bytes: bytes, isWiegand: data[1] == 1, since: since)
                )
            } else {
                effects.append(.ignored(member: index, "a card was dropped: its answer breaks the form"))
            }
        }
        if let reason = Self.unsupported[code] { effects.append(.ignored(member: index, reason)) }
        peers[index].next = now + (now < peers[index].activeUntil ? Self.activePause : Self.idlePause)
    }

    /// Begins anew after a pause, which grows up to half a minute.
    private func fail(_ index: Int, _ fault: Fault, at now: Int64) {
        if pending?.member == index { pending = nil }
        peers[index].session = nil
        // A reader that takes no key is read in clear only if the settings say so.
        if fault == .keyRefused, peers[index].settings.security == .optional {
            peers[index].sequence = peers[index].sequence % 3 + 1
            peers[index].next = now
            return comesOnline(index)
        }
        peers[index].phase = .away
        peers[index].next = now + min(30_000, 500 << min(Int64(peers[index].failures), 6))
        peers[index].failures += 1
        guard peers[index].link != .silent || peers[index].fault != fault else { return }
        peers[index].link = .silent
        peers[index].fault = fault
        effects.append(.link(member: index, .silent, fault: fault))
    }
}
