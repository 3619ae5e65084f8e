// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc

/// What tests start as a process of its own: `badged-test-program issuer|vault-writer|mykey-app ARGUMENTS`.
@main struct Program {
    @MainActor static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch arguments.first {
        case "issuer": try Issuer.run(arguments.dropFirst())
        case "vault-writer": VaultWriter.run(Array(arguments.dropFirst()))
        case "mykey-app": MYKEYApp.run(socket: arguments.last)
        default: exit(2)
        }
    }

    static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }
}
