// SPDX-License-Identifier: GPL-3.0-or-later

/// The arguments of this program, without its name.
package enum ProgramArguments {
    /// The arguments; nil: one is not UTF-8. `CommandLine.arguments` replaces its bytes, so that another file would be
    /// named, or another text signed.
    package static var texts: [String?] {
        (1..<max(1, Int(CommandLine.argc))).map { index in
            CommandLine.unsafeArgv[index].flatMap { String(validatingCString: $0) }
        }
    }

    /// - Throws: `StartError` with exit code 2.
    package static func read() throws(StartError) -> ArraySlice<String> {
        var arguments: ArraySlice<String> = []
        for (index, text) in texts.enumerated() {
            guard let text else {
                throw StartError(
                    "argument \(index + 1) is not UTF-8",
                    hint: "use a UTF-8 locale and encode it again",
                    exitCode: 2
                )
            }
            arguments.append(text)
        }
        return arguments
    }
}
