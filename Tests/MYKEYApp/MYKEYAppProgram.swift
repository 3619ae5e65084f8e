// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedMYKEYWallet
import Dispatch
import Glibc

/// An app of the MYKEY SDK that asks on its terminal: `badged-mykey-app SOCKET` sends tokens and prints the end.
@main struct Program {
    @MainActor static func main() {
        let wallet = MYKEYWallet(socketPath: CommandLine.arguments.last)
        let initData = InitSimpleRequest()
        initData.dappName = "D"
        wallet.initWalletSimple(initSimpleData: initData)
        let request = TransferRequest()
        (request.from, request.to, request.amount, request.symbol) = ("alice", "bob", "1.3100", "EOS")
        let response = MYKEYResponse.init(
            success: { (response) in
                print("success", response)
                exit(0)
            },
            failure: { (errorValue) in
                print("failure", errorValue)
                exit(1)
            },
            cancelled: {
                print("cancelled")
                exit(2)
            }
        )
        wallet.transfer(transferRequest: request, response: response)
        dispatchMain()
    }
}
