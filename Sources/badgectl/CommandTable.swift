// SPDX-License-Identifier: GPL-3.0-or-later

/// Everything that badgectl can do. A new command is one entry here.
enum CommandTable {
    static let global = [
        OptionSpec(name: "--socket", value: "PATH", summary: "talk to the badged that listens here", isPath: true),
        OptionSpec(name: "--json", summary: "write the messages of badged as they came, one per line"),
        OptionSpec(name: "--help", summary: "show help, also after a command"),
        OptionSpec(name: "--version", summary: "show the version"),
    ]

    private static let readerOption = OptionSpec(name: "--reader", value: "NAME", summary: "use this reader")

    static let commands = [
        CommandSpec(
            name: "status",
            summary: "show which badged runs, its readers and cards",
            run: StatusCommand.run
        ),
        CommandSpec(
            name: "health",
            summary: "show what badged needs and what to do where it is missing",
            details: ["Ends with 1 when something is missing."],
            run: HealthCommand.run
        ),
        CommandSpec(
            name: "readers",
            summary: "list the card readers and what is in them",
            options: [OptionSpec(name: "--watch", summary: "go on with every change, until Ctrl-C")],
            run: ReadersCommand.run
        ),
        CommandSpec(
            name: "change-pin",
            summary: "change the PIN of an ID card",
            options: [
                readerOption,
                OptionSpec(name: "--pin-stdin", summary: "read the values from standard input, one per line"),
            ],
            details: [
                """
                Asks for the PIN (or the five-digit transport PIN), the new PIN twice, and for the CAN or the PUK when
                the card needs them. What is typed is not shown. On a reader with keypad it is typed there.
                """,
                """
                With --pin-stdin the values are read from standard input in the order in which they are asked for, the
                new PIN once. A value is never used twice. Where a virtual reader has its card on the shelf, the card
                is put in: in the reader that --reader names, else when no other reader has a card.
                """,
            ],
            run: ChangePINCommand.run
        ),
        CommandSpec(
            name: "send",
            summary: "send JSON lines from standard input, write the messages to standard output",
            options: [
                OptionSpec(name: "--wait", value: "MSG", summary: "end when a message MSG has come"),
                OptionSpec(name: "--for", value: "SECONDS", summary: "end so long after the input"),
            ],
            details: [
                """
                Lines go out as they are. When the input has ended, it waits until every line has been answered and no
                workflow of this connection runs, then ends with 0. A workflow that then still asks for something that
                only a command can give (ENTER_PIN, ...) is given up, with 1.
                """,
                """
                With --wait it waits, instead, for the first message of that name since the start; with --for it goes
                on reading for so long. With both, 1 says that the message did not come in time.
                """,
            ],
            run: SendCommand.run
        ),
        CommandSpec(
            name: "completion",
            summary: "write the completions for a shell",
            operand: ("SHELL", Completion.shells),
            details: ["For bash: badgectl completion bash > /etc/bash_completion.d/badgectl"],
            run: Completion.run
        ),
    ]
}
