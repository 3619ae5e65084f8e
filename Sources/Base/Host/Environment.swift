// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Looks up an environment variable. Tests pass their own function.
package typealias Environment = @Sendable (String) -> String?

/// The environment of this process. The C function is getenv.
package let systemEnvironment: Environment = { name in
    getenv(name).map { String(cString: $0) }
}

/// Returns the text for errno. The C function is strerror_r.
package func errorText(_ code: Int32 = errno) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
        guard let base = buffer.baseAddress, strerror_r(code, base, buffer.count) == 0 else { return "error \(code)" }
        return String(cString: base)
    }
}

/// A failed system call: its name, or the path of its file, and errno.
package struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    package let call: String
    package let code: Int32

    package init(_ call: String, _ code: Int32 = errno) {
        self.call = call
        self.code = code
    }

    package var description: String { "\(call): \(errorText(code))" }
}
