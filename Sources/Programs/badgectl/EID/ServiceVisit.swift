// SPDX-License-Identifier: GPL-3.0-or-later

/// The way back to the service after an authentication: `badgectl auth --follow` and `--open`.
enum ServiceVisit {
    static let options = [
        OptionSpec("--follow", "show what the service answers at the end, as text"),
        OptionSpec("--open", "open the address at the end in the browser of the desktop"),
    ]

    /// The address often works once only.
    static func check(_ invocation: Invocation) throws(Failure) {
        guard invocation.has("--follow"), invocation.has("--open") else { return }
        throw Failure(
            .usage,
            "--follow and --open exclude each other",
            hint: "the address at the end often works only once; choose one of them"
        )
    }

    static func run(_ url: String, _ invocation: Invocation, _ user: CommandLineUser) throws(Failure) {
        guard invocation.has("--follow") || invocation.has("--open") else { return }
        // badged only passes on such addresses; xdg-open would also start other programs.
        guard url.lowercased().hasPrefix("https://") || url.lowercased().hasPrefix("http://") else {
            throw Failure(.failed, "the address of the service is not a web address", hint: Failure.seeLog)
        }
        // The authentication is over, so a signal ends the program at once.
        Signals.handle { Output.quit(.interrupted($0)) }
        if invocation.has("--open") { return try Browser.open(url) }
        let page = try ServicePage.fetch(url)
        user.say("The service answers:")
        user.tell(result: page.text)
        guard (200...299).contains(page.status) else {
            throw Failure(
                .failed,
                "the service answered with HTTP \(page.status)",
                hint: "open the address in a browser"
            )
        }
    }
}
