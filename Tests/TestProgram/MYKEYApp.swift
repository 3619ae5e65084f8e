// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedMYKEYWallet
import Dispatch
import Glibc

/// An app of the MYKEY SDK that asks on its terminal: `mykey-app SOCKET` sends tokens and prints the end.
@MainActor enum MYKEYApp {
    static func run(socket: String?) -> Never {
        let wallet = MYKEYWallet(socketPath: socket)
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
