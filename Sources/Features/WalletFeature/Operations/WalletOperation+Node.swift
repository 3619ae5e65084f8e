// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Concurrency
import HTTP
import Server
import Text

/// Questions to the node.
extension WalletOperation {
    func connect() throws(Failure) -> (node: AntelopeNode, session: HTTPSession) {
        guard let address = antelope.node else {
            throw Failure(
                operation: .failed,
                "No node is configured: set [wallet] node in badged.conf(5)",
                setting: "[wallet] node"
            )
        }
        let session = HTTPSession(antelope.network, antelope.nodeAuthorities, antelope.limits)
        return (AntelopeNode(address, antelope.chain, session, userAgent: antelope.userAgent), session)
    }

    /// The permissions of an account.
    func known(
        _ account: AccountName,
        _ node: AntelopeNode
    ) async throws(Failure) -> NodeAccount {
        try await asking(await node.account(account), about: "account \(account)")
    }

    func abi(of contract: AccountName, _ node: AntelopeNode) async throws(Failure) -> ABI {
        // A contract without a usable ABI cannot be called.
        try await asking(await node.abi(of: contract), about: "contract \(contract)", senseless: .badField)
    }

    /// Asks the node.
    ///
    /// If the client has named the `subject`, a refusal has the code `badField`. A malformed answer has the code
    /// `senseless`.
    func asking<T: Sendable>(
        _ answer: @autoclosure @Loop () async throws(NodeFailure) -> T,
        about subject: String? = nil,
        senseless: OperationCode = .failed
    ) async throws(Failure) -> T {
        do throws(NodeFailure) {
            return try await answer()
        } catch {
            if workflow.isCancelled { throw .cancelled }
            switch error {
            case .cancelled: throw .cancelled
            case .unreachable(let words), .noAnswer(let words):
                throw Failure(operation: .failed, "No answer from the chain: \(words)")
            case .refused(let refusal):
                if let subject { throw Failure(operation: .badField, "\(subject): \(refusal.text.quoted())") }
                throw Failure(operation: .failed, "The node refuses a request: \(refusal.text.quoted())")
            case .malformed(let words):
                throw Failure(
                    operation: senseless,
                    "The node does not follow its protocol, \(subject ?? "chain"): \(words)"
                )
            case .wrongChain(let chain):
                let words: Phrase =
                    "The node belongs to the chain \(chain), and not to \(antelope.chain) of [wallet] chain_id"
                throw Failure(operation: .failed, words)
            case .unusableABI(let words): throw Failure(operation: .badField, "\(subject ?? "contract"): \(words)")
            }
        }
    }
}
