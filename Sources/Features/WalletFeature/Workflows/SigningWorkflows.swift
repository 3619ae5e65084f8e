// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import HDWallet
import Keycard
import Server
import Text

/// Shows what will be signed, and signs it: ACTIVATE_USER, PERFORM_QR_ACTION and its parts.
struct SignData: WalletWorkflow {
    let entity: ContextEntity
    let signing: Signing
    /// The names of the members of the entity that are signed.
    let signedMembers: [String]

    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        _ = try await flow.workflow.ask(
            VerifyDataPrompt(context: flow.context, entity: entity, signing: signing, signedMembers: signedMembers)
        )
        let dialogue = flow.dialogue()
        let signature = try await dialogue.run { card throws(Failure) in
            try await dialogue.openWallet(card)
            return try await signing.sign(dialogue, card)
        }
        return entity.adding(signature)
    }
}

/// ADD_SESSION: makes the key of a session, and signs its limits.
struct AddSession: WalletWorkflow {
    /// Decimal digits.
    let spendingLimit: String
    let expirationTime: Int

    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        let key = try compute("SESSION KEY", SessionKey(try PrivateKey.generate()))
        let dialogue = flow.dialogue()
        let session = try await dialogue.run { card throws(Failure) in
            try await dialogue.openWallet(card)
            let device = try await dialogue.step(
                "EXPORT KEY",
                card,
                await card.applet.exportPublicKey(.firstEthereumAddress)
            )
            let entity = entity(flow, key.address, EthereumAddress(device))
            let line = line(key.address, EthereumAddress(device))
            let signing = Signing(content: .message(line))
            _ = try await dialogue.ask(
                VerifyDataPrompt(
                    context: flow.context,
                    entity: entity,
                    signing: signing,
                    signedMembers: ["address", "device_address", "spending_limit", "expiration_time"],
                    lease: card.lease
                )
            )
            let signed = try await signing.sign(dialogue, card)
            let signature = signed.last?.value.string ?? ""
            return entity.adding(signed + [JSON.Member("payload", .string("\(line)|\(signature.dropFirst(2))"))])
        }
        _ = try await flow.workflow.ask(SessionKeyPrompt(key: key, userID: flow.request.userID))
        return session
    }

    @Loop private func entity(
        _ flow: WalletFlow,
        _ session: EthereumAddress,
        _ device: EthereumAddress
    ) -> ContextEntity {
        ContextEntity(
            type: "session",
            members: [
                JSON.Member("address", .string(session.description)),
                JSON.Member("device_address", .string(device.description)),
                JSON.Member("spending_limit", .string(spendingLimit)),
                JSON.Member("expiration_time", .string(String(expirationTime))),
            ] + flow.userMembers
        )
    }

    /// The message that is signed: version 2 of the QR code of a session, without its signature.
    private func line(_ session: EthereumAddress, _ device: EthereumAddress) -> String {
        "AS|2|\(Hex.encode(device.bytes))|\(Hex.encode(session.bytes))|\(spendingLimit)|\(expirationTime)"
    }
}

/// The members of RUN_WALLET for workflows that sign.
extension SignData {
    static func activateUser(_ arguments: Arguments, _ request: WalletRequest) throws(Failure) -> SignData {
        let challenge = try arguments.text("challenge", 1...Signing.maximumCount)
        let token = request.tokenID.map { [JSON.Member("token_id", .string($0))] } ?? []
        return SignData(
            entity: ContextEntity(
                type: "user",
                members: [JSON.Member("id", .string(request.userID))] + token + [
                    JSON.Member("challenge", .string(challenge))
                ]
            ),
            signing: Signing(content: .message(challenge)),
            signedMembers: ["challenge"]
        )
    }

    /// PERFORM_QR_ACTION, or one of its parts.
    static func qrAction(_ arguments: Arguments, _ request: inout WalletRequest) throws(Failure) -> SignData {
        let text = try arguments.text("payload", 1...QRPayload.maximumCount)
        guard let payload = QRPayload(text) else {
            throw Failure(.invalidQRCode, "The payload is not one of AD, RD, TX and AS, or is damaged")
        }
        guard request.type == "PERFORM_QR_ACTION" || request.type == payload.workflow else {
            throw Failure(.invalidQRCode, "The payload is for \(payload.workflow)")
        }
        if case .transaction(let transaction) = payload, let token = request.tokenID, token != transaction.tokenID {
            throw Failure(.invalidTokenID, "The payload is for another token")
        }
        request.type = payload.workflow
        let signing = try Signing.read(arguments)
        if case .typedData(let data) = signing.content {
            let claims = payload.claims
            for claim in claims where claim.member == payload.addressesMember {
                guard data.mentions(claim.claim, among: claims.map(\.claim)) else {
                    throw Failure(
                        .invalidDataDefinition,
                        "typedData does not have the addresses of the payload, each as an address of its own"
                    )
                }
            }
        }
        var user = [JSON.Member("user_id", .string(request.userID))]
        if let token = request.tokenID { user.append(JSON.Member("token_id", .string(token))) }
        return SignData(
            entity: payload.entity(user),
            signing: signing,
            signedMembers: signing.signedMembers(of: payload)
        )
    }
}

extension AddSession {
    init(_ arguments: Arguments) throws(Failure) {
        let limit = try arguments.required("spendingLimit", "a text of 1 to 78 decimal digits") { value -> String? in
            guard let digits = value.string, (1...78).contains(digits.utf8.count),
                digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
            else { return nil }
            return digits
        }
        self.init(spendingLimit: limit, expirationTime: try arguments.number("expirationTime", 1...Int.max))
    }
}
