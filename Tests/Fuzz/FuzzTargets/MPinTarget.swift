// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import MPin
import MPinFeature
import Text

private let keys = try? IdentityKeys(try Scalar.random())

/// An answer of an M-Pin server, read as each kind of answer.
@Sendable func mpinReply(_ input: UnsafeRawBufferPointer) {
    let body = Array(input)
    for flavour in [Flavour.mpin, .mfa] {
        guard let registration = try? ServerReply.registration(body, flavour) else { continue }
        require((1...256).contains(registration.regOTT.utf8.count), "a token without a limit")
        require((registration.expiration?.utf8.count ?? 0) <= 64, "a time without a limit")
    }
    requirePoint(try? ServerReply.firstShare(Secret(body)).share)
    requirePoint(try? ServerReply.secondShare(Secret(body)))
    requirePoint(try? ServerReply.secondKeyedShare(Secret(body)))
    if let permit = try? ServerReply.permit(Secret(body), today: 20_779) {
        requirePoint(SecretBox(permit.share.clone()))
    }
    if let permit = try? ServerReply.secondPermit(Secret(body)) { requirePoint(SecretBox(permit)) }
    if let permit = try? ServerReply.storedPermit(Secret(body)) { requirePoint(SecretBox(permit)) }
    if let y = try? ServerReply.challenge(body) { _ = try? Scalar(y) }
    if let keys, let share = try? ServerReply.keyedShare(Secret(body), of: nil, keys) {
        require(share.identity.publicKey == keys.publicKey, "another public key")
    }
    readLogins(body)
    if let details = try? ServerReply.service(body) {
        require(!details.name.isEmpty && details.backendURL.utf8.count <= 1024, "a service without a limit")
    }
    _ = try? ServerReply.session(body)
    if let code = try? ServerReply.accessCode(body) {
        require((1...MPinConnection.maximumCode).contains(code.utf8.count), "an access code without a limit")
    }
    _ = ServerRefusal(body: body)
    guard let backend = Backend("https://login.example/app", prefix: "rps"),
        let settings = try? ServerReply.settings(body, of: backend, .mpin)
    else { return }
    _ = settings.accepts(accessNumber: settings.parameter("accessNumber"))
    if let address = try? settings.address("registerURL", "/00") {
        require(address.text.hasPrefix("http"), "an address of another scheme")
    }
}

private func readLogins(_ body: [UInt8]) {
    for mode in [LoginMode.login, .otp, .accessNumber("1")] {
        if let proof = try? ServerReply.proof(body, mode) {
            require(proof.body == body, "the proof is passed on with a change")
            require((proof.otp != nil) == (mode == .otp), "a code that was not asked for, or none")
        }
        guard let result = try? ServerReply.login(body, mode, otp: mode == .otp ? "123456" : nil) else { continue }
        require((result.code != nil) == (mode == .otp), "times without a code, or none")
        require(mode != .login || result.logout == nil, "a login without a browser can be undone")
    }
    _ = try? ServerReply.keyedProof(body)
    for scope in [ProofScope.login, .otp, .registrationCode] {
        guard case .accepted(let result)? = try? ServerReply.result(body, scope) else { continue }
        require((result.code != nil) == (scope != .login), "a code that was not asked for, or none")
    }
}

/// Takes a share that was read, and computes with it.
private func requirePoint(_ box: SecretBox?) {
    guard let share = box?.take() else { return }
    require(share.count == ClientKeys.encodedCount, "a share of a wrong length")
    guard let point = try? Point(share) else { return }
    require((try? point.encoded().count) == ClientKeys.encodedCount, "a point of a wrong length")
    _ = try? ClientKeys.sum(share, share)
}

/// The record of a user of M-Pin in the store.
@Sendable func mpinUser(_ input: UnsafeRawBufferPointer) {
    require(MPinUserRecord.isStable(Array(input)) ?? true, "a record that is read differently")
}
