// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Host

/// Shows notifications on the desktop, with notify-send of libnotify.
struct Notifier: Sendable {
    private let program: String

    /// nil without a desktop, or where notify-send is not installed.
    init?() {
        let signs = ["DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY", "DISPLAY"]
        guard signs.contains(where: { getenv($0) != nil }), let program = ChildProcess.installed("notify-send") else {
            return nil
        }
        self.program = program
    }

    /// Shows a text. The user may miss it, so it must not be the only message.
    func show(_ title: String, _ text: String) {
        guard
            let process = ChildProcess.start(program, ["--app-name=badged", "--", title.printable, Self.markup(text)])
        else {
            return
        }
        DispatchQueue(label: "notification").async {
            while waitpid(process, nil, 0) < 0, errno == EINTR {}
        }
    }

    /// The text of a notification is markup, and a part of it may come from a service. A sign with a combining mark is
    /// markup, too.
    static func markup(_ text: String) -> String {
        text.printableLines.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
}
