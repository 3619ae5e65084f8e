// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Secrets

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
        (self.workflow, self.invocation) = (workflow, invocation)
        mpin = MPin(workflow.connection, cardUser: workflow.user)
        mfa = MPinMFA(workflow.connection, cardUser: workflow.user)
    }

    /// Connects and runs an action. `notDone` is what an early end means, such as `the user is not registered`.
    static func run(
        _ invocation: Invocation,
        notDone: String,
        _ body: @escaping @Sendable (MPinDialogue) async throws(Failure) -> Void
    ) async throws(Failure) -> ExitStatus {
        let workflow = try await WorkflowRun(invocation, notDone: notDone)
        try await workflow.checkReader(invocation)
        return try await workflow.run { () throws(Failure) in try await body(MPinDialogue(workflow, invocation)) }
    }

    // MARK: Services

    /// Begins to use MPinMFA, for the customer of `--client-id`.
    func beginMFA() async throws(Failure) -> MPinMFA {
        try await begin(.mfa(mfa), invocation.value(of: "--client-id") ?? "")
        return mfa
    }

    /// Begins to use the class that makes the users of this command line.
    func beginChosen() async throws(Failure) -> Service {
        guard let client = invocation.value(of: "--client-id") else {
            try await begin(.mpin(mpin), "")
            return .mpin(mpin)
        }
        try await begin(.mfa(mfa), client)
        return .mfa(mfa)
    }

    private func begin(_ service: Service, _ customer: String) async throws(Failure) {
        try check(await workflow.ask { () async throws(ClientError) in try await service.sdk.initSDK() })
        if case .mfa(let mfa) = service, !customer.isEmpty {
            try check(await workflow.ask { () async throws(ClientError) in try await mfa.setClientId(customer) })
        }
    }

    /// Chooses the backend of `--backend`.
    func chooseBackend(_ service: Service) async throws(Failure) {
        guard let url = invocation.value(of: "--backend") else {
            throw Failure(
                .usage,
                "mpin \(invocation.operand) needs --backend",
                hint: "give the address of the service: --backend URL"
            )
        }
        try check(await workflow.ask { () async throws(ClientError) in try await service.sdk.setBackend(url) })
    }

    // MARK: Users

    /// All users, of both classes.
    func users() async throws(Failure) -> [(user: IUser, service: Service)] {
        var all: [(IUser, Service)] = []
        for service in [Service.mpin(mpin), .mfa(mfa)] {
            try await begin(service, "")
            let users = try await workflow.ask { () async throws(ClientError) in try await service.sdk.listUsers() }
            all += users.map { ($0, service) }
        }
        return all
    }

    /// Whether a user is at the backend of `--backend` and of the customer of `--client-id`, if these are given.
    func isWanted(_ user: IUser) -> Bool {
        if let url = invocation.value(of: "--backend"), String(url.trimmingSlashes) != user.backend.url { return false }
        if let client = invocation.value(of: "--client-id"), client != user.customerId { return false }
        return true
    }

    /// The only user of this name that is wanted. Its class and its backend are then in use.
    func known(_ name: String) async throws(Failure) -> (user: IUser, service: Service) {
        let found = try await users().filter { $0.user.identity == name && isWanted($0.user) }
        guard let one = found.first else {
            throw Failure(.failed, "there is no user \(name)", hint: "badgectl mpin users lists them")
        }
        guard found.count == 1 else {
            let list = found.map { user, _ in
                user.backend.url + (user.customerId.isEmpty ? "" : " --client-id \(user.customerId)")
            }
            throw Failure(
                .usage,
                "\(name) is registered at several services",
                hint: "use --backend: \(list.joined(separator: ", "))"
            )
        }
        let (user, service) = one
        try await begin(service, user.customerId)
        return one
    }

    /// A user whose backend is chosen, too.
    func ready(_ name: String) async throws(Failure) -> (user: IUser, service: Service) {
        let (user, service) = try await known(name)
        try check(
            await workflow.ask { () async throws(ClientError) in
                try await service.sdk.setBackend(user.backend.url, rpsPrefix: user.backend.rpsPrefix)
            }
        )
        return (user, service)
    }

    /// A user of MPinMFA.
    func readyForMFA(_ name: String) async throws(Failure) -> (user: IUser, mfa: MPinMFA) {
        let (user, service) = try await ready(name)
        guard case .mfa(let mfa) = service else {
            throw Failure(
                .usage,
                "\(name) is not a user of MPinMFA",
                hint: "to register such a user: badgectl mpin register USER --client-id ID --backend URL"
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

    /// Asks for the PIN, which is called `name`, and with `--second-factor` for that one, too. `isNew`: the user chooses
    /// the values. `MPin` has no second factor.
    func askForFactors(_ service: Service, _ name: String = "PIN", isNew: Bool = false) async throws(Failure) -> Factors
    {
        let wantsSecond = invocation.has("--second-factor")
        if wantsSecond, case .mpin = service {
            throw Failure(.usage, "only users of MPinMFA have a second factor", hint: "leave --second-factor out")
        }
        let prefix = isNew ? "new " : ""
        let pin = try await ask(SecretForm(name: prefix + name, digits: 4...4, isTypedTwice: isNew))
        guard wantsSecond else { return Factors(pin: pin, second: nil) }
        var form = SecretForm(name: "\(prefix)second factor", content: .characters(1...64))
        form.isTypedTwice = isNew
        return Factors(pin: pin, second: try await ask(form))
    }

    private func ask(_ form: SecretForm) async throws(Failure) -> SecretBox {
        let reply = await workflow.user.source.ask(form)
        if case .secret(let secret) = reply { return secret }
        workflow.user.giveUp(reply, wanted: "a \(form.name) of \(form.length)")
        throw workflow.user.ending ?? Failure(.failed, "cancelled: \(workflow.user.notDone)", hint: "try again")
    }

    /// Makes a call that needs factors.
    func finish<Value>(
        _ factors: Factors,
        _ body: (consuming Secret, consuming Secret?) async throws(ClientError) -> Value
    ) async throws(Failure) -> Value {
        try await workflow.ask { () async throws(ClientError) in
            guard let pin = factors.pin.take() else { throw ClientError.cancelled }
            return try await body(pin, factors.second?.take())
        }
    }

    // MARK: Results

    func check(_ status: MpinStatus) throws(Failure) {
        guard !status.isOK else { return }
        if let ending = workflow.user.ending { throw ending }
        switch status.status {
        case .incorrectPIN:
            throw Failure(.failed, "the PIN is wrong", hint: "badgectl mpin users says whether the user is blocked now")
        default:
            throw Failure(.failed, "\(status.statusCodeAsString): \(status.errorMessage)", hint: Failure.seeLog)
        }
    }

    /// Checks a status, and returns what a call with this status must have returned.
    func checked<Value>(_ status: MpinStatus, _ value: Value?) throws(Failure) -> Value {
        try check(status)
        guard let value else { throw Failure(.failed, "badged has answered without a result", hint: Failure.seeLog) }
        return value
    }

    /// Writes names and values to standard output, without empty values.
    func tell(_ rows: [(String, String)]) {
        workflow.user.tell(result: Help.columns(rows.filter { !$0.1.isEmpty }, indentation: ""))
    }
}

extension String {
    fileprivate var trimmingSlashes: Substring {
        var rest = self[...]
        while rest.last == "/" { rest = rest.dropLast() }
        return rest
    }
}
