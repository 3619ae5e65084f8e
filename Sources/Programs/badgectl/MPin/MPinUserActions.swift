// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Host
import Text

/// The actions that make, list and delete users of M-Pin.
enum MPinUserActions {
    @Sendable static func list(_ invocation: Invocation) async throws {
        try await MPinDialogue.run(invocation, notDone: tr("nothing was changed")) { dialogue in
            let users = try await dialogue.users().map(\.user).filter(dialogue.isWanted)
            if users.isEmpty {
                dialogue.workflow.user.say(tr("There are no users. To register: badgectl mpin register USER"))
            }
            guard !invocation.wantsJSON else { return }
            for user in users { Output.line(line(user).printable) }
        }
    }

    private static func line(_ user: IUser) -> String {
        var parts = [user.identity, user.backend.url, user.state.rawValue]
        if !user.customerId.isEmpty { parts.append(tr("client \(user.customerId)")) }
        if user.hasSecondFactor == true { parts.append(tr("second factor")) }
        if user.canSign { parts.append(tr("signs")) }
        if let card = user.keyUID { parts.append(tr("card \(card)")) }
        return parts.joined(separator: "  ")
    }

    @Sendable static func delete(_ invocation: Invocation) async throws {
        let name = invocation.argument
        try await MPinDialogue.run(invocation, notDone: tr("nothing was changed")) { dialogue in
            let (user, service) = try await dialogue.known(name)
            try await dialogue.workflow.user.confirm(
                tr("This deletes \(name) at \(user.backend.url), with the token. To log in again, register again.")
            )
            try dialogue.check(await service.sdk.deleteUser(user))
            dialogue.workflow.user.show(result: tr("\(name) is deleted.").printable)
        }
    }

    @Sendable static func register(_ invocation: Invocation) async throws {
        let notDone = tr("the user is not registered")
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue in
            try await RegistrationDialogue(dialogue).run(invocation.argument)
        }
    }
}

/// A registration. One that waits until the identity is confirmed is continued by the next `badgectl mpin register`.
private struct RegistrationDialogue {
    private let dialogue: MPinDialogue
    private let workflow: WorkflowRun
    private let invocation: Invocation

    init(_ dialogue: MPinDialogue) {
        self.dialogue = dialogue
        workflow = dialogue.workflow
        invocation = dialogue.invocation
    }

    func run(_ name: String) async throws {
        let service = try await dialogue.beginChosen()
        try await dialogue.chooseBackend(service)
        let user = try await user(name, service)
        switch user.state {
        case .invalid:
            try await start(user, service, again: false)
        case .startedRegistration, .activated:
            // The service gets a code only with a registration that begins.
            guard invocation.has(.code) || invocation.has(.accessCode) else { break }
            try await start(user, service, again: true)
        case .registered:
            throw CommandFailure(
                tr("\(name) is registered already"),
                hint: tr("to log in: badgectl mpin login \(name)")
            )
        case .blocked: throw MPinDialogue.blocked(user)
        }
        try await confirm(user, service)
        let factors = try await dialogue.askForNewFactors(service)
        let (card, reader) = (invocation.has(.card), invocation.value(of: .reader) ?? "")
        let status = try await dialogue.finish(factors) { pin, second in
            switch service {
            case .mpin(let mpin): try await mpin.finishRegistration(user, pin: pin, card: card, reader: reader)
            case .mfa(let mfa):
                try await mfa.finishRegistration(user, pin0: pin, pin1: second, card: card, reader: reader)
            }
        }
        try dialogue.check(status)
        workflow.user.show(result: tr("\(name) is registered.").printable)
    }

    /// The user of this name at the backend, or a new one.
    private func user(_ name: String, _ service: MPinDialogue.Service) async throws -> IUser {
        let all = try await service.sdk.listUsers()
        if let user = all.first(where: { $0.identity == name && dialogue.isWanted($0) }) { return user }
        let made = try await service.sdk.makeNewUser(name)
        return try dialogue.checked(made.status, made.user)
    }

    /// Begins a registration, or begins it again.
    private func start(_ user: IUser, _ service: MPinDialogue.Service, again: Bool) async throws {
        let code = invocation.value(of: .code) ?? ""
        let session = invocation.value(of: .accessCode) ?? ""
        let status =
            switch (service, again) {
            case (.mpin(let mpin), false): try await mpin.startRegistration(user, activateCode: code)
            case (.mpin(let mpin), true): try await mpin.restartRegistration(user, activateCode: code)
            case (.mfa(let mfa), false): try await mfa.startRegistration(user, accessCode: session, regCode: code)
            case (.mfa(let mfa), true): try await mfa.restartRegistration(user, accessCode: session, regCode: code)
            }
        try dialogue.check(status)
    }

    /// Confirms a registration. One that was confirmed by an earlier badgectl is begun again.
    private func confirm(_ user: IUser, _ service: MPinDialogue.Service) async throws {
        func confirm() async throws -> MpinStatus {
            switch service {
            case .mpin(let mpin): try await mpin.confirmRegistration(user)
            case .mfa(let mfa): try await mfa.confirmRegistration(user)
            }
        }
        var status = try await confirm()
        if status.status == .identityNotVerified, user.state == .activated {
            try await start(user, service, again: true)
            status = try await confirm()
        }
        if status.status == .identityNotVerified {
            throw CommandFailure(
                tr("the service wants the identity confirmed first"),
                hint:
                    tr(
                        "follow the e-mail of the service, then run badgectl mpin register again; or give the code of the "
                    )
                    + tr("service with --code CODE; to start over: badgectl mpin delete \(user.identity)")
            )
        }
        try dialogue.check(status)
    }
}
