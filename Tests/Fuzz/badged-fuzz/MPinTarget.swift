// SPDX-License-Identifier: GPL-3.0-or-later
import BN254
import HTTP
import MPin
import MPinFeature
import Text

/// An answer of an M-Pin server: its members, what it says as settings, and its points.
@Sendable func mpinAnswer(_ input: UnsafeRawBufferPointer) {
    guard let answer = try? ServerAnswer(Array(input)) else { return }
    _ = (try? answer.string("mpinId")).flatMap { MPinID($0) }
    _ = try? answer.int("date")
    _ = try? answer.bool("active")
    if let share = try? answer.secret("clientSecretShare", count: ClientKeys.encodedCount),
        let point = try? Point(share)
    {
        require((try? point.encoded().count) == ClientKeys.encodedCount, "a point of a wrong length")
        _ = try? ClientKeys.sum(share, share)
    }
    if let y = try? answer.secret("y", count: ClientKeys.scalarCount) { _ = try? Scalar(y) }
    if let identity = KeyedIdentity(answer.json()) {
        require((try? SecondPoint(identity.publicKey).encoded()) == identity.publicKey, "another public key")
    }
    for scope in [ProofScope.login, .otp, .registrationCode] {
        guard case .accepted(let result)? = try? MPinConnection.result(answer, scope) else { continue }
        require((result.code != nil) == (scope != .login), "a code that was not asked for, or none")
        _ = result.authorizationCode
    }
    guard let backend = Backend("https://login.example/app", prefix: "rps") else { return }
    let settings = ClientSettings(backend, answer.json())
    _ = settings.accepts(accessNumber: settings.parameter("accessNumber"))
    if let address = try? settings.address("registerURL", "/00") {
        require(address.text.hasPrefix("http"), "an address of another scheme")
    }
}

/// The record of a user of M-Pin in the store.
@Sendable func mpinUser(_ input: UnsafeRawBufferPointer) {
    require(MPinUserRecord.isStable(Array(input)) ?? true, "a record that is read differently")
}
