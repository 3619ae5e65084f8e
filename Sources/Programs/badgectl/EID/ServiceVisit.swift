// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// The way back to the service after an authentication: `badgectl auth --follow` and `--open`.
enum ServiceVisit {
    static let options = [
        OptionSpec(.follow, "show what the service answers at the end, as text"),
        OptionSpec(.open, "open the address at the end in the browser of the desktop"),
    ]

    /// The address often works once only.
    static func check(_ invocation: Invocation) throws {
        guard invocation.has(.follow), invocation.has(.open) else { return }
        throw CommandFailure(
            usage: tr("--follow and --open exclude each other"),
            hint: tr("the address at the end often works only once; choose one of them")
        )
    }

    /// Shows the address for the browser. On a terminal a line before it says what it is.
    static func showAddress(_ url: String, _ user: CommandLineUser, isSuccess: Bool) {
        if isatty(STDOUT_FILENO) == 1 {
            user.say(isSuccess ? tr("Continue in the browser at:") : tr("Return to the service at:"))
        }
        user.show(result: url)
    }

    static func run(
        _ url: String,
        _ invocation: Invocation,
        _ user: CommandLineUser,
        isSuccess: Bool,
        shows: Bool
    ) throws {
        let opens = invocation.has(.open)
        guard opens || shows else { return }
        // --open comes after the address. With --follow the page takes its place, but only if there is a page.
        let showAddress: @Sendable () -> Void = { if !opens { Self.showAddress(url, user, isSuccess: isSuccess) } }
        // badged only passes on such addresses; xdg-open would also start other programs.
        guard url.lowercased().hasPrefix("https://") || url.lowercased().hasPrefix("http://") else {
            showAddress()
            throw CommandFailure(
                tr("the address of the service is not a web address"),
                hint: tr("tell the operator of the service")
            )
        }
        // The authentication is over, so a signal ends the program at once.
        EndSignals.handle { number in
            showAddress()
            Output.quit(.interrupted(number))
        }
        // A signal may have come when there was nothing left to cancel.
        if let ending = user.ending {
            showAddress()
            throw ending
        }
        if opens { return try Browser.open(url) }
        let page: ServicePage
        do {
            page = try ServicePage.fetch(url)
        } catch {
            showAddress()
            throw error
        }
        user.say(tr("The service answers:"))
        user.show(result: page.text)
        guard (200...299).contains(page.status) else {
            throw CommandFailure(
                tr("the service answered with HTTP \(page.status)"),
                hint: tr("open the address in a browser: \(url.printable)")
            )
        }
    }
}
