// SPDX-License-Identifier: GPL-3.0-or-later

/// Why a workflow failed, by the SDK's names. docs/protocol.md, Failure reasons.
package enum FailureCode: String, Error, Sendable, CaseIterable {
    case userCancelled = "User_Cancelled"
    case connectCardConnectionFailed = "Connect_Card_Connection_Failed"
    case establishPACEChannelPUKInoperative = "Establish_Pace_Channel_Puk_Inoperative"
    case establishPACEChannelUserCancelled = "Establish_Pace_Channel_User_Cancelled"
    case maintainCardConnectionPACEUnrecoverable = "Maintain_Card_Connection_Pace_Unrecoverable"
    case changePINNoSetEIDPINCommandResponse = "Change_Pin_No_SetEidPinCommand_Response"
    case changePINInputTimeout = "Change_Pin_Input_Timeout"
    case changePINUserCancelled = "Change_Pin_User_Cancelled"
    case changePINNewPINMismatch = "Change_Pin_New_Pin_Mismatch"
    case changePINNewPINInvalidLength = "Change_Pin_New_Pin_Invalid_Length"
    case changePINUnexpectedTransmitStatus = "Change_Pin_Unexpected_Transmit_Status"
    case changePINUnrecoverable = "Change_Pin_Unrecoverable"
}
