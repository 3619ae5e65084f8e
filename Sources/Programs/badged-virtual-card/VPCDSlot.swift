// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host
import ReadersVirtual
import Text

/// Serves one slot of vpcd with a virtual card. The card is inserted while the program is connected.
///
/// This class runs on the main thread, which waits in `poll`. The card runs on threads of the Swift runtime and answers
/// through a `Mailbox`. With an asynchronous `main` the signals would end the process.
final class VPCDSlot {
    private let card: VirtualCard
    private let host: String
    private let port: String
    private let signals: Int32
    private let mailbox: Mailbox

    private var socket: Int32 = -1
    private var stream = VPCDStream()
    /// Whether the card handles a command or a reset. The next message waits for its answer.
    private var isBusy = false
    /// The time at which the card got its last command.
    private var asked = ContinuousClock.now
    /// The total time from the last byte of each command to the last byte of its answer.
    private var busy = Duration.zero
    /// The number of insertions so far.
    private var insertion: UInt64 = 0
    /// Whether the card is to be in the reader. SIGUSR1 and the faults of the card description change this.
    private var isWanted = true
    /// Whether the missing reader has been reported, which happens once for each loss.
    private var isReported = false

    /// Milliseconds between attempts to reach the reader.
    private static let retryInterval: Int32 = 200

    init(card: VirtualCard, host: String, port: String, signals: Int32) throws(StartError) {
        self.card = card
        self.host = host
        self.port = port
        self.signals = signals
        mailbox = try Mailbox()
    }

    /// Serves until SIGTERM or SIGINT; does not return.
    func serve() -> Never {
        while true {
            if isWanted, socket < 0 { insert() }
            var descriptors = [
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
                pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0),
                // poll ignores -1. While the card is busy, nothing is read behind the message that waits for it.
                pollfd(fd: isBusy && stream.hasMessage ? -1 : socket, events: Int16(POLLIN), revents: 0),
            ]
            poll(&descriptors, nfds_t(descriptors.count), isWanted && socket < 0 ? Self.retryInterval : -1)
            switch clinux_signalfd_read(signals) {
            case SIGTERM, SIGINT: report(isLast: true)
            case SIGUSR1: toggle()
            case SIGUSR2: report(isLast: false)
            default: break
            }
            for answer in mailbox.take() { deliver(answer) }
            if descriptors[2].revents != 0 { receive() }
            work()
        }
    }

    private func insert() {
        socket = VPCDSocket.connect(host, port)
        guard socket >= 0 else {
            if !isReported { Output.warn("no reader at \(host):\(port); waiting for one") }
            isReported = true
            return
        }
        isReported = false
        insertion += 1
        stream = VPCDStream()
        Task.detached { [card, insertion] in await card.enterReader(insertion: insertion) }
        Output.line("inserted")
    }

    private func withdraw() {
        guard socket >= 0 else { return }
        close(socket)
        socket = -1
        Task.detached { [card, insertion] in await card.leaveReader(insertion: insertion) }
        Output.line("withdrawn")
    }

    private func toggle() {
        isWanted = socket < 0
        if !isWanted { withdraw() }
    }

    private func lose() {
        Output.warn("the reader has closed the connection; waiting for it")
        isReported = true
        withdraw()
    }

    private func receive() {
        guard socket >= 0 else { return }
        guard let bytes = VPCDSocket.receive(from: socket) else { return lose() }
        stream.append(bytes)
    }

    /// Passes the next messages to the card, unless the card is busy.
    private func work() {
        while !isBusy, socket >= 0, let message = stream.next() {
            switch message {
            case .powerOff, .powerOn, .reset: ask(nil)
            case .answerToReset: send(card.answerToReset)
            case .command(let bytes): ask(bytes)
            case .unknown: break
            }
        }
    }

    /// Sends a command to the card; nil resets the card.
    private func ask(_ command: [UInt8]?) {
        isBusy = true
        asked = .now
        Task.detached { [card, mailbox, insertion] in
            if let command {
                mailbox.put(.init(reply: await card.exchange(command, insertion: insertion), insertion: insertion))
            } else {
                await card.reset()
                mailbox.put(.init(reply: nil, insertion: insertion))
            }
        }
    }

    private func deliver(_ answer: Mailbox.Answer) {
        isBusy = false
        guard socket >= 0, answer.insertion == insertion else { return }  // the answer belongs to an earlier insertion
        switch answer.reply {
        case nil: break
        case .answer(let bytes):
            send(bytes)
            busy += ContinuousClock.now - asked
        case .mute: Output.warn("the card does not answer, as its description says")
        case .removed:
            Output.warn("the card is withdrawn, as its description says; SIGUSR1 inserts it again")
            isWanted = false
            withdraw()
        }
    }

    private func send(_ payload: [UInt8]) {
        guard !VPCDSocket.send(VPCDStream.frame(payload), to: socket) else { return }
        lose()
    }

    /// Prints the counters as JSON.
    private func report(isLast: Bool) {
        Task.detached { [card, busy] in
            let time = JSON.Member("busyMicroseconds", .number(String(Int(busy / .microseconds(1)))))
            let counters = JSON.object(await card.counters + [time])
            Output.line(String(decoding: counters.bytes, as: UTF8.self))
            if isLast { exit(0) }
        }
    }
}
