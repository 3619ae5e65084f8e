// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
package import Text

/// A registration as the login server has begun it.
package struct MPinRegistration: Sendable, Equatable {
    package let id: MPinID
    /// The one-time token with which the client fetches its secret.
    package let regOTT: String
    /// Whether the identity needs no other confirmation.
    package let isActive: Bool
    /// When the registration expires, as the server wrote it; nil if it did not say.
    package let expiration: String?

    package init(id: MPinID, regOTT: String, isActive: Bool, expiration: String?) {
        self.id = id
        self.regOTT = regOTT
        self.isActive = isActive
        self.expiration = expiration
    }
}

/// The data with which a client begins a registration. Empty texts are not sent.
package struct RegistrationRequest: Sendable {
    package let userID: String
    package var deviceName = ""
    package var userData = ""
    package var activateCode = ""
    /// The code of the session of a browser.
    package var accessCode = ""
    /// An identifier for push messages.
    package var push = ""

    package init(userID: String) { self.userID = userID }

    func writeOptions(to object: inout JSONWriter) {
        if !deviceName.isEmpty { object.member("deviceName", deviceName) }
        if !userData.isEmpty { object.member("userData", userData) }
        if !activateCode.isEmpty { object.member("activateCode", activateCode) }
        if !accessCode.isEmpty { object.member("wid", accessCode) }
        if !push.isEmpty { object.member("pushToken", push) }
    }
}

/// The first share of a client secret, and the signed request for the second one.
package struct FirstShare: Sendable {
    package let share: SecretBox
    let parameters: String
}

extension MPinConnection {
    /// Begins a registration, or repeats one whose answer is `earlier`.
    package func register(
        _ request: RegistrationRequest,
        repeating earlier: MPinRegistration?,
        _ settings: ClientSettings
    ) async throws(Failure) -> MPinRegistration {
        let body = JSONWriter.bytes { object in
            object.member("userId", request.userID)
            object.member("mobile", 1)
            request.writeOptions(to: &object)
            if let earlier { object.member("regOTT", earlier.regOTT) }
        }
        let address = try settings.address("registerURL", earlier.map { "/\($0.id.text)" } ?? "")
        let response = try await send(.put, address, body) { $0 == 403 ? .identityNotAuthorized : nil }
        return try ServerReply.registration(response.body, settings.flavour)
    }

    /// Fetches the first share of the client secret. The server sends it only once. `push` is an identifier for push
    /// messages, which is passed on; it may be empty.
    package func firstShare(
        _ registration: MPinRegistration,
        push: String,
        _ settings: ClientSettings
    ) async throws(Failure) -> FirstShare {
        let token = push.isEmpty ? "" : "&pmiToken=\(Self.percentEncoded(push))"
        let address = try settings.address(
            "signatureURL",
            "/\(registration.id.text)?regOTT=\(registration.regOTT)\(token)"
        )
        var response = try await get(address) { $0 == 400 || $0 == 401 ? .identityNotVerified : nil }
        return try ServerReply.firstShare(response.takeSecret())
    }

    /// Fetches the second share of the client secret.
    package func secondShare(
        _ first: FirstShare,
        _ settings: ClientSettings
    ) async throws(Failure) -> SecretBox {
        let address = try settings.authority("clientSecret?\(first.parameters)")
        var response = try await get(address, isApart: true) { $0 == 408 ? .requestExpired : nil }
        return try ServerReply.secondShare(response.takeSecret())
    }
}
