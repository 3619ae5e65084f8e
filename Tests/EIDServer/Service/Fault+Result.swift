// SPDX-License-Identifier: GPL-3.0-or-later

extension Fault {
    /// What RUN_AUTH of badged ends with: `ok`, or the last word of the minor result and the reason.
    package var authenticationResult: String {
        switch self {
        case .tcToken404:
            "trustedChannelEstablishmentFailed Get_TcToken_Client_Error"
        case .tcToken500:
            "trustedChannelEstablishmentFailed Get_TcToken_Server_Error"
        case .tcTokenEmpty:
            "trustedChannelEstablishmentFailed Get_TcToken_Empty_Data"
        case .tcTokenHTML, .tcTokenMalformed, .tcTokenDoctype, .tcTokenEntities, .tcTokenExternalEntity,
            .tcTokenAttribute, .tcTokenBinding, .tcTokenPathProtocol, .tcTokenNoServerAddress,
            .tcTokenHTTPServerAddress, .tcTokenHTTPRefresh, .tcTokenNoSession, .tcTokenPSKOdd,
            .tcTokenNoRefresh, .tcTokenCommErrorOnly, .tcTokenHuge:
            "trustedChannelEstablishmentFailed Get_TcToken_Invalid_Data"
        case .tcTokenEmptyParameters, .tlsPSKWrong, .tlsPSKUnknown, .tlsExpired, .tlsFuture, .tlsWronghost,
            .tlsNoPSK, .tlsCiphers, .tlsV11, .tlsPlain:
            "trustedChannelEstablishmentFailed Generic_Send_Receive_Tls_Error"
        case .tcTokenRedirect, .tcTokenRedirectRelative, .tcTokenSlow, .startRelates, .startSlow, .eac2XYOnly,
            .eac2OtherAT, .eac2OldAT, .eac2Slow, .transmitSkip, .transmitSlow, .refreshOtherOrigin, .refreshOneHop,
            .refreshRelative:
            "ok"
        case .tcTokenRedirect301:
            "trustedChannelEstablishmentFailed Get_TcToken_Invalid_Server_Reply"
        case .tcTokenRedirectHTTP, .tcTokenRedirectLoop, .tcTokenRedirectEmpty, .tcTokenRedirectSchemeHTTP:
            "trustedChannelEstablishmentFailed Get_TcToken_Invalid_Redirect_Url"
        case .tcTokenDrip, .tcTokenClose, .tcTokenTruncate:
            "trustedChannelEstablishmentFailed Get_TcToken_Network_Error"
        case .tlsUnlisted, .eac1NoCommCerts:
            "trustedChannelEstablishmentFailed Certificate_Check_Failed_Hash_Missing_In_Description"
        case .tlsWeak:
            "trustedChannelEstablishmentFailed Generic_Send_Receive_Certificate_Error"
        case .tlsRefused, .tlsSilent, .startDrip, .startClose, .eac2Close, .transmitClose:
            "trustedChannelEstablishmentFailed Generic_Send_Receive_Network_Error"
        case .start500, .eac1500, .transmit500:
            "trustedChannelEstablishmentFailed Generic_Send_Receive_Server_Error"
        case .start404:
            "trustedChannelEstablishmentFailed Generic_Send_Receive_Client_Error"
        case .startEmpty, .startMalformed, .startEntities, .startHuge, .startDeep, .startUnknown,
            .startSOAPFault, .eac1TwoDescriptions, .eac1ChatGarbage, .eac1AuxGarbage, .eac1AuxUnknown,
            .eac2NoKey, .eac2TwoKeys, .eac2Unknown, .transmitGarbage, .transmitNone,
            .transmitMany, .finalMalformed, .finalUnknown:
            "internalError Generic_Send_Receive_Paos_Unknown"
        case .startWrongOrder, .eac2Skip, .transmitEndless:
            "internalError Generic_Send_Receive_Paos_Unexpected"
        case .startServerError, .eac2ServerError, .transmitMAC, .finalError:
            "internalError Start_Paos_Response_Error"
        case .eac1NoCerts, .eac1NoAT, .eac1IsTerminal, .eac1CertGarbage:
            "invalidCertificatePath Extract_Cvcs_From_Eac1_At_Missing"
        case .eac1TwoAT:
            "invalidCertificatePath Extract_Cvcs_From_Eac1_No_Unique_At"
        case .eac1NoDV:
            "invalidCertificatePath Extract_Cvcs_From_Eac1_Dv_Missing"
        case .eac1CertSignature, .eac1DVSignature, .eac1RogueRoot:
            "invalidCertificatePath Pre_Verification_Invalid_Certificate_Signature"
        case .eac1UnknownRoot:
            "invalidCertificatePath Pre_Verification_Invalid_Certificate_Chain"
        case .eac1ATExpired, .eac1ATFuture, .eac1DVExpired:
            "invalidCertificatePath Pre_Verification_Certificate_Expired"
        case .eac1NoDescription, .eac1DescriptionGarbage:
            "parameterError Certificate_Check_Failed_No_Description"
        case .eac1DescriptionHash:
            "parameterError Certificate_Check_Failed_Hash_Mismatch"
        case .eac1NoSubjectURL:
            "parameterError Certificate_Check_Failed_No_SubjectUrl_In_Description"
        case .eac1OtherSubjectURL:
            "parameterError Certificate_Check_Failed_Same_Origin_Policy_Violation"
        case .eac1ChatMore:
            "insufficientRights Start_Paos_Response_Error"
        case .eac2Signature, .eac2Challenge, .eac2OffCurve:
            "noPermission Did_Authenticate_Eac2_Card_Command_Failed"
        case .eac2NoLink:
            "internalError Process_Certificates_From_Eac2_Cvc_Chain_Missing"
        case .transmitPlain, .transmitStatus:
            "unknownError Transmit_Card_Command_Failed"
        case .refresh404:
            "communicationError Check_Refresh_Address_Client_Error"
        case .refreshEmpty:
            "communicationError Check_Refresh_Address_Empty"
        case .refresh200, .refreshLoop:
            "communicationError Check_Refresh_Address_Invalid_Http_Response"
        case .refreshHTTP:
            "communicationError Check_Refresh_Address_No_Https_Scheme"
        case .refreshUnlisted:
            "communicationError Check_Refresh_Address_Hash_Missing_In_Certificate"
        case .refreshRefused:
            "communicationError Check_Refresh_Address_Unknown_Network_Error"
        }
    }

    /// Whether the fault only shows with time: an answer that comes late, or never ends.
    package var isSlow: Bool { ["slow", "drip", "silent"].contains(kind) }
}
