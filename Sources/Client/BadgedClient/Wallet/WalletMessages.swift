// SPDX-License-Identifier: Apache-2.0

/// The messages of wallet cards.
let walletMessages: [any NamedMessage.Type] = [
    FlowMessage.self, PINValidated.self, InvalidValue.self, DeviceRegistration.self, DataToVerify.self,
    PaperWallet.self, WordsQuestion.self, NewPUK.self, SessionKey.self, RequestAcknowledged.self,
    WalletReady.self, WalletUnbound.self, WalletRequest.self, WalletOperationMessage.self,
]
