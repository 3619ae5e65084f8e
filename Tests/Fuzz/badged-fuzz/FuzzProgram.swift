// SPDX-License-Identifier: GPL-3.0-or-later
import CFuzzer
import FuzzTargets
import Glibc

/// Runs one target under libFuzzer: `badged-fuzz TARGET [libFuzzer options] [corpus folders]`.
@main struct Program {
    nonisolated(unsafe) private static var body: (UnsafeRawBufferPointer) -> Void = { _ in }

    static func main() {
        guard CommandLine.argc >= 2, let target = fuzzTargets[CommandLine.arguments[1]] else {
            print(fuzzTargets.keys.sorted().joined(separator: "\n"))
            exit(2)
        }
        body = target
        // libFuzzer gets the other arguments.
        var arguments = CommandLine.unsafeArgv
        var kept: [UnsafeMutablePointer<CChar>?] = []
        for index in 0..<Int(CommandLine.argc) where index != 1 { kept.append(arguments[index]) }
        kept.append(nil)
        var count = Int32(kept.count - 1)
        let code = kept.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return Int32(2) }
            arguments = base
            var pointer: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = arguments
            return LLVMFuzzerRunDriver(&count, &pointer) { data, size in
                Program.body(UnsafeRawBufferPointer(start: data, count: size))
                return 0
            }
        }
        exit(code)
    }
}
