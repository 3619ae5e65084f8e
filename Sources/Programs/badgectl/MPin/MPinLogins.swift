// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Host
import Text

/// The actions that log users of M-Pin in.
enum MPinLogins {
    private static let notDone = tr("the user is not logged in")

    @Sendable static func logIn(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue in
            let (user, service) = try await dialogue.ready(invocation.argument)
            switch service {
            case .mpin(let mpin): try await logIn(dialogue, user, mpin)
            case .mfa(let mfa): try await logIn(dialogue, user, mfa)
            }
        }
    }

    private static func logIn(_ dialogue: MPinDialogue, _ user: IUser, _ mpin: MPin) async throws {
        let workflow = dialogue.workflow
        if dialogue.invocation.has(.accessCode) {
            throw CommandFailure(
                usage: tr("only users of MPinMFA have access codes"),
                hint: tr("leave --access-code out")
            )
        }
        try dialogue.check(await mpin.startAuthentication(user))
        guard let number = dialogue.invocation.value(of: .accessNumber) else {
            let factors = try await dialogue.askForFactors(.mpin(mpin))
            let result = try await dialogue.finish(factors) { pin, _ in
                try await mpin.finishAuthentication(user, pin: pin)
            }
            try await dialogue.check(result.status, of: user, .mpin(mpin))
            return workflow.user.show(result: result.authResultData.printable)
        }
        try dialogue.check(await mpin.checkAccessNumber(number))
        let factors = try await dialogue.askForFactors(.mpin(mpin))
        let status = try await dialogue.finish(factors) { pin, _ in
            try await mpin.finishAuthenticationAN(user, pin: pin, accessNumber: number)
        }
        try await dialogue.check(status, of: user, .mpin(mpin))
        workflow.user.show(result: tr("The browser is logged in."))
        workflow.user.say(tr("To end its session: badgectl mpin logout \(user.identity)"))
    }

    private static func logIn(_ dialogue: MPinDialogue, _ user: IUser, _ mfa: MPinMFA) async throws {
        if dialogue.invocation.has(.accessNumber) {
            throw CommandFailure(usage: tr("users of MPinMFA have no access numbers"), hint: tr("use --access-code"))
        }
        let code = dialogue.invocation.value(of: .accessCode) ?? ""
        try dialogue.check(await mfa.startAuthentication(user, accessCode: code))
        let factors = try await dialogue.askForFactors(.mfa(mfa), hasSecond: user.hasSecondFactor)
        let result = try await dialogue.finish(factors) { pin, second in
            try await mfa.finishAuthentication(user, pin0: pin, pin1: second, accessCode: code)
        }
        try await dialogue.check(result.status, of: user, .mfa(mfa))
        dialogue.workflow.user.show(result: result.authzCode.printable)
    }

    @Sendable static func code(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue in
            let (user, service) = try await dialogue.ready(invocation.argument)
            let started =
                switch service {
                case .mpin(let mpin): try await mpin.startAuthentication(user)
                case .mfa(let mfa): try await mfa.startAuthenticationOTP(user)
                }
            try dialogue.check(started)
            let factors = try await dialogue.askForFactors(service, hasSecond: user.hasSecondFactor)
            let otp = try await dialogue.finish(factors) { pin, second in
                switch service {
                case .mpin(let mpin): try await mpin.finishAuthenticationOTP(user, pin: pin)
                case .mfa(let mfa): try await mfa.finishAuthenticationOTP(user, pin0: pin, pin1: second)
                }
            }
            try await dialogue.check(otp.status, of: user, service)
            show(dialogue, otp.otp, otp.ttlSeconds)
        }
    }

    @Sendable static func registrationCode(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue in
            let (user, mfa) = try await dialogue.readyForMFA(invocation.argument)
            try dialogue.check(await mfa.startAuthenticationRegCode(user))
            let factors = try await dialogue.askForFactors(.mfa(mfa), hasSecond: user.hasSecondFactor)
            let code = try await dialogue.finish(factors) { pin, second in
                try await mfa.finishAuthenticationRegCode(user, pin0: pin, pin1: second)
            }
            try await dialogue.check(code.status, of: user, .mfa(mfa))
            show(dialogue, code.otp, code.ttlSeconds)
        }
    }

    private static func show(_ dialogue: MPinDialogue, _ code: String, _ seconds: Int) {
        dialogue.workflow.user.show(result: code.printable)
        dialogue.workflow.user.say(tr("It is valid for \(seconds) s."))
    }

    @Sendable static func logOut(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: tr("the browser is not logged out")) { dialogue in
            let (user, service) = try await dialogue.ready(invocation.argument)
            guard case .mpin(let mpin) = service else {
                throw CommandFailure(
                    usage: tr("users of MPinMFA have no sessions of browsers"),
                    hint: tr("to end the session of an access code: badgectl mpin abort CODE")
                )
            }
            guard try await mpin.logout(user) else {
                throw CommandFailure(
                    tr("badged knows no browser session of this user"),
                    hint: tr("a login with an access number begins one: badgectl mpin login --access-number")
                )
            }
            dialogue.workflow.user.show(result: tr("The browser is logged out."))
        }
    }
}
