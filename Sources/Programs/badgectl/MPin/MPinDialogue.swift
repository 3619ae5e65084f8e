// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Host
import Text

/// One call of `badgectl mpin`: the classes of the library, and the steps that several actions need.
struct MPinDialogue: Sendable {
    /// A class of the library.
    enum Service: Sendable {
        case mpin(MPin)
        case mfa(MPinMFA)

        var sdk: any MPinSDK {
            switch self {
            case .mpin(let mpin): mpin
            case .mfa(let mfa): mfa
            }
        }
    }

    let workflow: WorkflowRun
    let invocation: Invocation
    private let mpin: MPin
    private let mfa: MPinMFA

    private init(_ workflow: WorkflowRun, _ invocation: Invocation) {
        self.workflow = workflow
        self.invocation = invocation
        mpin = MPin(workflow.connection, cardUser: workflow.user)
        mfa = MPinMFA(workflow.connection, cardUser: workflow.user)
    }

    /// Connects and runs an action. `notDone` is what an early end means, such as `the user is not registered`.
    static func run(
        _ invocation: Invocation,
        notDone: String,
        _ body: @escaping @Sendable (MPinDialogue) async throws -> Void
    ) async throws {
        try await WorkflowRun.run(invocation, notDone: notDone) { try await body(MPinDialogue($0, invocation)) }
    }

    // MARK: Services

    /// Begins to use MPinMFA, for the customer of `--client-id`.
    func beginMFA() async throws -> MPinMFA {
        try await begin(.mfa(mfa), invocation.value(of: .clientId) ?? "")
        return mfa
    }

    /// Begins to use the class that makes the users of this command line.
    func beginChosen() async throws -> Service {
        guard let client = invocation.value(of: .clientId) else {
            try await begin(.mpin(mpin), "")
            return .mpin(mpin)
        }
        try await begin(.mfa(mfa), client)
        return .mfa(mfa)
    }

    private func begin(_ service: Service, _ customer: String) async throws {
        try check(await service.sdk.initSDK())
        if case .mfa(let mfa) = service, !customer.isEmpty {
            try check(await mfa.setClientId(customer))
        }
    }

    func chooseBackend(_ service: Service) async throws {
        guard let url = invocation.value(of: .backend) else {
            throw CommandFailure(
                usage: tr("mpin \(invocation.operand) needs --backend"),
                hint: tr("give the address of the service: --backend URL")
            )
        }
        try check(await service.sdk.setBackend(url))
    }

    // MARK: Users

    /// All users, of both classes.
    func users() async throws -> [(user: IUser, service: Service)] {
        var all: [(IUser, Service)] = []
        for service in [Service.mpin(mpin), .mfa(mfa)] {
            try await begin(service, "")
            let users = try await service.sdk.listUsers()
            all += users.map { ($0, service) }
        }
        return all
    }

    /// Whether a user is at the backend of `--backend` and of the customer of `--client-id`, if these are given.
    func isWanted(_ user: IUser) -> Bool {
        if let url = invocation.value(of: .backend), String(url.trimmingSlashes) != user.backend.url { return false }
        if let client = invocation.value(of: .clientId), client != user.customerId { return false }
        return true
    }

    /// The only user of this name that is wanted. Its class and its backend are then in use.
    func known(_ name: String) async throws -> (user: IUser, service: Service) {
        let found = try await users().filter { $0.user.identity == name && isWanted($0.user) }
        guard let one = found.first else {
            throw CommandFailure(tr("there is no user \(name)"), hint: tr("badgectl mpin users lists them"))
        }
        guard found.count == 1 else {
            let list = found.map { user, _ in
                user.backend.url + (user.customerId.isEmpty ? "" : tr(" --client-id \(user.customerId)"))
            }
            throw CommandFailure(
                usage: tr("\(name) is registered at several services"),
                hint: tr("use --backend: \(list.joined(separator: ", "))")
            )
        }
        let (user, service) = one
        try await begin(service, user.customerId)
        return one
    }

    /// A user whose backend is chosen, too.
    func ready(_ name: String) async throws -> (user: IUser, service: Service) {
        let (user, service) = try await known(name)
        if user.state == .blocked { throw Self.blocked(user) }
        guard user.state == .registered else {
            throw CommandFailure(
                tr("\(name) is not registered yet"),
                hint: tr("badgectl mpin register \(name) --backend \(user.backend.url)")
            )
        }
        try check(await service.sdk.setBackend(user.backend.url, rpsPrefix: user.backend.rpsPrefix))
        return (user, service)
    }

    /// A user of MPinMFA.
    func readyForMFA(_ name: String) async throws -> (user: IUser, mfa: MPinMFA) {
        let (user, service) = try await ready(name)
        guard case .mfa(let mfa) = service else {
            throw CommandFailure(
                usage: tr("\(name) is not a user of MPinMFA"),
                hint: tr("to register such a user: badgectl mpin register USER --client-id ID --backend URL")
            )
        }
        return (user, mfa)
    }

    // MARK: Secrets

    /// The values that a call needs.
    struct Factors: Sendable {
        fileprivate let pin: SecretBox
        fileprivate let second: SecretBox?
    }

    /// Asks the user to choose a PIN, which is called `name`, such as `new PIN`, and with `--second-factor` a second
    /// factor, too. `MPin` has no second factor.
    func askForNewFactors(_ service: Service, _ name: String = tr("new PIN")) async throws -> Factors {
        if invocation.has(.secondFactor), case .mpin = service { throw Self.noSecondFactor }
        let pin = try await ask(TypedSecretForm(name: name, digits: 4...4, isTypedTwice: true))
        guard invocation.has(.secondFactor) else { return Factors(pin: pin, second: nil) }
        var form = TypedSecretForm(name: tr("new second factor"), content: .characters(1...64))
        form.isTypedTwice = true
        return Factors(pin: pin, second: try await ask(form))
    }

    /// Asks for the PIN, which is called `name`, and for the second factor if the token needs one. `hasSecond` is what
    /// badged knows about the token.
    func askForFactors(
        _ service: Service,
        _ name: String = "PIN",
        hasSecond: Bool? = nil
    ) async throws -> Factors {
        var hasSecond = hasSecond
        if case .mpin = service { hasSecond = false }
        if invocation.has(.secondFactor), hasSecond == false { throw Self.noSecondFactor }
        let pin = try await ask(TypedSecretForm(name: name, digits: 4...4))
        // For the token of an earlier badged a script says with the option whether there is a second factor.
        let isKnown = hasSecond != nil || invocation.has(.secondFactor) || invocation.has(.pinStdin)
        guard hasSecond ?? (invocation.has(.secondFactor) || !isKnown) else {
            return Factors(pin: pin, second: nil)
        }
        if !isKnown { workflow.user.say(tr("Press Return if the user has no second factor.")) }
        let second = try await ask(
            TypedSecretForm(name: tr("second factor"), content: .characters((isKnown ? 1 : 0)...64))
        )
        guard let value = second.take(), value.withBytes({ !$0.isEmpty }) else { return Factors(pin: pin, second: nil) }
        return Factors(pin: pin, second: SecretBox(value))
    }

    private static let noSecondFactor = CommandFailure(
        usage: tr("the user has no second factor"),
        hint: tr("leave --second-factor out; only users of MPinMFA can have one")
    )

    private func ask(_ form: TypedSecretForm) async throws -> SecretBox {
        if let secret = await workflow.user.secret(form) { return secret }
        throw workflow.user.ending ?? CommandFailure(tr("cancelled: \(workflow.user.notDone)"), hint: tr("try again"))
    }

    /// Makes a call that needs factors.
    func finish<Value>(
        _ factors: Factors,
        _ body: (consuming Secret, consuming Secret?) async throws -> Value
    ) async throws -> Value {
        guard let pin = factors.pin.take() else { throw ClientError.cancelled }
        return try await body(pin, factors.second?.take())
    }

    // MARK: Results

    func check(_ status: MpinStatus) throws {
        guard !status.isOK else { return }
        if let ending = workflow.user.ending { throw ending }
        let text = DaemonWords.text(status.errorMessage)
        throw CommandFailure("\(text) (\(status.statusCodeAsString))", hint: Self.hint(status.status))
    }

    /// Checks the status of a login or a signature of a user, whom a wrong PIN may have blocked.
    func check(_ status: MpinStatus, of user: IUser, _ service: Service) async throws {
        guard status.status == .incorrectPIN else { return try check(status) }
        let users = try await service.sdk.listUsers()
        let now = users.first { $0.identity == user.identity && $0.customerId == user.customerId }
        if now?.state == .blocked { throw Self.blocked(user, tr("the PIN was wrong, and the service has blocked")) }
        let wrong = user.hasSecondFactor == true ? tr("the PIN or the second factor is wrong") : tr("the PIN is wrong")
        throw CommandFailure(wrong, hint: tr("try again; after further wrong PINs the service blocks \(user.identity)"))
    }

    static func blocked(_ user: IUser, _ reason: String = tr("the service has blocked")) -> CommandFailure {
        let customer = user.customerId.isEmpty ? "" : tr(" --client-id \(user.customerId)")
        let delete = tr("badgectl mpin delete \(user.identity) --backend \(user.backend.url)\(customer)")
        let register = tr("badgectl mpin register \(user.identity) --backend \(user.backend.url)\(customer)")
        return CommandFailure("\(reason) \(user.identity)", hint: tr("register again: \(delete); \(register)"))
    }

    /// What the user can do. The text of badged says the rest.
    private static func hint(_ status: MpinStatus.Code) -> String? {
        switch status {
        case .networkError, .httpServerError: tr("check the network and the address of --backend, and try again later")
        case .requestExpired: tr("try again")
        case .incorrectAccessNumber: tr("use the number that the browser shows now")
        case .clientSecretExpired: tr("badgectl mpin delete, then badgectl mpin register")
        case .untrustedDomainError: tr("see [mpin] in badged.conf(5)")
        case .identityNotAuthorized: tr("ask the operator of the service; a code of the service goes to --code")
        case .revoked: tr("ask the operator of the service")
        case .flowError, .identityNotVerified: tr("badgectl mpin users shows the state of each user")
        case .ok, .pinInputCanceled, .incorrectPIN: nil
        case .cryptoError, .storageError, .responseParseError, .httpRequestError, .badUserAgent: CommandFailure.seeLog
        }
    }

    /// Checks a status, and returns what a call with this status must have returned.
    func checked<Value>(_ status: MpinStatus, _ value: Value?) throws -> Value {
        try check(status)
        guard let value else {
            throw CommandFailure(
                tr("badged has answered without a result"),
                hint: tr("badgectl status shows the version of badged; badgectl --version is its own")
            )
        }
        return value
    }

    /// Writes names and values to standard output, without empty values.
    func show(_ rows: [(String, String)]) {
        workflow.user.show(result: Help.columns(rows.filter { !$0.1.isEmpty }, indentation: ""))
    }
}

extension String {
    fileprivate var trimmingSlashes: Substring {
        var rest = self[...]
        while rest.last == "/" { rest = rest.dropLast() }
        return rest
    }
}
