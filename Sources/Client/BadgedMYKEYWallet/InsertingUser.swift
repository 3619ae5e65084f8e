// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Secrets

/// The user of the app, for whom the library inserts a virtual card.
struct InsertingUser: WalletUser {
    private let user: any WalletUser
    private let insertion: VirtualInsertion?

    init(_ user: any WalletUser, _ connection: DaemonConnection, _ insertion: VirtualInsertion?) {
        (self.user, self.insertion) = (user, insertion)
        insertion?.use(connection)
    }

    func insertCard(error: String?, reader: String?) async {
        await user.insertCard(error: error, reader: reader)
        if error == nil { await insertion?.insert() }
    }

    func agree(to request: WalletRequest) async -> Bool { await user.agree(to: request) }
    func answer(_ question: SecretQuestion) async -> SecretBox? { await user.answer(question) }
    func typeOnKeypad(_ question: SecretQuestion) async -> Bool { await user.typeOnKeypad(question) }
    func repositionCard() async -> Bool { await user.repositionCard() }
    func cardLeft(reader: String) async { await user.cardLeft(reader: reader) }
    func progress(_ percent: Int) async { await user.progress(percent) }
    func other(_ event: Event) async { await user.other(event) }
}
