// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin

/// The actions that make, list and delete users of M-Pin.
enum MPinUsers {
    @Sendable static func list(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await MPinDialogue.run(invocation, notDone: "nothing was changed") { dialogue throws(Failure) in
            let users = try await dialogue.users().map(\.user).filter(dialogue.isWanted)
            if users.isEmpty {
                dialogue.workflow.user.say("There are no users. To register: badgectl mpin register USER")
            }
            guard !invocation.wantsJSON else { return }
            for user in users { Output.line(line(user).printable) }
        }
    }

    private static func line(_ user: IUser) -> String {
        var parts = [user.identity, user.backend.url, user.state.rawValue]
        if !user.customerId.isEmpty { parts.append("client \(user.customerId)") }
        if user.canSign { parts.append("signs") }
        if let card = user.keyUID { parts.append("card \(card)") }
        return parts.joined(separator: "  ")
    }

    @Sendable static func delete(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let name = invocation.argument
        return try await MPinDialogue.run(invocation, notDone: "nothing was changed") { dialogue throws(Failure) in
            let (user, service) = try await dialogue.known(name)
            try dialogue.check(
                await dialogue.workflow.ask { () async throws(ClientError) in try await service.sdk.deleteUser(user) }
            )
            dialogue.workflow.user.tell(result: "\(name) is deleted.".printable)
        }
    }

    @Sendable static func register(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let notDone = "the user is not registered"
        return try await MPinDialogue.run(invocation, notDone: notDone) { dialogue throws(Failure) in
            try await Registration(dialogue).run(invocation.argument)
        }
    }
}

/// A registration. One that waits until the identity is confirmed is continued by the next `badgectl mpin register`.
private struct Registration {
    private let dialogue: MPinDialogue
    private let workflow: WorkflowRun
    private let invocation: Invocation

    init(_ dialogue: MPinDialogue) {
        (self.dialogue, workflow, invocation) = (dialogue, dialogue.workflow, dialogue.invocation)
    }

    func run(_ name: String) async throws(Failure) {
        let service = try await dialogue.beginChosen()
        try await dialogue.chooseBackend(service)
        let user = try await user(name, service)
        switch user.state {
        case .invalid:
            try dialogue.check(await workflow.ask { () throws(ClientError) in try await start(user, service) })
        case .startedRegistration, .activated: break
        case .registered:
            throw Failure(.failed, "\(name) is registered already", hint: "to log in: badgectl mpin login \(name)")
        case .blocked:
            throw Failure(.failed, "\(name) is blocked", hint: "badgectl mpin delete \(name), then register again")
        }
        try await confirm(user, service)
        let factors = try await dialogue.askForFactors(service, isNew: true)
        let (card, reader) = (invocation.has("--card"), invocation.value(of: "--reader") ?? "")
        let status = try await dialogue.finish(factors) { pin, second async throws(ClientError) in
            switch service {
            case .mpin(let mpin): try await mpin.finishRegistration(user, pin: pin, card: card, reader: reader)
            case .mfa(let mfa):
                try await mfa.finishRegistration(user, pin0: pin, pin1: second, card: card, reader: reader)
            }
        }
        try dialogue.check(status)
        workflow.user.tell(result: "\(name) is registered.".printable)
    }

    /// The user of this name at the backend, or a new one.
    private func user(_ name: String, _ service: MPinDialogue.Service) async throws(Failure) -> IUser {
        let all = try await workflow.ask { () async throws(ClientError) in try await service.sdk.listUsers() }
        if let user = all.first(where: { $0.identity == name && dialogue.isWanted($0) }) { return user }
        let made = try await workflow.ask { () async throws(ClientError) in try await service.sdk.makeNewUser(name) }
        return try dialogue.checked(made.status, made.user)
    }

    private func start(_ user: IUser, _ service: MPinDialogue.Service) async throws(ClientError) -> MpinStatus {
        let code = invocation.value(of: "--code") ?? ""
        return switch service {
        case .mpin(let mpin): try await mpin.startRegistration(user, activateCode: code)
        case .mfa(let mfa):
            try await mfa.startRegistration(
                user,
                accessCode: invocation.value(of: "--access-code") ?? "",
                regCode: code
            )
        }
    }

    private func restart(_ user: IUser, _ service: MPinDialogue.Service) async throws(ClientError) -> MpinStatus {
        switch service {
        case .mpin(let mpin):
            try await mpin.restartRegistration(user, activateCode: invocation.value(of: "--code") ?? "")
        case .mfa(let mfa): try await mfa.restartRegistration(user)
        }
    }

    /// Confirms a registration. One that was confirmed by an earlier badgectl is begun again.
    private func confirm(_ user: IUser, _ service: MPinDialogue.Service) async throws(Failure) {
        func confirm() async throws(Failure) -> MpinStatus {
            try await workflow.ask { () async throws(ClientError) in
                switch service {
                case .mpin(let mpin): try await mpin.confirmRegistration(user)
                case .mfa(let mfa): try await mfa.confirmRegistration(user)
                }
            }
        }
        var status = try await confirm()
        if status.status == .identityNotVerified, user.state == .activated {
            try dialogue.check(await workflow.ask { () throws(ClientError) in try await restart(user, service) })
            status = try await confirm()
        }
        if status.status == .identityNotVerified {
            throw Failure(
                .failed,
                "the service wants the identity confirmed first",
                hint: "follow the e-mail of the service, then run badgectl mpin register again; "
                    + "to start over: badgectl mpin delete"
            )
        }
        try dialogue.check(status)
    }
}
