// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin

/// The actions that log users of M-Pin in.
enum MPinLogins {
    private static let notDone = "the user is not logged in"

    @Sendable static func logIn(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue throws(Failure) in
            let (user, service) = try await dialogue.ready(invocation.argument)
            switch service {
            case .mpin(let mpin): try await logIn(dialogue, user, mpin)
            case .mfa(let mfa): try await logIn(dialogue, user, mfa)
            }
        }
    }

    private static func logIn(_ dialogue: MPinDialogue, _ user: IUser, _ mpin: MPin) async throws(Failure) {
        let workflow = dialogue.workflow
        if dialogue.invocation.has("--access-code") {
            throw Failure(.usage, "only users of MPinMFA have access codes", hint: "leave --access-code out")
        }
        try dialogue.check(
            await workflow.ask { () async throws(ClientError) in try await mpin.startAuthentication(user) }
        )
        guard let number = dialogue.invocation.value(of: "--access-number") else {
            let factors = try await dialogue.askForFactors(.mpin(mpin))
            let result = try await dialogue.finish(factors) { pin, _ async throws(ClientError) in
                try await mpin.finishAuthentication(user, pin: pin)
            }
            try dialogue.check(result.status)
            return workflow.user.tell(result: result.authResultData.printable)
        }
        try dialogue.check(
            await workflow.ask { () async throws(ClientError) in try await mpin.checkAccessNumber(number) }
        )
        let factors = try await dialogue.askForFactors(.mpin(mpin))
        let status = try await dialogue.finish(factors) { pin, _ async throws(ClientError) in
            try await mpin.finishAuthenticationAN(user, pin: pin, accessNumber: number)
        }
        try dialogue.check(status)
        workflow.user.tell(result: "The browser is logged in.")
    }

    private static func logIn(_ dialogue: MPinDialogue, _ user: IUser, _ mfa: MPinMFA) async throws(Failure) {
        if dialogue.invocation.has("--access-number") {
            throw Failure(.usage, "users of MPinMFA have no access numbers", hint: "use --access-code")
        }
        let code = dialogue.invocation.value(of: "--access-code") ?? ""
        try dialogue.check(
            await dialogue.workflow.ask { () async throws(ClientError) in
                try await mfa.startAuthentication(user, accessCode: code)
            }
        )
        let factors = try await dialogue.askForFactors(.mfa(mfa))
        let result = try await dialogue.finish(factors) { pin, second async throws(ClientError) in
            try await mfa.finishAuthentication(user, pin0: pin, pin1: second, accessCode: code)
        }
        try dialogue.check(result.status)
        dialogue.workflow.user.tell(result: result.authzCode.printable)
    }

    @Sendable static func code(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue throws(Failure) in
            let (user, service) = try await dialogue.ready(invocation.argument)
            let started = try await dialogue.workflow.ask { () async throws(ClientError) in
                switch service {
                case .mpin(let mpin): try await mpin.startAuthentication(user)
                case .mfa(let mfa): try await mfa.startAuthenticationOTP(user)
                }
            }
            try dialogue.check(started)
            let factors = try await dialogue.askForFactors(service)
            let otp = try await dialogue.finish(factors) { pin, second async throws(ClientError) in
                switch service {
                case .mpin(let mpin): try await mpin.finishAuthenticationOTP(user, pin: pin)
                case .mfa(let mfa): try await mfa.finishAuthenticationOTP(user, pin0: pin, pin1: second)
                }
            }
            try tell(dialogue, otp.status, otp.otp, otp.ttlSeconds)
        }
    }

    @Sendable static func registrationCode(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue throws(Failure) in
            let (user, mfa) = try await dialogue.readyForMFA(invocation.argument)
            try dialogue.check(
                await dialogue.workflow.ask { () async throws(ClientError) in
                    try await mfa.startAuthenticationRegCode(user)
                }
            )
            let factors = try await dialogue.askForFactors(.mfa(mfa))
            let code = try await dialogue.finish(factors) { pin, second async throws(ClientError) in
                try await mfa.finishAuthenticationRegCode(user, pin0: pin, pin1: second)
            }
            try tell(dialogue, code.status, code.otp, code.ttlSeconds)
        }
    }

    private static func tell(
        _ dialogue: MPinDialogue,
        _ status: MpinStatus,
        _ code: String,
        _ seconds: Int
    ) throws(Failure) {
        try dialogue.check(status)
        dialogue.workflow.user.tell(result: code.printable)
        dialogue.workflow.user.say("It is valid for \(seconds) s.")
    }
}
