// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Crypto
import Glibc
import Host
import Text

/// The actions about documents.
enum MPinDocuments {
    /// A document that is signed has at most so many bytes.
    private static let limit = 64 << 20

    @Sendable static func register(_ invocation: Invocation) async throws {
        guard let token = invocation.value(of: .token).map(Invocation.textOrFile) else {
            throw invocation.usage(tr("mpin register-dvs needs --token TOKEN, which the service gives the app"))
        }
        let (name, notDone) = (invocation.argument, tr("the user is not registered for signing"))
        try await MPinDialogue.run(invocation, notDone: notDone) { dialogue in
            let (user, mfa) = try await dialogue.readyForMFA(name)
            try dialogue.check(await mfa.startRegistrationDVS(user, token: token))
            let factors = try await dialogue.askForNewFactors(.mfa(mfa), tr("new signing PIN"))
            let status = try await dialogue.finish(factors) { pin, second in
                try await mfa.finishRegistrationDVS(user, pinDVS: pin, nfc: second)
            }
            try dialogue.check(status)
            dialogue.workflow.user.show(result: tr("\(name) can sign documents.").printable)
        }
    }

    @Sendable static func sign(_ invocation: Invocation) async throws {
        let hash = try Self.hash(of: invocation.others[1])
        let time = try epochTime(invocation)
        let authorization = invocation.value(of: .authorization).map(Invocation.textOrFile) ?? ""
        try await MPinDialogue.run(invocation, notDone: tr("nothing was signed")) { dialogue in
            let (user, mfa) = try await dialogue.readyForMFA(invocation.argument)
            guard user.canSign else {
                let hint = tr("badgectl mpin register-dvs \(user.identity) --token TOKEN")
                throw CommandFailure(tr("\(user.identity) cannot sign yet"), hint: hint)
            }
            let hasSecond = user.signerHasSecondFactor
            let factors = try await dialogue.askForFactors(.mfa(mfa), tr("signing PIN"), hasSecond: hasSecond)
            let answer = try await dialogue.finish(factors) { pin, second in
                try await mfa.sign(
                    user,
                    documentHash: hash,
                    pin0: pin,
                    pin1: second,
                    epochTime: time,
                    authZToken: authorization
                )
            }
            try await dialogue.check(answer.status, of: user, .mfa(mfa))
            let signature = try dialogue.checked(answer.status, answer.signature)
            dialogue.workflow.user.show(result: json(signature))
        }
    }

    @Sendable static func verify(_ invocation: Invocation) async throws {
        let (path, digits) = (invocation.others[0], invocation.others[1])
        guard let hash = Hex.decode(digits), hash.count == 32 else {
            throw invocation.usage(tr("\(digits) is not a SHA-256: a SHA-256 has 64 hexadecimal digits"))
        }
        guard try Self.hash(of: path) == hash else {
            throw CommandFailure(tr("\(path) has another hash"), hint: tr("the service means another document"))
        }
        invocation.show(tr("The document has this hash."))
    }

    private static func hash(of path: String) throws -> [UInt8] {
        let document = try FileContent.read(path, limit: limit)
        do throws(CryptoError) {
            return try DigestAlgorithm.sha256.hash(document)
        } catch {
            let text = tr("the document cannot be hashed: \("\(error)")")
            throw CommandFailure(text, hint: tr("check the library libcrypto"))
        }
    }

    /// The value of `--time`, or now.
    private static func epochTime(_ invocation: Invocation) throws -> UInt32 {
        guard let text = invocation.value(of: .time) else { return UInt32(clamping: Glibc.time(nil)) }
        guard let time = UInt32(text) else {
            throw invocation.usage(tr("--time needs the seconds since 1970, not \(text)"))
        }
        return time
    }

    /// The signature as one line, as `signature` of MPIN_RESULT has it.
    private static func json(_ signature: BridgeSignature) -> String {
        let texts = [
            ("hash", Hex.encode(signature.strHash)), ("mpinId", Hex.encode(signature.strMpinId)),
            ("u", Hex.encode(signature.strU)), ("v", Hex.encode(signature.strV)),
            ("publicKey", Hex.encode(signature.strPublicKey)), ("dtas", signature.dtas),
        ]
        let members = texts.map { JSON.Member($0, .string($1)) }
        let time = JSON.Member("epochTime", .number("\(signature.epochTime)"))
        return String(decoding: JSON.object(members + [time]).bytes, as: UTF8.self)
    }
}
