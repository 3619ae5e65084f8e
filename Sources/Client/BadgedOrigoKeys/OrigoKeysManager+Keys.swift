// SPDX-License-Identifier: Apache-2.0
import BadgedClient
public import Foundation
import Text

extension OrigoKeysManager {
    // MARK: Keys

    /// Returns the keys of this user; none with an error.
    public func listMobileKeys(_ error: NSErrorPointer) -> [OrigoKeysKey] {
        wait(error, or: []) { [self] in try await keys() }
    }

    private func keys() async throws -> [OrigoKeysKey] {
        try await calls.connection().doorKeys().get().map(OrigoKeysKey.init)
    }

    /// Returns the last use of a key at a reader.
    /// - Throws: `NSError` with the code `keyNotFound` if no key was used.
    public func lastAuthenticationInfo() throws -> OrigoKeysLastAuthenticationInfo {
        try calls.wait { [self] in
            let answer = try await ask("GET_LAST_AUTH")
            guard let id = answer["key"]?.string else {
                throw NSError(.keyNotFound, "no key was used at a reader", name: "KeyNotFound")
            }
            return OrigoKeysLastAuthenticationInfo(answer, try await keys().first { $0.keyId == id })
        }
    }

    /// Lets openings use a key.
    public func activateOrigo(_ key: OrigoKeysKey) throws { try change(key, "ACTIVATE_KEY") }

    /// Keeps a key from openings.
    public func deactivateOrigo(_ key: OrigoKeysKey) throws { try change(key, "DEACTIVATE_KEY") }

    /// The same as `activateOrigo`.
    public func activateOrigoKey(_ key: OrigoKeysKey) throws { try activateOrigo(key) }

    /// The same as `deactivateOrigo`.
    public func deactivateOrigoKey(_ key: OrigoKeysKey) throws { try deactivateOrigo(key) }

    private func change(_ key: OrigoKeysKey, _ command: String) throws {
        _ = try calls.wait { [self] in try await ask(command, Self.members(key)) }
    }

    private static func members(_ key: OrigoKeysKey) -> [JSON.Member] { [.init("key", .string(key.keyId))] }

    // MARK: One-time codes

    /// Returns a new one-time code; empty with an error.
    public func generateOTP(for key: OrigoKeysKey, error: NSErrorPointer) -> String {
        ask("GET_OTP", Self.members(key), error)["otp"]?.string ?? ""
    }

    /// Returns the counter of the next code, or the step of the time; 0 with an error.
    public func otpCounter(for key: OrigoKeysKey, error: NSErrorPointer) -> UInt {
        UInt(clamping: ask("GET_OTP_COUNTER", Self.members(key), error)["counter"]?.int ?? 0)
    }

    // MARK: Data

    /// Returns a data object of the key with this `keyId`; empty if there is none, and with an error.
    public func data(forKeyOid oidString: String, tag: OrigoKeysSeosTag, error: NSErrorPointer) -> Data {
        let answer = ask("GET_DATA", Self.members(oidString, tag), error)
        return Data(answer["data"]?.string.flatMap { Hex.decode($0) } ?? [])
    }

    /// Keeps a data object of the key with this `keyId`. All objects of a key have 32 KiB at most. Without a byte the
    /// object is removed.
    public func put(_ data: Data, keyOid oidString: String, tag: OrigoKeysSeosTag, error: NSErrorPointer) {
        let content = JSON.Member("data", .string(Hex.encode(data)))
        _ = ask("PUT_DATA", Self.members(oidString, tag) + [content], error)
    }

    private static func members(_ oid: String, _ tag: OrigoKeysSeosTag) -> [JSON.Member] {
        let bytes = [UInt8(truncatingIfNeeded: tag.tag >> 8), UInt8(truncatingIfNeeded: tag.tag)]
        let hex = tag.tag > 0xFFFF ? "" : Hex.encode(tag.tag > 0xFF ? bytes : [bytes[1]])
        return [.init("oid", .string(oid)), .init("tag", .string(hex))]
    }
}
