// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// `badgectl change-pin`: changes the PIN of an eID card.
enum ChangePINCommand {
    static let spec = ShellCommand(
        name: "change-pin",
        summary: "change the PIN of an ID card",
        options: [.reader, .timeout, .pinStdin, .pinentry],
        details: [
            """
            Asks for the PIN (or the five-digit transport PIN), and twice for the new PIN. Asks for the CAN or the PUK
            when the card needs them. The terminal does not show what you type. With a reader that has a keypad, type
            there.
            """,
            """
            With --pin-stdin the values are read from standard input in the order of the questions, the new PIN once.
            A line answers one question: after a wrong value, or when a value is asked for again, the program ends. The
            card of a virtual reader is inserted by itself: in the reader that --reader names, else when no other reader
            has a card.
            """,
        ],
        examples: [
            Example("change the PIN; the questions come on the terminal", "badgectl change-pin"),
            Example(
                "in a script: the PIN and the new PIN, each in a line of a file",
                "badgectl change-pin --pin-stdin < pins.txt"
            ),
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        try await WorkflowRun.run(invocation, notDone: tr("the PIN was not changed")) { workflow in
            let result: ChangePINResult
            do {
                result = try await workflow.connection.changePIN(
                    reader: invocation.value(of: .reader),
                    user: workflow.user
                )
            } catch {
                var failure = workflow.failure(error)
                guard workflow.user.isChangingPIN else {
                    if failure.status == .unreachable {
                        failure.text += ": \(workflow.user.notDone)"
                        if workflow.user.isChecked {
                            failure.text += tr("; a try may be spent if what was typed is wrong")
                        }
                    }
                    throw failure
                }
                let cause = workflow.user.ending == nil ? failure.text : tr("interrupted")
                throw CommandFailure(
                    failure.status,
                    tr("\(cause) during the change; the card may have the old PIN or the new one"),
                    hint: findOut
                )
            }
            try show(result, to: workflow.user)
        }
    }

    /// Says how a PIN change ended, and throws its failure.
    private static func show(_ result: ChangePINResult, to user: CommandLineUser) throws {
        // Other servers of the protocol report success together with a reason.
        if result.success, result.reason == nil { return user.show(result: tr("The PIN has been changed.")) }
        var failure = failure(reason: result.reason)
        if let ending = user.ending {
            // After a signal the user still needs the failure that says that the PIN is uncertain.
            guard failure.hint == findOut else { throw ending }
            failure.status = ending.status
        }
        throw failure
    }

    /// The hint when the card may have the old PIN or the new one.
    private static let findOut = tr("run badgectl change-pin, and try each PIN once as the PIN, the new one first")

    /// Why the PIN was not changed. `reason` is one of the failure reasons of docs/protocol/eid.md.
    static func failure(reason: String?) -> CommandFailure {
        let again = tr("run badgectl change-pin again")
        let (text, hint) =
            switch reason {
            case "User_Cancelled", "Establish_Pace_Channel_User_Cancelled", "Change_Pin_User_Cancelled",
                "Change_Pin_Card_User_Cancelled":
                (tr("cancelled: the PIN was not changed"), again)
            case "Card_Removed":
                (tr("the card was taken away"), tr("leave it on the reader until the end, and try again"))
            case "Connect_Card_Connection_Failed":
                (tr("no connection to the card"), tr("take the card off, put it back, and try again"))
            case "Establish_Pace_Channel_Puk_Inoperative":
                (
                    tr("the PUK of this card is used up, so the PIN stays blocked"),
                    tr("go to the office that issued the card: it can set a new PIN")
                )
            case "Establish_Pace_Channel_Basic_Reader_No_Pin": (tr("the reader got no PIN"), again)
            case "Establish_Pace_Channel_Unknown_Password_Id", "Maintain_Card_Connection_Pace_Unrecoverable":
                (
                    tr("badged could not open a secure channel to the card"),
                    tr("take the card off, put it back, and try again; badgectl health checks the reader")
                )
            case "Access_Denied":
                (
                    tr("badged no longer gives this user the permission: the PIN was not changed"),
                    tr("ask the administrator for the permission cards in [access] of badged.conf")
                )
            case "Prompt_Timeout": (tr("nothing was typed in time: the PIN was not changed"), again)
            case "Change_Pin_Input_Timeout": (tr("nothing was typed on the reader in time"), again)
            case "Change_Pin_New_Pin_Mismatch": (tr("the two new PINs typed on the reader differ"), again)
            case "Change_Pin_New_Pin_Invalid_Length":
                (tr("the new PIN typed on the reader does not have 6 digits"), again)
            case "Change_Pin_No_SetEidPinCommand_Response":
                (tr("the card left during the change; it may have the old PIN or the new one"), findOut)
            case "Change_Pin_Unrecoverable":
                (
                    tr("the card gave no valid answer to the change; it may have the old PIN or the new one"),
                    findOut
                )
            case "Change_Pin_Unexpected_Transmit_Status":
                (
                    tr("the card did not accept the new PIN"),
                    tr("the old PIN is still valid; try again, perhaps with another new PIN")
                )
            case .some(let other): (tr("the PIN was not changed (\(other))"), CommandFailure.seeLog)
            case nil: (tr("the PIN was not changed"), CommandFailure.seeLog)
            }
        return CommandFailure(text, hint: hint)
    }
}
