// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Messages about wallet cards of a scripted badged. docs/protocol/wallet.md.
package enum PlayedWallet {
    package static let words = [
        "abandon", "ability", "able", "about", "above", "absent", "absorb", "abstract", "absurd", "abuse", "access",
        "accident",
    ]
    package static let keyUID = String(repeating: "0123456789abcdef", count: 4)
    package static let address = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"
    package static let digest = String(repeating: "d", count: 64)
    package static let chain = "aca376f206b8fc25a6ed44dbdc66547c36c6c33e3a119ffbeaef943642f0e906"
    package static let signature = "SIG_K1_abc"
    package static let publicKey = "PUB_K1_def"

    package static let reader =
        #""reader":{"attached":true,"card":{"initialised":true,"keyUID":null,"kind":"keycard","paired":true,"#
        + #""pinTries":3,"pukTries":5,"trusted":null,"version":"3.1"},"insertable":false,"keypad":false,"name":"R"}"#

    package static func context(_ type: String) -> String {
        #""workflowContext":{"workflowId":"1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed","workflowType":"\#(type)"}"#
    }

    package static func started(_ type: String) -> String {
        "{\"msg\":\"FLOW_STARTED\",\"userId\":\"u\",\(context(type))}"
    }

    package static func enter(_ kind: String, _ number: Int, left: Int? = nil, error: String? = nil) -> String {
        let tries = left.map { "\"retryCounter\":\($0)," } ?? ""
        let error = error.map { "\"error\":\"\($0)\"," } ?? ""
        return "{\(error)\"msg\":\"ENTER_\(kind)\",\"question\":\(number),\(tries)\"userId\":\"u\",\(reader)}"
    }

    package static func invalid(_ kind: String, left: Int) -> String {
        #"{"msg":"INVALID_\#(kind)","retryCounter":\#(left),"userId":"u"}"#
    }

    package static let validated = #"{"msg":"PIN_VALIDATED","userId":"u"}"#

    package static func paperWallet(_ number: Int) -> String {
        let list = words.map { "\"\($0)\"" }.joined(separator: ",")
        return #"{"mnemonics":[\#(list)],"msg":"SHOW_PAPER_WALLET","question":\#(number),"userId":"u"}"#
    }

    package static func enterWords(_ number: Int, _ wanted: String, error: String? = nil) -> String {
        let error = error.map { "\"error\":\"\($0)\"," } ?? ""
        return "{\(error)\"msg\":\"ENTER_WORDS\",\"question\":\(number),\(wanted),\"userId\":\"u\"}"
    }

    package static func showPUK(_ number: Int) -> String {
        #"{"msg":"SHOW_PUK","puk":"123456789012","question":\#(number),"userId":"u"}"#
    }

    package static func registerDevice(_ number: Int, error: String? = nil) -> String {
        let error = error.map { "\"error\":\"\($0)\"," } ?? ""
        return #"{"apiParams":{"address":"\#(address)","api_signer_address":"0x1","status":"CREATED","#
            + #""updated_timestamp":1795000000},\#(error)"msg":"REGISTER_DEVICE","question":\#(number),"userId":"u"}"#
    }

    package static let device =
        #""contextEntity":{"entity":{"address":"\#(address)","api_signer_address":"0x1","created":true,"#
        + #""keyUID":"\#(keyUID)","status":"REGISTERED","user_id":"u"},"entityType":"device"}"#

    package static let card =
        #""contextEntity":{"entity":{"initialised":true,"version":"3.1"},"entityType":"card"}"#

    package static func acknowledged(_ type: String) -> String {
        "{\"msg\":\"REQUEST_ACKNOWLEDGED\",\(context(type)),\(device)}"
    }

    package static func complete(_ type: String, _ entity: String = device) -> String {
        "{\"msg\":\"FLOW_COMPLETE\",\(context(type)),\(entity)}"
    }

    package static func interrupted(_ type: String, _ code: String, _ message: String = "It failed.") -> String {
        #"{"error":{"code":"\#(code)","internalCode":"SIGN 6F00","message":"\#(message)"},"msg":"FLOW_INTERRUPTED","#
            + "\(context(type))}"
    }

    package static func verifyData(_ number: Int) -> String {
        "{\"msg\":\"VERIFY_DATA\",\"question\":\(number),\(context("REVOKE_DEVICE")),"
            + #""contextEntity":{"entity":{"address":"0x2"},"entityType":"device"},"#
            + #""signing":{"digest":"\#(digest)","message":"revoke 0x2","standard":"EIP-191"}}"#
    }

    // MARK: Accounts

    package static func ready(_ account: String? = nil) -> String {
        let account = account.map { "\"\($0)\"" } ?? "null"
        return
            #"{"account":\#(account),"chainId":"\#(chain)","dappName":"D","mode":"MYKEYSimple","msg":"WALLET_READY","#
            + #""node":true,"publicKey":null}"#
    }

    package static func operationStarted(_ operation: String) -> String {
        #"{"msg":"WALLET_STARTED","operation":"\#(operation)"}"#
    }

    /// `memo` is as it stands in JSON.
    package static func request(_ number: Int, error: String? = nil, memo: String = #"\u001b[2Jhi"#) -> String {
        let error = error.map { "\"error\":\"\($0)\"," } ?? ""
        return
            #"{"account":"alice","actions":[{"account":"eosio.token","authorization":[{"actor":"alice","permission":"active"}],"#
            + #""data":{"from":"alice","to":"bob","quantity":"1.3100 EOS","memo":"\#(memo)"},"info":null,"name":"transfer"}],"#
            + #""callback":null,"chainId":"\#(chain)","dapp":{"icon":null,"name":"D"},"digest":"\#(digest)",\#(error)"#
            + #""expiration":"2026-11-22T17:30:00","info":"an order","msg":"WALLET_REQUEST","operation":"transfer","#
            + #""permission":"active","question":\#(number),"text":null,"userName":null}"#
    }

    package static func signRequest(_ number: Int) -> String {
        #"{"account":null,"actions":[],"callback":null,"chainId":null,"dapp":{"icon":null,"name":"D"},"#
            + #""digest":"\#(digest)","expiration":null,"info":null,"msg":"WALLET_REQUEST","operation":"sign","#
            + #""permission":null,"question":\#(number),"text":"hello","userName":null}"#
    }

    package static func result(_ operation: String, _ code: Int, _ more: String = "") -> String {
        #"{"account":"alice","code":\#(code),"message":"Message \#(code).","msg":"WALLET_RESULT","#
            + #""operation":"\#(operation)","publicKey":"\#(publicKey)"\#(more)}"#
    }
}

extension ScriptedPeer.Connection {
    /// Sends a question, and waits for the command that answers it with this number.
    @discardableResult
    package func prompt(_ message: String, _ command: String) -> JSON? {
        send(message)
        return self.command(command)
    }

    /// Plays a workflow that ends when the client cancels a question.
    package func playCancelled(_ type: String, at question: String) {
        command("RUN_WALLET")
        prompt(question, "CANCEL")
        send(PlayedWallet.interrupted(type, "USER_CANCELED"))
    }

    /// Plays RESET_PIN, where two PINs and one PUK are wrong. The second PUK has this number of tries.
    package func playResetPIN(lastTries: Int) {
        command("RUN_WALLET")
        send(PlayedWallet.started("RESET_PIN"))
        prompt(PlayedWallet.enter("PIN", 1, left: 2), "SET_PIN")
        send(PlayedWallet.invalid("PIN", left: 1))
        prompt(PlayedWallet.enter("PIN", 2, left: 1), "SET_PIN")
        send(PlayedWallet.invalid("PIN", left: 0))
        prompt(PlayedWallet.enter("PUK", 3, left: 5), "SET_PUK")
        prompt(PlayedWallet.enter("NEW_PIN", 4), "SET_NEW_PIN")
        send(PlayedWallet.invalid("PUK", left: lastTries))
        prompt(PlayedWallet.enter("PUK", 5, left: lastTries), "SET_PUK")
        prompt(PlayedWallet.enter("NEW_PIN", 6), "SET_NEW_PIN")
        send(PlayedWallet.validated)
        send(PlayedWallet.complete("RESET_PIN", PlayedWallet.card))
    }

    /// Plays SETUP_DEVICE with a new card, with a PUK that badged draws.
    package func playSetup() {
        let type = "SETUP_DEVICE"
        command("RUN_WALLET")
        send(PlayedWallet.started(type))
        prompt(PlayedWallet.enter("NEW_PIN", 1), "SET_NEW_PIN")
        prompt(PlayedWallet.showPUK(2), "ACCEPT")
        send(PlayedWallet.validated)
        prompt(PlayedWallet.paperWallet(3), "ACCEPT")
        prompt(PlayedWallet.enterWords(4, #""positions":[3,7,11]"#), "SET_WORDS")
        prompt(PlayedWallet.registerDevice(5), "DEVICE_REGISTERED")
        send(PlayedWallet.acknowledged(type))
        send(PlayedWallet.complete(type))
    }
}
