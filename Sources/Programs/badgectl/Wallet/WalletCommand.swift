// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Text

/// `badgectl wallet`: sets up wallet cards, and signs with them.
enum WalletCommand {
    private static let actions = [
        CommandAction("status", "show the wallet cards in the readers", run: WalletStatus.run),
        CommandAction(
            "setup",
            "give a new card its PIN, PUK and keys, and show the words",
            options: [.words, .ownPuk, .duressPin, .passphrase],
            run: WalletFlows.setUp
        ),
        CommandAction(
            "words",
            "restore a card from its words",
            options: [.words, .ownPuk, .duressPin, .passphrase, .keyUid],
            run: WalletFlows.restore
        ),
        CommandAction("pin", "change the PIN", run: WalletFlows.changePIN),
        CommandAction("unblock", "set a new PIN with the PUK", run: WalletFlows.unblock),
        CommandAction(
            "sign",
            [ValueSpec("TEXT")],
            "sign a text; write signature and public key",
            options: [.account, .yes],
            run: WalletOperations.sign
        ),
        CommandAction(
            "transfer",
            [ValueSpec("FROM"), ValueSpec("TO"), ValueSpec("AMOUNT"), ValueSpec("MEMO", isOptional: true)],
            "send tokens, such as \"1.3100 EOS\"; write the transaction id",
            options: [.contract, .decimals, .permission, .yes],
            run: WalletOperations.transfer
        ),
        CommandAction(
            "contract",
            [.file],
            "send the actions in a JSON file; write the transaction id",
            options: [.account, .permission, .yes],
            run: WalletOperations.contract
        ),
        CommandAction(
            "prepare",
            "make a key for a pass; write the blob for the issuer",
            options: [.label],
            run: PassCommand.prepare
        ),
        CommandAction(
            "save",
            [ValueSpec("REFERENCE", .files)],
            "save a pass: the issuer's file, or the thumbprint of its key",
            options: [.label],
            run: PassCommand.save
        ),
        CommandAction("pair", "pair a card with this computer", run: WalletFlows.pair),
        CommandAction(
            "unpair",
            "forget the pairing with this computer, or with --others all other pairings",
            options: [.others],
            run: WalletFlows.unpair
        ),
        CommandAction(
            "reset-card",
            "destroy the PIN, PUK and keys of a card",
            options: [.keyUid, .yes],
            run: WalletFlows.reset
        ),
    ]

    static let spec = ShellCommand(
        name: "wallet",
        summary: "set up wallet cards (Keycard), and sign with them",
        actions: actions,
        others: ValueSpec("ARGUMENT"),
        common: [.reader, .timeout, .pinStdin, .pinentry],
        options: [
            OptionSpec(.words, ValueSpec("NUMBER", .words(["12", "15", "18", "21", "24"])), "how many words; 12"),
            OptionSpec(.ownPuk, "setup, words: ask for the PUK of a new card, do not draw one"),
            OptionSpec(.duressPin, "setup, words: ask for the duress PIN of a new card, do not draw one"),
            OptionSpec(.passphrase, "setup, words: ask for a passphrase that belongs to the words"),
            OptionSpec(.keyUid, ValueSpec("UID"), "the keys: those of the words, or those to destroy"),
            OptionSpec(.account, ValueSpec("NAME"), "sign, contract: the account that signs"),
            OptionSpec(.permission, ValueSpec("NAME"), "the permission of the account; active"),
            OptionSpec(.contract, ValueSpec("NAME"), "transfer: the contract of the token; eosio.token"),
            OptionSpec(.decimals, ValueSpec("NUMBER"), "transfer: extend AMOUNT to so many decimals"),
            OptionSpec(.label, ValueSpec("TEXT"), "prepare, save: the name of the pass"),
            OptionSpec(.others, "unpair: free the slots of all other computers, such as lost ones"),
            OptionSpec(.yes, "sign or destroy without a question"),
        ],
        details: [
            """
            setup shows the words of the new keys once, and asks for three of them. Then the card gets its keys. words asks
            for the words of a wallet and loads its keys into a new card. Words, PIN and PUK are on the terminal alone,
            also with --json, and the terminal does not show what you type.
            """,
            """
            The duress PIN opens another wallet of the same card, to give in to force; a card of version 3.0 has none. The
            passphrase is that of BIP-39, in ASCII: the words restore the keys only together with it.
            """,
            """
            sign, transfer and contract show what the card signs, as badged has decoded it, before they ask for the PIN.
            transfer and contract need a node of the chain: [wallet] in badged.conf(5). FILE has an array of actions, each
            with account, name and data; or an object with this array as actions.
            """,
            """
            prepare and save need no card: the key of a pass is in the store of badged, as that of badgectl keys.
            """,
            """
            reset-card needs no PIN. It asks you to type the key UID, which wallet status shows; --key-uid '' is a card
            without keys. A virtual reader gets a new virtual Keycard for setup and words, and keeps it for the other
            actions.
            """,
        ],
        examples: [
            Example("give a new card its PIN, PUK and keys", "badgectl wallet setup"),
            Example("sign a text", "badgectl wallet sign 'a text'"),
            Example("send tokens", "badgectl wallet transfer alice bob '1.3100 EOS' 'for lunch'"),
        ],
        card: "Keycard",
        virtualCard: { invocation in
            guard ["setup", "words"].contains(invocation.operand) else { return .keptCard("keycard") }
            return .object([.init("kind", .string("keycard")), .init("initialised", .bool(false))])
        }
    )
}
