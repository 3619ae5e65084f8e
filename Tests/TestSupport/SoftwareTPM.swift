// SPDX-License-Identifier: GPL-3.0-or-later
import CTestSupport
import Foundation
import Glibc
import Synchronization
import Text

/// A real TPM 2.0 in software: swtpm, with a state of its own, at a private Unix socket.
package final class SoftwareTPM: Sendable {
    package struct Failure: Error { package let text: String }

    private let folder = NSTemporaryDirectory() + "badged-tpm-" + UUID().uuidString
    private let running = Mutex<(program: RunningProgram, id: pid_t)?>(nil)

    /// The socket for commands.
    package var path: String { folder + "/socket" }

    /// Starts a new TPM.
    package init() async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try await start()
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Starts the TPM again, with what it has kept.
    package func start() async throws {
        // swtpm becomes a daemon when its socket is ready. The shell ends it when the test has ended.
        let script = """
            swtpm socket --tpm2 --daemon --server type=unixio,path=\(path) --tpmstate dir=\(folder) \
            --flags not-need-init,startup-clear --pid file=\(folder)/pid && echo "id $(cat \(folder)/pid)." && cat
            kill -9 "$(cat \(folder)/pid)"
            """
        let program = try RunningProgram("/bin/sh", ["-c", script], input: nil)
        guard await program.prints(".\n", on: .output),
            let id = pid_t(program.text(.output).dropFirst("id ".count).dropLast(".\n".count))
        else { throw Failure(text: program.text(.error)) }
        running.withLock { $0 = (program, id) }
    }

    /// Kills the process, as kill -9 does, and waits for its end: it holds a lock on its state.
    package func stop() {
        running.withLock { running in
            if let running {
                kill(running.id, SIGKILL)
                ctestsupport_wait_for_end(running.id)
            }
            running = nil
        }
    }

    /// Sends a signal to the process.
    package func signal(_ number: Int32) {
        running.withLock { if let id = $0?.id { kill(id, number) } }
    }

    // MARK: Commands

    /// Clears the TPM: it forgets the secret from which its keys are derived. TPM2_Clear with the lockout hierarchy.
    package func clear() throws { _ = try send(0x126, handle: 0x4000_000A) }

    /// Locks the TPM, as after wrong passwords: no try is left. TPM2_DictionaryAttackParameters.
    package func lock() throws {
        _ = try send(0x13A, handle: 0x4000_000A, [0, 0, 0, 0, 0, 0, 3, 0xE8, 0, 0, 3, 0xE8])
    }

    /// The handles of objects and sessions that the TPM has loaded, and of objects that it keeps. TPM2_GetCapability.
    package func handles() throws -> [UInt32] {
        var handles: [UInt32] = []
        for first: [UInt8] in [[0x80, 0, 0, 0], [0x02, 0, 0, 0], [0x03, 0, 0, 0], [0x81, 0, 0, 0]] {
            let answer = try send(0x17A, [0, 0, 0, 1] + first + [0, 0, 0, 64])
            // Behind the header: moreData, capability, the number of handles, the handles.
            let words = stride(from: 19, to: answer.count - 3, by: 4).map { start in
                answer[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
            }
            handles += words
        }
        return handles
    }

    /// Removes all loaded objects, as the kernel's resource manager does for a connection that has ended. Commands that
    /// were sent before are carried out first. TPM2_FlushContext.
    package func flush() throws {
        for handle in try handles() where handle >> 24 == 0x80 {
            _ = try send(0x165, withUnsafeBytes(of: handle.bigEndian) { Array($0) })
        }
    }

    /// Sends a command with an empty password for `handle`.
    private func send(_ code: UInt32, handle: UInt32, _ parameters: [UInt8] = []) throws -> [UInt8] {
        func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        let password = word(9) + word(0x4000_0009) + [0, 0, 0, 0, 0]
        return try send(code, tag: [0x80, 0x02], word(handle) + password + parameters)
    }

    private func send(_ code: UInt32, tag: [UInt8] = [0x80, 0x01], _ body: [UInt8]) throws -> [UInt8] {
        func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        let answer = try Self.exchange(tag + word(UInt32(10 + body.count)) + word(code) + body, with: path)
        guard answer.count >= 10, answer[6..<10].allSatisfy({ $0 == 0 }) else {
            throw Failure(text: "command \(code): \(answer)")
        }
        return answer
    }

    /// Sends one command to the socket at `path` and returns the answer.
    static func exchange(_ command: [UInt8], with path: String) throws -> [UInt8] {
        let socket = try UnixSocket.connect(to: path)
        defer { close(socket) }
        guard BlockingSocket.send(command, to: socket) else { throw Failure(text: "not sent") }
        return BlockingSocket.receive(from: socket) ?? []
    }
}
