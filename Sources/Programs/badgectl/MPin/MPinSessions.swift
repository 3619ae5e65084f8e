// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Host
import Text

/// The actions about login services and the sessions of browsers.
enum MPinSessions {
    private static let notDone = tr("nothing was changed")

    @Sendable static func service(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue in
            let mfa = try await dialogue.beginMFA()
            let answer = try await mfa.getServiceDetails(invocation.argument)
            let details = try dialogue.checked(answer.status, answer.details)
            dialogue.show([
                (tr("name"), details.name), (tr("backend"), details.backendUrl), (tr("prefix"), details.rpsPrefix),
                ("logo", details.logoUrl),
            ])
        }
    }

    @Sendable static func accessCode(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: tr("no session was opened")) { dialogue in
            let mfa = try await dialogue.beginMFA()
            let answer = try await mfa.getAccessCode(invocation.argument)
            try dialogue.check(answer.status)
            dialogue.workflow.user.show(result: answer.accessCode.printable)
        }
    }

    @Sendable static func session(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue in
            let mfa = try await dialogue.beginMFA()
            try await dialogue.chooseBackend(.mfa(mfa))
            let answer = try await mfa.getSessionDetails(invocation.argument)
            let details = try dialogue.checked(answer.status, answer.details)
            dialogue.show([
                (tr("user"), details.prerollId), (tr("app"), details.appName), (tr("app icon"), details.appIconUrl),
                (tr("customer"), details.customerName), (tr("customer id"), details.customerId),
                (tr("customer icon"), details.customerIconUrl),
            ])
        }
    }

    @Sendable static func abort(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: tr("the session was not ended")) { dialogue in
            let mfa = try await dialogue.beginMFA()
            try await dialogue.chooseBackend(.mfa(mfa))
            try dialogue.check(await mfa.abortSession(invocation.argument))
            dialogue.workflow.user.show(result: tr("The session is ended."))
        }
    }
}
