// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Dispatch
import Glibc
import Secrets

/// `badgectl send`: standard input to badged as it is, messages to standard output.
final class SendCommand: Sendable {
    private enum Input: Sendable {
        case event(Event, done: CheckedContinuation<Void, Never>)
        case eventsEnded
        /// All of it was sent.
        case inputEnded
        case timeOut
        case failed(ClientError)
    }

    private let connection: DaemonConnection
    private let feed: AsyncStream<Input>.Continuation

    private init(_ connection: DaemonConnection, _ feed: AsyncStream<Input>.Continuation) {
        (self.connection, self.feed) = (connection, feed)
    }

    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        var seconds: Double?
        if let text = invocation.options["--for"] {
            guard let value = Double(text), (0...86_400).contains(value) else {
                throw Failure(.usage, "--for needs a number of seconds from 0 to 86400", hint: "for example --for 2.5")
            }
            seconds = value
        }
        let connection = try await invocation.connect(keepsEvents: true)
        let (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        let command = SendCommand(connection, feed)
        Task { await command.pump() }
        Task {
            for await event in connection.events {
                // One at a time: those that nobody reads are to wait where their number is bounded.
                await withCheckedContinuation { feed.yield(.event(event, done: $0)) }
            }
            feed.yield(.eventsEnded)
        }
        var progress = SendProgress(wanted: invocation.options["--wait"], hasTime: seconds != nil)
        for await input in inputs {
            switch input {
            case .event(let event, let done):
                if !progress.take(event) { Output.line(event.text) }
                done.resume()
            case .inputEnded:
                // Lines are answered in order, so when this one is, all are.
                do throws(ClientError) {
                    progress.inputEnded(try await connection.send("GET_STATUS"))
                } catch {
                    // The end of the events says it too, after what came before it.
                    guard error.isEnd else { throw Failure(error) }
                    continue
                }
                if let seconds {
                    Task {
                        try? await Task.sleep(for: .seconds(seconds))
                        feed.yield(.timeOut)
                    }
                }
            case .timeOut: progress.timeOut()
            case .eventsEnded: throw Failure(connection.ending ?? .closed)
            case .failed(let error): throw Failure(error)
            }
            switch progress.ending {
            case nil: continue
            case .done: return .done
            case .failed(let failure): throw failure
            }
        }
        throw Failure(.closed)
    }

    /// Sends standard input; a missing last line end is added.
    private func pump() async {
        var endsLine = true
        do throws(ClientError) {
            while let box = await Self.chunk(), let bytes = box.take() {
                endsLine = bytes.withBytes { $0.last } == UInt8(ascii: "\n")
                try await connection.send(raw: bytes)
                // Answers that are not shown yet pile up here and at badged's end: not too many.
                await connection.untilEventsAreRead()
            }
            if !endsLine { try await connection.send(raw: Secret("\n".utf8)) }
            feed.yield(.inputEnded)
        } catch {
            // What was answered before is still to be shown; the end of the events tells the rest.
            if !error.isEnd { feed.yield(.failed(error)) }
        }
    }

    private static let queue = DispatchQueue(label: "input")

    /// What can be read now, in wiped memory, for it may hold a PIN; nil at the end.
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
