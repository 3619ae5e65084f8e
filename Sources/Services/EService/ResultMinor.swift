// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The kind of an error, as a URI. TR-03112-1, 4.2.
package struct ResultMinor: Sendable, Hashable {
    /// The whole URI, as eID-Servers and clients see it.
    package let uri: String

    package init(uri: String) { self.uri = uri }

    private init(_ suffix: String) { uri = Self.prefix + suffix }

    private static let prefix = "http://www.bsi.bund.de/ecard/api/1.1/resultminor"

    package static let unknownError = ResultMinor("/al/common#unknownError")
    package static let noPermission = ResultMinor("/al/common#noPermission")
    package static let internalError = ResultMinor("/al/common#internalError")
    package static let parameterError = ResultMinor("/al/common#parameterError")
    package static let communicationError = ResultMinor("/al/common#communicationError")
    package static let trustedChannelEstablishmentFailed = ResultMinor("/dp#trustedChannelEstablishmentFailed")
    package static let invalidCertificatePath = ResultMinor("/il/signature#invalidCertificatePath")
    package static let inputTimeout = ResultMinor("/ifdl/common#timeoutError")
    package static let cancellationByUser = ResultMinor("/sal#cancellationByUser")

    /// Says in one English sentence what the code means.
    package var description: String {
        let words = uri.hasPrefix(Self.prefix) ? Self.words[String(uri.dropFirst(Self.prefix.count))] : nil
        return words ?? "The server reported an error of an unknown kind."
    }

    /// The words for every code of TR-03112-1, 4.2, and for the codes of EAC in TR-03112-7. Spellings that AusweisApp
    /// and eID-Servers use instead of those of the guideline have words, too.
    private static let words = [
        // TR-03112-1, 4.2.1: application layer
        "/al/CardInfo#addNotPossible": "The CardInfo file cannot be added.",
        "/al/CardInfo#notExisting": "The CardInfo file does not exist.",
        "/al/CardInfo#deleteNotPossible": "The CardInfo file cannot be deleted.",
        "/al/CardInfo#alreadyExisting": "The CardInfo file exists already.",
        "/al/CardInfo#incorrectFile": "The CardInfo file is not correct.",
        "/al/common#unknownError": "An unexpected error occurred.",
        "/al/common#noPermission": "The card did not permit the operation.",
        "/al/common#internalError": "The dialogue between card, program and server failed.",
        "/al/common#parameterError": "The service is not set up correctly.",
        "/al/common#incorrectParameter": "A parameter is missing or not correct.",
        "/al/common#communicationError": "The connection to the service failed.",
        "/al/common#unknownAPIFunction": "The function is not known.",
        "/al/common#notInitialized": "The framework is not initialized.",
        "/al/common#warningConnectionDisconnected": "The connection was closed.",
        "/al/common#SessionTerminatedWarning": "The session was ended.",
        "/al/FrameworkUpdate#serviceNotAvailable": "The update service is not available.",
        "/al/FrameworkUpdate#unknownModule": "The module to be updated is not known.",
        "/al/FrameworkUpdate#invalidVersionNumber": "The version number of the module is not valid.",
        "/al/FrameworkUpdate#operationSystemNotSupported": "The operating system is not supported.",
        "/al/FrameworkUpdate#noSpaceAvailable": "There is no space left for the update.",
        "/al/FrameworkUpdate#securityConditionsNotSatisfied": "The access was denied.",
        "/al/IFD#writeConfigurationNotPossible": "The configuration of the card reader cannot be written.",
        "/al/IFD#couldNotAdd": "The card reader cannot be added.",
        "/al/IFD#deleteNotPossible": "The card reader cannot be deleted.",
        "/al/IFD#addNotPossible": "The card reader exists already.",
        "/al/TrustedViewer#deleteNotPossible": "The trusted viewer cannot be deleted.",
        "/al/TrustedViewer#invalidID": "The identifier of the trusted viewer is not valid.",
        "/al/TrustedViewer#invalidConfiguration": "The configuration of the trusted viewer is not valid.",
        "/al/TrustedViewer#alreadyExisting": "A trusted viewer with this identifier exists already.",
        "/al/TSL#TSLSequenceNumberIgnoredWarning": "The sequence number of the trust service list was ignored.",

        // 4.2.2: dispatcher
        "/dp#timeout": "The time for the request is over.",
        "/dp#timeoutError": "The time for the request is over.",
        "/dp#unknownChannelHandle": "The channel is not known.",
        "/dp#invalidChannelHandle": "The channel is not valid.",
        "/dp#communicationError": "The communication failed.",
        "/dp#communicationFailure": "The communication failed.",
        "/dp#trustedChannelEstablishmentFailed": "A trusted channel to the service could not be opened.",
        "/dp#unknownProtocol": "The protocol is not known.",
        "/dp#unknownCipherSuite": "The cipher suite is not known.",
        "/dp#unknownWebserviceBinding": "The binding of the web service is not known.",
        "/dp#nodeNotReachable": "The server could not be reached.",

        // 4.2.3: identity layer
        "/il/algorithm#hashAlgorithmNotSupported": "The hash algorithm is not supported.",
        "/il/algorithm#signatureAlgorithmNotSupported": "The signature algorithm is not supported.",
        "/il/certificateRequest#unknownAttribute": "The certificate request has an unknown attribute.",
        "/il/certificateRequest#creationOfCertificateRequestFailed": "The certificate request could not be made.",
        "/il/certificateRequest#submissionFailed": "The certificate request could not be submitted.",
        "/il/certificateRequest#unknownTransactionID": "The transaction is not known.",
        "/il/certificateRequest#certificateDownloadFailed": "The certificate could not be fetched.",
        "/il/certificateRequest#subjectMissing": "The certificate request names no subject.",
        "/il/encryption#encryptionOfCertainNodesOnlyForXMLDocuments":
            "Single nodes can be encrypted in XML documents only.",
        "/il/encryption#encryptionFormatNotSupported": "The encryption format is not supported.",
        "/il/encryption#invalidCertificate": "The encryption certificate of a recipient is not valid.",
        "/il/key#keyGenerationNotPossible": "The key cannot be generated.",
        "/il/key#encryptionAlgorithmNotSupported": "The encryption algorithm is not supported.",
        "/il/service#ocspResponderUnreachable": "The OCSP responder could not be reached.",
        "/il/service#directoryServiceUnreachable": "The directory service could not be reached.",
        "/il/service#timeStampServiceUnreachable": "The time stamp service could not be reached.",
        "/il/signature#signatureFormatNotSupported": "The signature format is not supported.",
        "/il/signature#PDFSignatureForNonPDFDocument": "A PDF signature was requested for another document.",
        "/il/signature#unableToIncludeEContentWarning": "The signed content cannot be included.",
        "/il/signature#ignoredSignaturePlacementFlagWarning": "The placement of the signature was ignored.",
        "/il/signature#certificateNotFound": "The certificate was not found.",
        "/il/signature#certificateFormatNotCorrect": "The certificate cannot be read.",
        "/il/signature#invalidCertificateReference": "The reference to the certificate is not valid.",
        "/il/signature#certificateChainInterrupted": "The certificate chain is not complete.",
        "/il/signature#resolutionOfObjectReferenceImpossible": "The reference to the object cannot be resolved.",
        "/il/signature#transformationAlgorithmNotSupported": "The transformation algorithm is not supported.",
        "/il/signature#unknownViewer": "The trusted viewer is not known or not available.",
        "/il/signature#certificatePathNotValidated": "The certificate path was not checked.",
        "/il/signature#certificateStatusNotChecked": "The status of the certificate was not checked.",
        "/il/signature#signatureManifestNotCheckedWarning": "The signature manifest was not checked.",
        "/il/signature#suitabilityOfAlgorithmsNotChecked": "The algorithms of the signature were not checked.",
        "/il/signature#detachedSignatureWithoutEContent": "The data of the detached signature are missing.",
        "/il/signature#improperRevocationInformation": "The revocation information cannot be read.",
        "/il/signature#invalidSignatureFormat": "The format of the signature is not correct.",
        "/il/signature#signatureAlgorithmNotSuitable": "The signature algorithm was not secure enough at that time.",
        "/il/signature#hashAlgorithmNotSuitable": "The hash algorithm was not secure enough at that time.",
        "/il/signature#invalidCertificatePath": "The certificates of the service are not valid.",
        "/il/signature#certificateRevoked": "The certificate is revoked.",
        "/il/signature#referenceTimeNotWithinCertificateValidityPeriod": "The certificate was not valid at that time.",
        "/il/signature#invalidCertificateExtension": "A certificate has an extension that is not valid.",
        "/il/signature#signatureManifestNotCorrect": "The signature manifest is not correct.",
        "/il/signature#signatureTypeDoesNotSupportSignatureFormClarificationWarning":
            "The signature type has no parameter for the signature form.",
        "/il/signature#unknownSignatureForm": "The signature form is not known.",
        "/il/signature#includeObjectOnlyForXMLSignatureAllowedWarning":
            "Objects can be included in XML signatures only.",
        "/il/signature#xPathEvaluationError": "The XPath expression cannot be resolved.",
        "/il/signature#wrongMessageDigest": "The message digest is wrong.",
        "/il/signature#IFDInconsistency": "The card reader is not compatible.",
        "/il/viewer#unsuitableStylesheetForDocument": "The style sheet does not suit the document.",
        "/il/viewer#cancellationByUser": "The operation was cancelled in the trusted viewer.",
        "/il/viewer#timeout": "The time for the trusted viewer is over.",
        "/il/viewer#viewerMessageTooLong": "The message for the trusted viewer is too long.",

        // 4.2.4: service access layer; its protocol EAC: TR-03112-7, 3.6
        "/sal/support#encodingError": "The data cannot be encoded.",
        "/sal/support#decodingError": "The data cannot be decoded.",
        "/sal/support#schemaValidationError": "The data do not match their schema.",
        "/sal/support#schemaValidationWarning": "There was a warning when the data were compared with their schema.",
        "/sal/support#noAppropriateSchema": "There is no schema for the data.",
        "/sal/support#cardInfoRepositoryUnreachable": "The CardInfo repository could not be reached.",
        "/sal#cancellationByUser": "The operation was cancelled.",
        "/sal#nameExists": "The name exists already.",
        "/sal#prerequisitesNotSatisfied": "A prerequisite is not met.",
        "/sal#protocolNotRecognized": "The protocol is not known.",
        "/sal#inappropriateProtocolForAction": "The protocol does not suit the action.",
        "/sal#invalidSignature": "The signature is not valid.",
        "/sal#invalidKey": "The key is not valid.",
        "/sal#notInitialized": "The operation is not initialized.",
        "/sal#tooManyResults": "There are too many results.",
        "/sal#warningConnectionDisconnected": "The connection was closed.",
        "/sal#warningSessionEnded": "The session was ended.",
        "/sal#namedEntityNotFound": "The name does not exist.",
        "/sal#insufficientResources": "The resources are not sufficient.",
        "/sal#insufficientRights": "The service did not get all rights that it requires.",
        "/sal#securityConditionNotSatisfied": "The access was denied.",
        "/sal#securityConditionsNotSatisfied": "The access was denied.",
        "/sal#exclusiveNotAvailable": "The card cannot be reserved: another program uses it.",
        "/sal#noActiveSession": "There is no active session.",
        "/sal#decryptionNotPossible": "There is no key for the decryption.",
        "/sal#invalidAccessControlInformation": "The access control information is not valid.",
        "/sal#unknownProtocol": "The protocol is not known.",
        "/sal#unknownCardType": "The card type is not known.",
        "/sal#unknownDIDName": "The DID name is not known.",
        "/sal#fileNotFound": "The file was not found.",
        "/sal/mEAC#AgeVerificationFailedWarning": "The holder of the card does not have the required age.",
        "/sal/mEAC#CommunityVerificationFailedWarning": "The holder of the card does not live in the required place.",
        "/sal/mEAC#DocumentValidityVerificationFailed": "The card is not valid.",

        // 4.2.5: terminal layer
        "/ifdl#cancellationByUser": "The operation was cancelled.",
        "/ifdl/common#timeoutError": "Nothing was entered in time.",
        "/ifdl/common#invalidContextHandle": "The context of the card reader is not known.",
        "/ifdl/common#cancellationByUser": "The operation was cancelled.",
        "/ifdl/common#unknownSessionIdentifier": "The session is not known.",
        "/ifdl/common#invalidSlotHandle": "The slot of the card reader is not known.",
        "/ifdl/IO#unknownInputUnit": "The input unit of the card reader is not known.",
        "/ifdl/IO#unknownDisplayIndex": "The display of the card reader is not known.",
        "/ifdl/IO#cancelNotPossible": "The command cannot be cancelled.",
        "/ifdl/IO#noTransactionStarted": "No transaction with the card was started.",
        "/ifdl/IO#repeatedDataMismatch": "The new PIN was repeated differently.",
        "/ifdl/IO#unknownPINFormat": "The format of the PIN is not known.",
        "/ifdl/IO#unknownOutputDevice": "The output device is not known.",
        "/ifdl/IO#unknownBiometricSubtype": "The biometric subtype is not known.",
        "/ifdl/terminal#unknownIFD": "The card reader does not exist.",
        "/ifdl/terminal#noCard": "There is no card.",
        "/ifdl/terminal#IFDSharingViolation": "Another program uses the card.",
        "/ifdl/terminal#IFDSharingVolation": "Another program uses the card.",
        "/ifdl/terminal#unknownAction": "The action is not known.",
        "/ifdl/terminal#unknownSlot": "The slot of the card reader is not known.",
        "/ifdl/terminal#accessError": "The card reader could not be used.",
    ]
}

/// The `Result` of an eCard-API message. TR-03112-1, 4.1.
package struct ECardResult: Sendable, Equatable {
    package enum Major: String, Sendable, CaseIterable {
        case ok = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#ok"
        case warning = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#warning"
        case error = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#error"
    }

    /// Who found the error. The refresh address gets clientError or serverError accordingly.
    package enum Origin: Sendable {
        case client, server
    }

    package let major: Major
    package let minor: ResultMinor?
    /// A text for a person; in English, unless it comes from a server.
    package let message: Phrase?
    /// What is wrong with badged-network.
    package let network: FailureStatus.NetworkFault?
    package let origin: Origin

    package init(
        _ major: Major,
        _ minor: ResultMinor? = nil,
        message: Phrase? = nil,
        network: FailureStatus.NetworkFault? = nil,
        origin: Origin = .client
    ) {
        self.major = major
        self.minor = minor
        self.message = message
        self.network = network
        self.origin = origin
    }

    /// Makes the error result for a status.
    package init(_ status: FailureStatus) {
        self.init(.error, status.minor, message: status.message, network: status.network)
    }

    package static let ok = ECardResult(.ok)

    /// False for a warning.
    package var isError: Bool { major == .error }
}
