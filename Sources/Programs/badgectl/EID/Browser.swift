// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// The browser of the desktop.
enum Browser {
    private static let program = "xdg-open"

    /// Hands the address to the browser. Waits for the end of xdg-open, but not for the browser that it may become.
    static func open(_ url: String) throws {
        guard let path = ChildProcess.installed(program) else {
            throw CommandFailure(
                tr("there is no program xdg-open"),
                hint: tr("install it (Debian: apt install xdg-utils), or open the address yourself")
            )
        }
        // The browser must not inherit the umask and the variables that badgectl has set for itself.
        umask(0o022)
        unsetenv("GNUTLS_NO_IMPLICIT_INIT")
        unsetenv("LIBDISPATCH_LOG")
        guard let child = ChildProcess.start(path, [url], descriptors: []) else {
            throw CommandFailure(tr("xdg-open cannot be started"), hint: tr("open the address yourself"))
        }
        // Without a desktop environment xdg-open ends with the browser only, so the wait is bounded.
        for _ in 0..<50 {
            var status: Int32 = 0
            let ended = waitpid(child, &status, WNOHANG)
            if ended == 0 {
                usleep(100_000)
                continue
            }
            guard ended == child, status != 0 else { return }
            throw CommandFailure(tr("xdg-open could not open the address"), hint: tr("open the address yourself"))
        }
    }
}
