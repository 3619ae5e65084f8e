// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Secrets

/// The command for M-Pin.
let mpinFeature = Feature(commands: [MPinCommand.spec])

/// `badgectl mpin`: registers users of M-Pin and logs them in.
enum MPinCommand {
    static let spec = CommandSpec(
        name: "mpin",
        summary: "register with M-Pin, log in, get a one-time code, or list users",
        operand: ValueSpec("ACTION", .words(["register", "login", "otp", "users", "delete"])),
        others: ValueSpec("USER"),
        options: [
            OptionSpec("--backend", ValueSpec("URL"), "the address of the service; needed if it is not clear"),
            OptionSpec("--access-number", ValueSpec("NUMBER"), "login: log in the browser that shows this number"),
            OptionSpec("--code", ValueSpec("CODE"), "register: the activation code of the service"),
            .pinStdin, .pinentry,
        ],
        details: [
            """
            The actions are register, login, otp, users and delete. All but users need a USER, such as an address of
            mail. register asks for a new PIN of four digits; login and otp ask for this PIN. Only the service knows
            whether a PIN is right.
            """,
            """
            If a service wants the identity confirmed, for example by a mail, register says so. Run it again after that.
            login writes what the service says, otp writes the code.
            """,
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let action = invocation.operand
        let name = action == "users" ? nil : try user(invocation)
        let workflow = try await WorkflowRun(invocation, notDone: notDone(action))
        return try await workflow.run { () throws(Failure) in
            let dialogue = Dialogue(workflow, invocation)
            try await dialogue.begin()
            guard let name else { return try await dialogue.list() }
            switch action {
            case "register": try await dialogue.register(name)
            case "login": try await dialogue.logIn(name)
            case "otp": try await dialogue.code(name)
            default: try await dialogue.delete(name)
            }
        }
    }

    private static func user(_ invocation: Invocation) throws(Failure) -> String {
        guard let name = invocation.others.first, invocation.others.count == 1 else {
            let text = "mpin \(invocation.operand) needs one USER"
            throw Failure(.usage, text, hint: "for example: badgectl mpin \(invocation.operand) alice@example.org")
        }
        return name
    }

    private static func notDone(_ action: String) -> String {
        switch action {
        case "register": "the user is not registered"
        case "login", "otp": "the user is not logged in"
        default: "nothing was changed"
        }
    }
}

/// One call of `badgectl mpin`.
private struct Dialogue {
    private let workflow: WorkflowRun
    private let invocation: Invocation
    private let mpin: MPin

    init(_ workflow: WorkflowRun, _ invocation: Invocation) {
        (self.workflow, self.invocation) = (workflow, invocation)
        mpin = MPin(workflow.connection)
    }

    func begin() async throws(Failure) {
        try check(await ask { mpin async throws(ClientError) in try await mpin.initSDK() })
    }

    func list() async throws(Failure) {
        let users = try await ask { mpin async throws(ClientError) in try await mpin.listUsers() }
        if users.isEmpty { workflow.user.say("There are no users. To register: badgectl mpin register USER") }
        guard !invocation.wantsJSON else { return }
        for user in users { Output.line("\(user.identity)  \(user.backend.url)  \(user.state.rawValue)".printable) }
    }

    func register(_ name: String) async throws(Failure) {
        guard let url = invocation.value(of: "--backend") else {
            throw Failure(
                .usage,
                "mpin register needs --backend",
                hint: "give the address of the service: --backend URL"
            )
        }
        try await choose(Backend(url: url))
        var user = try await users(name).first { $0.backend.url == Self.trimmed(url) }
        if user == nil {
            let made = try await ask { mpin async throws(ClientError) in try await mpin.makeNewUser(name) }
            try check(made.status)
            user = made.user
        }
        guard let user else { throw Failure(.failed, "badged has not made the user", hint: Failure.seeLog) }
        let code = invocation.value(of: "--code") ?? ""
        switch user.state {
        case .invalid:
            try check(
                await ask { mpin async throws(ClientError) in try await mpin.startRegistration(user, activateCode: code)
                }
            )
        case .startedRegistration, .activated: break
        case .registered:
            throw Failure(.failed, "\(name) is registered already", hint: "to log in: badgectl mpin login \(name)")
        case .blocked:
            throw Failure(.failed, "\(name) is blocked", hint: "badgectl mpin delete \(name), then register again")
        }
        try await confirm(user, code)
        let pin = try await secret(SecretForm(name: "new PIN", digits: 4...4, isTypedTwice: true))
        guard let digits = pin.take() else { return }
        let result = try await finish(digits) { mpin, digits async throws(ClientError) in
            try await mpin.finishRegistration(user, pin: digits)
        }
        try check(result)
        workflow.user.tell(result: "\(name) is registered.".printable)
    }

    /// Confirms a registration. One that was confirmed by an earlier badgectl is begun again.
    private func confirm(_ user: IUser, _ code: String) async throws(Failure) {
        var status = try await ask { mpin async throws(ClientError) in try await mpin.confirmRegistration(user) }
        if status.status == .identityNotVerified, user.state == .activated {
            try check(
                await ask { mpin async throws(ClientError) in
                    try await mpin.restartRegistration(user, activateCode: code)
                }
            )
            status = try await ask { mpin async throws(ClientError) in try await mpin.confirmRegistration(user) }
        }
        if status.status == .identityNotVerified {
            throw Failure(
                .failed,
                "the service wants the identity confirmed first",
                hint: "follow its mail, then run badgectl mpin register again; badgectl mpin delete begins anew"
            )
        }
        try check(status)
    }

    func logIn(_ name: String) async throws(Failure) {
        let user = try await ready(name)
        let number = invocation.value(of: "--access-number")
        if let number {
            try check(await ask { mpin async throws(ClientError) in try await mpin.checkAccessNumber(number) })
        }
        let pin = try await pin()
        guard let number else {
            let result = try await finish(pin) { mpin, digits async throws(ClientError) in
                try await mpin.finishAuthentication(user, pin: digits)
            }
            try check(result.status)
            return workflow.user.tell(result: result.authResultData.printable)
        }
        let result = try await finish(pin) { mpin, digits async throws(ClientError) in
            try await mpin.finishAuthenticationAN(user, pin: digits, accessNumber: number)
        }
        try check(result)
        workflow.user.tell(result: "The browser is logged in.")
    }

    func code(_ name: String) async throws(Failure) {
        let user = try await ready(name)
        let pin = try await pin()
        let otp = try await finish(pin) { mpin, digits async throws(ClientError) in
            try await mpin.finishAuthenticationOTP(user, pin: digits)
        }
        try check(otp.status)
        workflow.user.tell(result: otp.otp.printable)
        workflow.user.say("It is valid for \(otp.ttlSeconds) s.")
    }

    func delete(_ name: String) async throws(Failure) {
        let user = try await known(name)
        try check(await ask { mpin async throws(ClientError) in try await mpin.deleteUser(user) })
        workflow.user.tell(result: "\(name) is deleted.".printable)
    }

    // MARK: Steps

    private func users(_ name: String) async throws(Failure) -> [IUser] {
        try await ask { mpin async throws(ClientError) in try await mpin.listUsers() }.filter { $0.identity == name }
    }

    private static func trimmed(_ url: String) -> String {
        String(url.reversed().drop { $0 == "/" }.reversed())
    }

    /// The user of this name at `--backend`, or the only one of this name.
    private func known(_ name: String) async throws(Failure) -> IUser {
        var found = try await users(name)
        if let url = invocation.value(of: "--backend") { found = found.filter { $0.backend.url == Self.trimmed(url) } }
        guard let user = found.first else {
            throw Failure(.failed, "there is no user \(name)", hint: "badgectl mpin users lists them")
        }
        guard found.count == 1 else {
            let list = found.map(\.backend.url).joined(separator: ", ")
            throw Failure(.usage, "\(name) is registered at several services", hint: "use --backend: \(list)")
        }
        return user
    }

    private func choose(_ backend: Backend) async throws(Failure) {
        try check(
            await ask { mpin async throws(ClientError) in
                try await mpin.setBackend(backend.url, rpsPrefix: backend.rpsPrefix)
            }
        )
    }

    /// A user with a time permit.
    private func ready(_ name: String) async throws(Failure) -> IUser {
        let user = try await known(name)
        try await choose(user.backend)
        try check(await ask { mpin async throws(ClientError) in try await mpin.startAuthentication(user) })
        return user
    }

    private func pin() async throws(Failure) -> Secret {
        guard let pin = try await secret(SecretForm(name: "PIN", digits: 4...4)).take() else {
            throw Failure(.failed, "there is no PIN", hint: "try again")
        }
        return pin
    }

    private func secret(_ form: SecretForm) async throws(Failure) -> SecretBox {
        let reply = await workflow.user.source.ask(form)
        if case .secret(let secret) = reply { return secret }
        workflow.user.giveUp(reply, wanted: "a \(form.name) of \(form.length)")
        throw workflow.user.ending ?? Failure(.failed, "cancelled: \(workflow.user.notDone)", hint: "try again")
    }

    private func ask<Value: Sendable>(
        _ body: @escaping @Sendable (MPin) async throws(ClientError) -> Value
    ) async throws(Failure) -> Value {
        let mpin = mpin
        return try await workflow.ask { () async throws(ClientError) in try await body(mpin) }
    }

    private func finish<Value: Sendable>(
        _ pin: consuming Secret,
        _ body: @escaping @Sendable (MPin, consuming Secret) async throws(ClientError) -> Value
    ) async throws(Failure) -> Value {
        let (mpin, box) = (mpin, SecretBox(pin))
        return try await workflow.ask { () async throws(ClientError) in
            guard let pin = box.take() else { throw ClientError.cancelled }
            return try await body(mpin, pin)
        }
    }

    private func check(_ status: MpinStatus) throws(Failure) {
        guard !status.isOK else { return }
        if let ending = workflow.user.ending { throw ending }
        switch status.status {
        case .incorrectPIN:
            throw Failure(.failed, "the PIN is wrong", hint: "badgectl mpin users says whether the user is blocked now")
        default:
            throw Failure(.failed, "\(status.statusCodeAsString): \(status.errorMessage)", hint: Failure.seeLog)
        }
    }
}
