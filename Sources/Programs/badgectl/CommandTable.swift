// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Text

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
            run: WorkflowCommand.changePIN
        ),
        CommandSpec(
            name: "auth",
            summary: "prove with an ID card who you are, to the service at URL",
            operand: ("URL", []),
            options: [
                readerOption,
                OptionSpec(name: "--yes", summary: "let the service have all that it asks for"),
                OptionSpec(name: "--pin-stdin", summary: "read the values from standard input, one per line"),
                OptionSpec(name: "--developer-mode", summary: "go by the rules of test services, and take no other"),
            ],
            details: [
                """
                URL is the address of the service's TcToken: the tcTokenURL of the link that starts an eID client.
                Shows who asks, for what purpose and for which data; those that the service can do without can be
                unticked. Then asks for the PIN, and for what else the card needs. The last line is the address at
                which the browser goes on.
                """,
                """
                Without a terminal --yes agrees and --pin-stdin gives the values. Nothing goes to the card before
                that. A virtual reader with its card on the shelf gets the card put in, as with change-pin.
                """,
            ],
            run: WorkflowCommand.authenticate
        ),
        CommandSpec(
            name: "scan",
            summary: "list the door readers that are near, strongest first",
            options: [
                OptionSpec(name: "--code", value: "NUMBER", summary: "those with this lock service code; 0: any"),
                OptionSpec(name: "--type", value: "TYPE", summary: "those that can be opened in this way"),
                OptionSpec(name: "--watch", summary: "go on with every change, until Ctrl-C"),
                OptionSpec(name: "--replay", value: "FILE", summary: "read a capture instead", isPath: true),
            ],
            details: [
                """
                Listens for five seconds. The bar shows the strength from -100 to -40 dBm; the last column for which
                ways of opening the reader is near enough. Without --code the usual code 2.
                """,
                """
                TYPE is proximity, motion, seamless, applicationSpecific or enhancedTap. With --replay badged is not
                needed: the table shows how it was at the end of the capture.
                """,
            ],
            run: ScanCommand.run
        ),
        CommandSpec(
            name: "closest",
            summary: "show the closest door reader for a way of opening",
            operand: ("TYPE", OpeningType.allCases.map(\.name)),
            options: [OptionSpec(name: "--code", value: "NUMBER", summary: "with this lock service code; 0: any")],
            details: ["Waits up to five seconds for one in range; ends with 1 and the reason when there is none."],
            run: ClosestCommand.run
        ),
        CommandSpec(
            name: "capture",
            summary: "write the advertisements that are heard to a file, until Ctrl-C",
            operand: ("FILE", []),
            options: [OptionSpec(name: "--raw", summary: "with the real addresses")],
            details: [
                """
                FILE is overwritten; its form is btsnoop, which Wireshark and btmon read, too. Without --raw each address
                is replaced by a made-up one of the same kind. Needs the permission admin.
                """
            ],
            run: CaptureCommand.run
        ),
        CommandSpec(
            name: "agent",
            summary: "answer for you when a browser starts an authentication",
            options: [readerOption],
            details: [
                """
                Registers as the user interface for browsers ([activation] in badged.conf(5)) and waits. When a web page
                starts an authentication, it shows who asks for what, asks for your consent and for the PIN, in this
                terminal, as auth does; then the browser goes on. One after the other, until Ctrl-C.
                """,
                "Of several agents the one that was started last is asked.",
            ],
            run: WorkflowCommand.serveBrowsers
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
