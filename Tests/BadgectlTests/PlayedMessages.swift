// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

/// Messages of the scripted badged.
enum Say {
    /// The members of READER, without braces. `left` is the number of PIN tries; nil: no card.
    static func reader(
        _ name: String = "R",
        left: Int? = 3,
        insertable: Bool = false,
        keypad: Bool = false
    ) -> String {
        let card = left.map { #"{"deactivated":false,"inoperative":false,"retryCounter":\#($0)}"# } ?? "null"
        return #""attached":true,"card":\#(card),"insertable":\#(insertable),"keypad":\#(keypad),"name":"\#(name)""#
    }

    /// The members of READER for a Keycard with these members.
    static func keycard(_ members: String) -> String {
        #""attached":true,"card":{"kind":"keycard",\#(members)},"insertable":false,"keypad":false,"name":"R""#
    }

    static func event(_ reader: String) -> String { "{\"msg\":\"READER\",\(reader)}" }
    static func list(_ readers: String...) -> String {
        "{\"msg\":\"READER_LIST\",\"readers\":[\(readers.map { "{\($0)}" }.joined(separator: ","))]}"
    }
    static func enter(_ kind: String, _ reader: String) -> String {
        "{\"msg\":\"ENTER_\(kind)\",\"reader\":{\(reader)}}"
    }
    /// Asks again for a CAN or PUK to which the card gave no answer.
    static func unanswered(_ kind: String, left: Int) -> String {
        "{\"error\":\"\(noAnswer)\",\"msg\":\"ENTER_\(kind)\",\"reader\":{\(reader(left: left))},\"unanswered\":true}"
    }
    static let noAnswer = "The card gave no answer, so the value may have been right; it is needed again"
    static let started = #"{"msg":"CHANGE_PIN"}"#
    static let changed = #"{"msg":"CHANGE_PIN","success":true}"#
    static func failed(_ reason: String) -> String {
        #"{"msg":"CHANGE_PIN","reason":"\#(reason)","success":false}"#
    }
    static let cancelled = failed("User_Cancelled")
    static func rights(_ effective: String = #""Address","FamilyName","GivenNames""#, error: String? = nil) -> String {
        let error = error.map { #""error":"\#($0)","# } ?? ""
        let aux = #""aux":{"ageVerificationDate":"2008-06-15","requiredAge":"18"}"#
        return #"{\#(aux),"chat":{"effective":[\#(effective)],"optional":["GivenNames"],"#
            + #""required":["Address","FamilyName","AgeVerification"]},\#(error)"msg":"ACCESS_RIGHTS"}"#
    }
    static let certificate =
        #"{"description":{"issuerName":"An issuer","issuerUrl":"","purpose":"Test","subjectName":"A \u001b[2Jservice","#
        + #""subjectUrl":"https://a.example","termsOfUsage":"A company\nMain street 1"},"msg":"CERTIFICATE","#
        + #""validity":{"effectiveDate":"2026-01-01","expirationDate":"2026-12-31"}}"#
    static let authenticated =
        #"{"msg":"AUTH","result":{"major":"x#ok"},"url":"https://a.example/back?ResultMajor=ok"}"#
    static let anchors =
        #"{"checks":[{"lastDay":"2026-12-31","linksLearnt":1,"name":"trustAnchors","newest":"DEA00001","ok":true}],"#
        + #""msg":"HEALTH"}"#
    static let noAnchors =
        #"{"checks":[{"advice":"Import.","linksLearnt":0,"name":"trustAnchors","ok":false}],"msg":"HEALTH"}"#
    static let scanning =
        #"{"adapters":[],"backend":"bluez","lastAdvertAgo":null,"msg":"SCAN","radio":true,"wanted":true}"#
    /// The state of a scan with a fault.
    static func scanning(error: String) -> String {
        scanning.replacing(#""lastAdvertAgo""#, with: #""error":"\#(error)","errorAgo":5,"lastAdvertAgo""#)
    }
    static let insertCard = #"{"msg":"INSERT_CARD"}"#
    /// A door reader that is near enough.
    static let doorReader =
        #"{"msg":"DOOR_READER","reader":{"active":true,"id":"pkoc-A","inRange":{"proximity":true},"name":null,"#
        + #""openingTypes":["proximity"],"profile":"pkoc","rssi":{"last":-40,"level":-40.0}}}"#
}

extension ScriptedPeer.Connection {
    /// Plays the start of a PIN change.
    func start() {
        command("RUN_CHANGE_PIN")
        send(Say.started)
    }

    /// Plays the start of the agent, up to the wait for browsers.
    func servesBrowsers() {
        answer("SET_USER_INTERFACE", #"{"active":true,"msg":"USER_INTERFACE"}"#)
        answer("GET_HEALTH", #"{"checks":[{"name":"browserPort","ok":true}],"msg":"HEALTH"}"#)
    }

    /// Answers the question what the user may do, which is nothing beyond the usual without `permissions`.
    func tellsPermissions(_ permissions: String = #""readers","cards","remote","scan","open","admin""#) {
        let badged = #"{"protocol":1,"permissions":[\#(permissions)]}"#
        answer("GET_INFO", #"{"VersionInfo":{"Name":"badged"},"badged":\#(badged),"msg":"INFO"}"#)
    }

    /// Answers the question whether badged trusts a country authority.
    func hasAnchors() {
        answer("GET_HEALTH", Say.anchors)
    }

    /// Plays the first messages of an authentication.
    func beginAuth() {
        hasAnchors()
        command("RUN_AUTH")
        send(#"{"msg":"AUTH"}"#)
    }

    /// Plays the start of an authentication, up to the question for consent.
    func startAuth() {
        beginAuth()
        send(Say.rights())
        answer("GET_CERTIFICATE", Say.certificate)
    }

    /// Asks for a card. badgectl then asks for the readers.
    func needCard(_ list: String = Say.list(Say.reader(left: nil))) {
        send(Say.insertCard)
        answer("GET_READER_LIST", list)
    }

    /// Asks for a value and waits for the answer.
    func ask(_ kind: String, _ reader: String = Say.reader()) {
        send(Say.enter(kind, reader))
        command("SET_\(kind)")
    }

    /// Waits for CANCEL and ends the workflow as badged does.
    func endCancelled() {
        command("CANCEL")
        send(Say.cancelled)
    }
}

extension ScriptedPeer {
    /// Plays a PIN change that asks for these values, and then the script.
    static func pinChange(
        asking kinds: String...,
        then script: @escaping @Sendable (Connection) -> Void = { _ in }
    ) throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.start()
            for kind in kinds { peer.ask(kind) }
            script(peer)
        }
    }

    /// Plays the start of `badgectl open` or `capture`, and then the script.
    static func opening(then script: @escaping @Sendable (Connection) -> Void = { _ in }) throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("START_SCAN", Say.scanning)
            script(peer)
        }
    }

    /// Plays the start of a scan, and then the script.
    static func scan(
        _ state: String = Say.scanning,
        then script: @escaping @Sendable (Connection) -> Void = { _ in }
    ) throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.answer("START_SCAN", state)
            script(peer)
        }
    }

    /// Plays an authentication up to the question for consent, and then the script.
    static func authentication(then script: @escaping @Sendable (Connection) -> Void) throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.startAuth()
            script(peer)
        }
    }

    /// Plays an authentication that gets the consent and asks for these values, and then the script.
    static func acceptedAuthentication(
        asking kinds: String...,
        then script: @escaping @Sendable (Connection) -> Void
    ) throws -> ScriptedPeer {
        try authentication { peer in
            peer.command("ACCEPT")
            for kind in kinds { peer.ask(kind) }
            script(peer)
        }
    }
}

/// Starts badgectl with a scripted badged.
func badgectl(
    _ peer: ScriptedPeer,
    _ arguments: String...,
    input: String? = "",
    hasTerminal: Bool = false,
    columns: UInt16 = 1000,
    environment: [String: String] = ["LC_ALL": "C.UTF-8"]
) throws -> RunningProgram {
    try RunningProgram(
        "badgectl",
        ["--socket", peer.path] + arguments,
        input: input,
        hasTerminal: hasTerminal,
        columns: columns,
        environment: environment
    )
}

/// Starts badgectl with the program badged.
func badgectl(
    _ daemon: RunningDaemon,
    _ arguments: String...,
    input: String? = "",
    hasTerminal: Bool = false,
    environment: [String: String] = [:]
) throws -> RunningProgram {
    try RunningProgram(
        "badgectl",
        ["--socket", daemon.path] + arguments,
        input: input,
        hasTerminal: hasTerminal,
        environment: environment
    )
}

/// The SET commands among received lines with their values, in order.
func values(_ lines: [String]) -> [String] {
    lines.compactMap { line in
        guard let json = try? JSON(line.utf8), let name = json["cmd"]?.string, name.hasPrefix("SET_") else {
            return nil
        }
        return "\(name) \(json["value"]?.string ?? "-")"
    }
}

/// Waits for a question and answers it. The terminal must not show the answer.
func answer(_ program: RunningProgram, _ question: String, _ text: String) async {
    #expect(await program.prints(question), "no \(question) in: \(program.everything)")
    #expect(!program.echoes)
    program.type(text + "\n")
}

/// The end of badgectl.
extension RunningProgram {
    /// Expects an exit code, and a text in standard error.
    func ends(_ code: Int32, saying text: String, at place: SourceLocation = #_sourceLocation) async {
        await expectEnd(code, .error, at: place) { $0.contains(text) }
    }

    /// Expects an exit code, and a text with which standard error begins.
    func ends(_ code: Int32, sayingFirst text: String, at place: SourceLocation = #_sourceLocation) async {
        await expectEnd(code, .error, at: place) { $0.hasPrefix(text) }
    }

    /// Expects an exit code, and the whole text of standard output.
    func ends(_ code: Int32, printing text: String, at place: SourceLocation = #_sourceLocation) async {
        await expectEnd(code, .output, at: place) { $0 == text }
    }

    /// Expects an exit code, and a text in standard output.
    func ends(_ code: Int32, showing text: String, at place: SourceLocation = #_sourceLocation) async {
        await expectEnd(code, .output, at: place) { $0.contains(text) }
    }

    private func expectEnd(
        _ code: Int32,
        _ stream: Stream,
        at place: SourceLocation,
        _ isRight: (String) -> Bool
    ) async {
        #expect(await exitCode == code, "\(everything)", sourceLocation: place)
        #expect(isRight(text(stream)), "\(everything)", sourceLocation: place)
    }
}
