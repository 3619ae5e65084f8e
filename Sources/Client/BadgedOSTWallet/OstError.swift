// SPDX-License-Identifier: Apache-2.0
import BadgedClient

/// Why a workflow was interrupted, or why the app cancels it.
public final class OstError: Error, Sendable, CustomStringConvertible {
    /// For reports of faults: the step at which the card has failed. Empty in other cases.
    public let internalCode: String
    public let messageTextCode: OstErrorCodes.OstErrorCode
    /// What has happened and what to do, in English.
    public let errorMessage: String
    /// The error of badged, such as `CARD_BLOCKED`. It says more where `messageTextCode` is `unknown`.
    public let errorCode: String

    public init(_ code: String, _ messageTextCode: OstErrorCodes.OstErrorCode, message: String? = nil) {
        internalCode = code
        self.messageTextCode = messageTextCode
        errorCode = messageTextCode.text
        errorMessage = message ?? messageTextCode.text
    }

    public convenience init(internalCode: String, errorCode: OstErrorCodes.OstErrorCode) {
        self.init(internalCode, errorCode)
    }

    init(_ error: FlowError) {
        internalCode = error.internalCode
        errorCode = error.code
        errorMessage = error.message
        messageTextCode = OstErrorCodes.OstErrorCode(text: error.code)
    }

    /// badged cannot be reached, or has refused the workflow.
    convenience init(_ error: ClientError) {
        self.init("", .sdkError, message: "\(error.text); \(error.advice)")
    }

    public func getMessageTextCode() -> String { errorCode }

    /// Always false: badged does not contact the platform of OST.
    public var isApiError: Bool { false }

    public var description: String { errorMessage }
}

public enum OstErrorCodes {
    public enum OstErrorCode: String, Sendable, CaseIterable {
        case userAlreadyActivated, userNotActivated, deviceNotSet, deviceNotAuthorized, wrongDeviceAddress
        case accessControlFailed, unableToGetPublicKey, encryptFail, decryptFail, keychainDeleteItemFail
        case keychainAddItemFail, generatePrivateKeyFail, noPrivateKeyFound, mnemonicsNotStored, mnemonicsNotFound
        case scryptKeyGenerationFailed, seedCreationFailed, walletGenerationFailed, signTxFailed, signatureFailed
        case apiAddressNotFound, apiEndpointNotFound, userEntityNotFound, entityNotAvailable, invalidAPIResponse
        case unableToGetSalt, unableToChainInformation, deviceNotRegistered, deviceAlreadyRegistered
        case deviceManagerNotFound, userActivationFailed, paperWalletNotFound, recoveryOwnerAddressNotFound
        case recoveryOwnerAddressCreationFailed, linkedAddressNotFound, invalidRecoveryAddress, invalidUserId
        case invalidTokenId, signatureGenerationFailed, abiEncodeFailed, qrCodeGenerationFailed
        case qrCodeImageGenerationFailed, functionNotFoundInABI, invalidSolidityTypeInt, invalidSolidityTypeAddress
        case invalidJsonObjectIdentifier, jsonConversionFailed, addDeviceFlowCancelled, objectCreationFailed
        case invalidId, unexpectedState, toAddressNotFound, signerAddressNotFound, dbExecutionFailed
        case invalidEntityType, invalidQRCode, invalidAddressToTransfer, sessionNotAuthorizing
        case maxUserValidatedCountReached, recoveryPinNotFoundInKeyManager, rulesNotFound, invalidAmount
        case sessionNotFound, callDataFormationFailed, transactionFailed, resetPinFailed
        case failedFetchRecoveryOwnerAddress, pricePointNotFound, invalidPricePoint, invalidNumber
        case invalidExpirationTimeStamp, requestTimedOut, failedToProcess, samePin, conversionFactorNotFound
        case btDecimalNotFound, keyNotFound, insufficientData, invalidSpendingLimit, unknown
        case solidityTypeNotSupported, invalidApiEndPoint, apiSignatureGenerationFailed, sessionApiFailed
        case pinValidationFailed, invalidMnemonics, invalidWorkflow, invalidJsonString, invalidJsonArray, sdkError
        case apiResponseError, userCanceled, invalidAddDeviceAddress, invalidRecoverDeviceAddress
        case invalidRevokeDeviceAddress, deviceCanNotBeAuthorized, invalidUserPassphrase, invalidNewUserPassphrase
        case invalidPassphrasePrefix, saltApiFailed, noPendingRecovery, invaldApiSignerAddress, invalidSignature
        case invalidBlockGenerationTime, invalidPinMaxRetryCount, invalidPricePointCurrencySymbol
        case invalidRequestTimeoutDuration, invalidSessionBufferTime, invalidNoOfSessionsOnActivateUser
        case userNotActivating, deviceNotRecovering, deviceNotRevoking, deviceNotAuthorizing, invalidUser
        case userNotFound, processSameDevice, invalidPayload, tokenNotFound, deviceAuthorized, differentOwnerDevice
        case qrReadFailed, unexpectedError, recoveryAddressNotFound, invalidDataDefination, tempMessageTextCode
        // The SDK does not have these.
        case unsupportedWorkflow, invalidData, tooManyWorkflows, wrongWallet, cardBlocked, pinNotBlocked, foreignCard
        case noFreePairingSlot, notPaired, unsupportedCard, storeUnavailable, cardLost, cardFailed

        private static let byText = Dictionary(allCases.map { ($0.text, $0) }) { first, _ in first }

        /// Reads a code of badged; `unknown` for a code that this library does not know.
        init(text: String) { self = Self.byText[text] ?? .unknown }

        /// The name as badged writes it: `invalidQRCode` is `INVALID_Q_R_CODE`.
        public var text: String {
            rawValue.reduce(into: "") { $0 += ($1.isUppercase ? "_" : "") + $1.uppercased() }
        }
    }
}
