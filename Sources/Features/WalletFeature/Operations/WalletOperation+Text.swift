// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Crypto
import HTTP
import Server
import Store
import Text

/// AUTHORIZE and SIGN: the card signs a text, and the server of the dapp gets the signature.
extension WalletOperation {
    func authorize() async throws(Failure) -> WalletResultMessage {
        guard let account else { throw request.missingAccount }
        let permission = try permission
        // The binding that is kept at the end.
        if bindingKey != nil { _ = try await services.store.required() }
        let node = try connect()
        defer { node.session.close() }
        _ = try await asking(await node.node.info())
        let known = try await self.known(account, node.node)
        try check(permission, of: known)
        let (uuid, timestamp) = (request.dapp.uuid, antelope.time())
        let text = "\(timestamp)\(account)\(uuid)\(Self.reference)"
        let shown = try shown(text: text, chain: antelope.chain, permission: permission)
        let signature = try await signature(shown, permission, known)
        let number = "\(timestamp)"
        let isSimpleWallet = request.dapp.mode == .simpleWallet
        var body = [
            JSON.Member("protocol", .string(request.dapp.mode.rawValue)), JSON.Member("version", .string("1.0")),
        ]
        if !isSimpleWallet {
            body.append(JSON.Member("dapp_key", request.dapp.appKey.map { .string($0) } ?? .null))
        }
        body += [
            JSON.Member("uuID", .string(uuid)),
            JSON.Member("public_key", .string(publicKey?.legacy ?? "")),
            JSON.Member("sign", .string(signature.text.description)),
            JSON.Member("ref", .string(Self.reference)),
            JSON.Member("timestamp", isSimpleWallet ? .number(number) : .string(number)),
            JSON.Member("account", .string("\(account)")),
        ]
        try await deliver(body)
        if let bindingKey {
            let new = Bindings.Binding(
                account: account,
                permission: permission,
                keyUID: keyUID,
                publicKey: publicKey?.description ?? ""
            )
            do throws(Failure) {
                try await bindings.bind(bindingKey, to: new)
            } catch {
                var failure = error
                if request.callback != nil { failure.change = "The server of the callback has accepted the signature" }
                throw failure
            }
        }
        return done("\(account) is authorized", signature)
    }

    func sign(_ message: String) async throws(Failure) -> WalletResultMessage {
        let signature = try await signature(try shown(text: message, chain: nil, permission: nil), nil, nil)
        try await deliver([
            JSON.Member("protocol", .string(request.dapp.mode.rawValue)),
            JSON.Member("version", .string("1.0")),
            JSON.Member("message", .string(message)),
            JSON.Member("sign", .string(signature.text.description)),
            JSON.Member("ref", .string(Self.reference)),
            JSON.Member("account", account.map { .string("\($0)") } ?? .null),
        ])
        return done("The message is signed", signature)
    }

    private func shown(
        text: String,
        chain: ChainID?,
        permission: AccountName?
    ) throws(Failure) -> ShownRequest {
        let digest = try cryptography(DigestAlgorithm.sha256.hash(Array(text.utf8)))
        return shown(text: text, chain: chain, permission: permission, digest: digest)
    }
}
