// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Host
import Synchronization

/// Shows notifications on the desktop, with notify-send of libnotify.
final class Notifier: Sendable {
    private let program: String
    private let limit = Mutex(NotificationLimit())

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
        guard limit.withLock({ $0.admits(ContinuousClock.now) }),
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

/// How many notifications are shown: a web page can start one authentication after the other, and each causes some.
struct NotificationLimit {
    private static let count = 10
    private static let time = Duration.seconds(60)

    private var shown: [ContinuousClock.Instant] = []

    /// Whether another one may be shown now.
    mutating func admits(_ now: ContinuousClock.Instant) -> Bool {
        shown.removeAll { now - $0 >= Self.time }
        guard shown.count < Self.count else { return false }
        shown.append(now)
        return true
    }
}
