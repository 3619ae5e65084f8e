// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Dispatch
import Glibc
import Text

/// `badgectl send`: sends standard input to badged unchanged, and writes the messages to standard output.
final class SendCommand: Sendable {
    static let spec = ShellCommand(
        name: "send",
        summary: "send JSON lines from standard input, write the messages to standard output",
        options: [
            OptionSpec(.wait, ValueSpec("MSG"), "end when a message MSG has come"),
            OptionSpec(.for, .seconds, "end this long after the input"),
            .pinentry,
        ],
        details: [
            """
            Sends the lines unchanged. After the end of the input, it waits until badged has answered every line and no
            workflow of this connection runs, and ends with 0. A workflow that then waits for a command (after ENTER_PIN
            for example) is given up, with 1.
            """,
            """
            With --wait it waits for the first message of that name instead; messages before the end of the input count,
            too. With --for it reads on for that long. With both, 1 means that the message did not come in time.
            """,
            """
            --pinentry is for a program with a window of its own, which no secret shall reach: the commands ASK_SECRET
            and FIND_SERVICE of badgectl(1) are carried out here, and the end of the input ends everything.
            """,
        ],
        examples: [
            Example("one command", "echo '{\"cmd\":\"GET_INFO\"}' | badgectl send")
        ],
        run: run
    )

    private enum Input: Sendable {
        case event(Event, done: CheckedContinuation<Void, Never>)
        case eventsEnded
        /// All of the input was sent.
        case inputEnded
        case timeOut
        case failed(ClientError)
    }

    private let connection: DaemonConnection
    private let feed: AsyncStream<Input>.Continuation
    /// nil without `--pinentry`.
    private let windows: WindowCommands?

    private init(_ connection: DaemonConnection, _ feed: AsyncStream<Input>.Continuation, _ windows: WindowCommands?) {
        self.connection = connection
        self.feed = feed
        self.windows = windows
    }

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let seconds = invocation.seconds(of: .for)
        let connection = try await invocation.connect(keepsEvents: true)
        let (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        let windows = invocation.has(.pinentry) ? WindowCommands(connection) : nil
        let command = SendCommand(connection, feed, windows)
        Task { await command.pump() }
        Task {
            for await event in connection.events {
                // One at a time, so that unread events wait in the library, which bounds their number.
                await withCheckedContinuation { feed.yield(.event(event, done: $0)) }
            }
            feed.yield(.eventsEnded)
        }
        var progress = SendProgress(wanted: invocation.value(of: .wait), hasTime: seconds != nil)
        for await input in inputs {
            switch input {
            case .event(let event, let done):
                windows?.receive(event)
                if !progress.receive(event) { Output.json(event.text) }
                done.resume()
            case .inputEnded:
                if let windows { return await windows.end() }
                // badged answers in order, so the answer to this command is the last one.
                do throws(ClientError) {
                    progress.inputEnded(try await connection.send("GET_STATUS"))
                } catch {
                    // The events that came before the end are still to be shown.
                    guard error.isEnd else { throw error }
                    continue
                }
                if let seconds {
                    Task {
                        try? await Task.sleep(for: .seconds(seconds))
                        feed.yield(.timeOut)
                    }
                }
            case .timeOut: progress.timeOut()
            case .eventsEnded:
                await windows?.end()
                throw connection.ending ?? ClientError.closed
            case .failed(let error): throw error
            }
            switch progress.ending {
            case nil: continue
            case .done: return
            case .failed(let failure): throw failure
            }
        }
        throw ClientError.closed
    }

    /// Sends standard input, and adds a missing last line end.
    private func pump() async {
        var endsLine = true
        let lines = LineBuffer()
        do throws(ClientError) {
            while let box = await Self.chunk(), let bytes = box.take() {
                endsLine = bytes.withBytes { $0.last } == UInt8(ascii: "\n")
                if let windows {
                    try await send(bytes, lines, windows)
                } else {
                    try await connection.send(raw: bytes)
                }
                // Bounds the answers that are not shown yet.
                await connection.untilEventsAreRead()
            }
            if !endsLine, windows == nil { try await connection.send(raw: Secret("\n".utf8)) }
            feed.yield(.inputEnded)
        } catch {
            // After the end of the connection its last events are still to be shown.
            if !error.isEnd { feed.yield(.failed(error)) }
        }
    }

    /// Sends the complete lines that are not for a window. A line above 1 MiB is left out.
    private func send(
        _ bytes: borrowing Secret,
        _ lines: LineBuffer,
        _ windows: WindowCommands
    ) async throws(ClientError) {
        var taken = 0
        while taken < bytes.count {
            taken += bytes.withBytes { bytes in
                lines.fill { space in
                    let part = bytes[taken...].prefix(space.count)
                    space.copyBytes(from: part)
                    return part.count
                }
            }
            while let line = lines.next() {
                guard case .text(let text) = line, !windows.take(text) else { continue }
                try await connection.send(raw: Secret(text).appending(Secret("\n".utf8)))
            }
        }
    }

    private static let queue = DispatchQueue(label: "input")

    /// Reads what is there now; nil at the end. The bytes may hold a PIN, so the memory is wiped afterwards.
    private static func chunk() async -> SecretBox? {
        await withCheckedContinuation { continuation in
            queue.async {
                var count = 0
                let space = Secret(count: 16_384) { space in
                    repeat {
                        count = read(STDIN_FILENO, space.baseAddress, space.count)
                    } while count < 0 && errno == EINTR
                }
                guard count > 0 else {
                    continuation.resume(returning: nil)
                    return
                }
                let bytes = space.withBytes { Secret(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
                continuation.resume(returning: SecretBox(bytes))
            }
        }
    }
}

/// The commands for scripts and shells.
let scriptingFeature = FeatureCommands(group: .administration, commands: [SendCommand.spec, CompletionCommand.spec])
