// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Foundation
import Glibc

/// A fake that stands between a program and a real TPM, or in the place of one. A script decides about each command.
package final class ScriptedTPM: Sendable {
    package enum Answer: Sendable {
        /// The command goes to the TPM. The block runs before its answer is read.
        case pass(@Sendable () -> Void = {})
        case bytes([UInt8])
        case silence
        case close
    }

    /// The code of TPM2_Sign.
    package static let sign: UInt32 = 0x15D

    /// An answer that is only a code.
    package static func code(_ code: UInt32) -> Answer {
        .bytes([0x80, 0x01, 0, 0, 0, 10] + withUnsafeBytes(of: code.bigEndian) { Array($0) })
    }

    /// The socket for commands.
    package let path = NSTemporaryDirectory() + "badged-tpm-\(UUID().uuidString).sock"
    private let listener: SharedDescriptor

    /// - Parameters:
    ///   - tpm: the socket of the real TPM.
    ///   - script: says what happens with a command of this code.
    /// - Throws: `SystemError` when the socket cannot be created.
    package init(before tpm: String = "", _ script: @escaping @Sendable (UInt32) -> Answer) throws {
        listener = SharedDescriptor(try UnixSocket.listen(on: path))
        DispatchQueue(label: "scripted TPM").async { [listener] in
            while true {
                let client = clinux_accept(listener.number)
                guard client >= 0 else { return }
                _ = fcntl(client, F_SETFL, 0)
                Self.serve(client, tpm, script)
                close(client)
            }
        }
    }

    deinit {
        listener.shutDown()
        unlink(path)
    }

    private static func serve(_ client: Int32, _ tpm: String, _ script: @Sendable (UInt32) -> Answer) {
        let behind = (try? UnixSocket.connect(to: tpm)) ?? -1
        defer { if behind >= 0 { close(behind) } }
        while let command = BlockingSocket.receive(from: client) {
            switch script(command.dropFirst(6).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }) {
            case .pass(let meanwhile):
                guard BlockingSocket.send(command, to: behind) else { return }
                meanwhile()
                guard let answer = BlockingSocket.receive(from: behind) else { return }
                BlockingSocket.send(answer, to: client)
            case .bytes(let bytes): BlockingSocket.send(bytes, to: client)
            case .silence: break
            case .close: return
            }
        }
    }
}
