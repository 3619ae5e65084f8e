// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Why a workflow failed, in the names of the SDK. docs/protocol/eid.md, Failure reasons.
///
/// Reasons of the SDK that badged never sends are not here.
package enum FailureCode: String, Sendable {
    // MARK: Any workflow
    case userCancelled = "User_Cancelled"
    case cardRemoved = "Card_Removed"
    /// Not a reason of the SDK.
    case promptTimeout = "Prompt_Timeout"
    /// The client has lost the permission for the workflow.
    case accessDenied = "Access_Denied"

    // MARK: The TcToken
    case parseTcTokenInvalidURL = "Parse_TcToken_Invalid_Url"
    case parseTcTokenMissingURL = "Parse_TcToken_Missing_Url"
    case getTcTokenInvalidURL = "Get_TcToken_Invalid_Url"
    case getTcTokenInvalidRedirectURL = "Get_TcToken_Invalid_Redirect_Url"
    case getTcTokenInvalidCertificateKeyLength = "Get_TcToken_Invalid_Certificate_Key_Length"
    case getTcTokenInvalidEphemeralKeyLength = "Get_TcToken_Invalid_Ephemeral_Key_Length"
    case getTcTokenInvalidServerReply = "Get_TcToken_Invalid_Server_Reply"
    case getTcTokenServiceUnavailable = "Get_TcToken_ServiceUnavailable"
    case getTcTokenServerError = "Get_TcToken_Server_Error"
    case getTcTokenClientError = "Get_TcToken_Client_Error"
    case getTcTokenEmptyData = "Get_TcToken_Empty_Data"
    case getTcTokenInvalidData = "Get_TcToken_Invalid_Data"
    case getTcTokenNetworkError = "Get_TcToken_Network_Error"

    // MARK: The certificate description
    case certificateCheckFailedNoDescription = "Certificate_Check_Failed_No_Description"
    case certificateCheckFailedNoSubjectURLInDescription = "Certificate_Check_Failed_No_SubjectUrl_In_Description"
    case certificateCheckFailedHashMismatch = "Certificate_Check_Failed_Hash_Mismatch"
    case certificateCheckFailedSameOriginPolicyViolation = "Certificate_Check_Failed_Same_Origin_Policy_Violation"
    case certificateCheckFailedHashMissingInDescription = "Certificate_Check_Failed_Hash_Missing_In_Description"

    // MARK: The chain of the terminal certificate
    case preVerificationNoTestEnvironment = "Pre_Verification_No_Test_Environment"
    case preVerificationInvalidCertificateChain = "Pre_Verification_Invalid_Certificate_Chain"
    case preVerificationInvalidCertificateSignature = "Pre_Verification_Invalid_Certificate_Signature"
    case preVerificationCertificateExpired = "Pre_Verification_Certificate_Expired"

    // MARK: The certificates of EAC1
    case extractCVCsFromEAC1NoUniqueAT = "Extract_Cvcs_From_Eac1_No_Unique_At"
    case extractCVCsFromEAC1NoUniqueDV = "Extract_Cvcs_From_Eac1_No_Unique_Dv"
    case extractCVCsFromEAC1ATMissing = "Extract_Cvcs_From_Eac1_At_Missing"
    case extractCVCsFromEAC1DVMissing = "Extract_Cvcs_From_Eac1_Dv_Missing"

    // MARK: The card and its passwords
    case establishPACEChannelPUKInoperative = "Establish_Pace_Channel_Puk_Inoperative"
    case establishPACEChannelUserCancelled = "Establish_Pace_Channel_User_Cancelled"
    case maintainCardConnectionPACEUnrecoverable = "Maintain_Card_Connection_Pace_Unrecoverable"

    // MARK: Terminal and chip authentication
    case didAuthenticateEAC1CardCommandFailed = "Did_Authenticate_Eac1_Card_Command_Failed"
    case processCertificatesFromEAC2CVCChainMissing = "Process_Certificates_From_Eac2_Cvc_Chain_Missing"
    case didAuthenticateEAC2CardCommandFailed = "Did_Authenticate_Eac2_Card_Command_Failed"

    // MARK: PAOS
    case genericSendReceiveNetworkError = "Generic_Send_Receive_Network_Error"
    case genericSendReceiveTLSError = "Generic_Send_Receive_Tls_Error"
    case genericSendReceiveServerError = "Generic_Send_Receive_Server_Error"
    case genericSendReceiveServiceUnavailable = "Generic_Send_Receive_Service_Unavailable"
    case genericSendReceiveClientError = "Generic_Send_Receive_Client_Error"
    case genericSendReceivePAOSUnknown = "Generic_Send_Receive_Paos_Unknown"
    case genericSendReceivePAOSUnexpected = "Generic_Send_Receive_Paos_Unexpected"
    case genericSendReceiveInvalidEphemeralKeyLength = "Generic_Send_Receive_Invalid_Ephemeral_Key_Length"
    case genericSendReceiveCertificateError = "Generic_Send_Receive_Certificate_Error"
    case genericSendReceiveSessionResumptionFailed = "Generic_Send_Receive_Session_Resumption_Failed"
    case transmitCardCommandFailed = "Transmit_Card_Command_Failed"
    case startPAOSResponseError = "Start_Paos_Response_Error"

    // MARK: The refresh address
    case checkRefreshAddressFatalTLSErrorBeforeReply = "Check_Refresh_Address_Fatal_Tls_Error_Before_Reply"
    case checkRefreshAddressInvalidEphemeralKeyLength = "Check_Refresh_Address_Invalid_Ephemeral_Key_Length"
    case checkRefreshAddressServiceUnavailable = "Check_Refresh_Address_Service_Unavailable"
    case checkRefreshAddressServerError = "Check_Refresh_Address_Server_Error"
    case checkRefreshAddressClientError = "Check_Refresh_Address_Client_Error"
    case checkRefreshAddressServiceTimeout = "Check_Refresh_Address_Service_Timeout"
    case checkRefreshAddressProxyError = "Check_Refresh_Address_Proxy_Error"
    case checkRefreshAddressUnknownNetworkError = "Check_Refresh_Address_Unknown_Network_Error"
    case checkRefreshAddressInvalidHTTPResponse = "Check_Refresh_Address_Invalid_Http_Response"
    case checkRefreshAddressEmpty = "Check_Refresh_Address_Empty"
    case checkRefreshAddressInvalidURL = "Check_Refresh_Address_Invalid_Url"
    case checkRefreshAddressNoHTTPSScheme = "Check_Refresh_Address_No_Https_Scheme"
    case checkRefreshAddressFetchCertificateError = "Check_Refresh_Address_Fetch_Certificate_Error"
    case checkRefreshAddressUnsupportedCertificate = "Check_Refresh_Address_Unsupported_Certificate"
    case checkRefreshAddressHashMissingInCertificate = "Check_Refresh_Address_Hash_Missing_In_Certificate"
    case browserSendFailed = "Browser_Send_Failed"

    // MARK: RUN_CHANGE_PIN
    case changePINNoSetEIDPINCommandResponse = "Change_Pin_No_SetEidPinCommand_Response"
    case changePINInputTimeout = "Change_Pin_Input_Timeout"
    case changePINUserCancelled = "Change_Pin_User_Cancelled"
    case changePINNewPINMismatch = "Change_Pin_New_Pin_Mismatch"
    case changePINNewPINInvalidLength = "Change_Pin_New_Pin_Invalid_Length"
    case changePINUnexpectedTransmitStatus = "Change_Pin_Unexpected_Transmit_Status"
    case changePINUnrecoverable = "Change_Pin_Unrecoverable"

    /// Selects the reason for an unexpected HTTP status.
    static func httpStatus(
        _ status: Int,
        unavailable: FailureCode,
        serverError: FailureCode,
        clientError: FailureCode,
        other: FailureCode
    ) -> FailureCode {
        switch status {
        case 503: unavailable
        case 500...599: serverError
        case 400...499: clientError
        default: other
        }
    }
}

extension Failure {
    /// A workflow has failed with a reason of the SDK.
    package init(_ reason: FailureCode) { self.init(Code(reason.rawValue), Phrase(verbatim: reason.rawValue)) }

    /// The reason in the words of the SDK.
    package var reason: FailureCode { FailureCode(rawValue: code.rawValue) ?? .cardRemoved }
}
