// SPDX-License-Identifier: GPL-3.0-or-later
package import Bluetooth
package import Concurrency
import Crypto
package import DoorReaders
import Glibc
package import Text
package import Vault

/// Opens PKOC readers: connects, runs the dialogue and disconnects. An adapter that serves another opening, or a phone, is busy.
@Loop package final class DoorOpener {
    /// A reader as one adapter sees it.
    private struct Place: Hashable {
        let adapter: Int
        let address: DeviceAddress
    }

    private let connector: any DoorConnector
    private let owner: RadioOwner
    private var openings = 0 { didSet { waiters.check() } }
    /// The readers whose opening is over and whose connection is being closed. bluetoothd takes two seconds for this.
    /// Neither the result nor other readers wait for it.
    private var leaving: Set<Place> = [] { didSet { waiters.check() } }
    private let waiters = Waiters()

    package init(_ connector: any DoorConnector, owner: RadioOwner = RadioOwner()) {
        self.connector = connector
        self.owner = owner
    }

    /// Returns when no opening runs any more, so that no reader stays connected at the end of the process.
    package func waitUntilIdle() async { await waiters.wait { self.openings == 0 && self.leaving.isEmpty } }

    /// Whether an opening on this adapter could begin now.
    package func isFree(_ adapter: Int) -> Bool { !owner.isInUse(adapter) }

    /// Opens one reader. A cancelled task ends the opening. The reader is disconnected on every path; the connection
    /// may end after the result, and a new opening of this reader waits for its end.
    /// - Parameters:
    ///   - address: the current address of the reader.
    ///   - adapter: the number of the adapter.
    ///   - credentials: the credentials that may be used; not empty.
    ///   - timeouts: how long each step waits.
    ///   - changed: called with each new state.
    /// - Returns: how the opening has ended.
    package func open(
        _ address: DeviceAddress,
        adapter: Int,
        _ credentials: [DoorCredential],
        _ timeouts: OpeningTimeouts = OpeningTimeouts(),
        changed: @escaping @Loop (OpeningState) -> Void = { _ in }
    ) async -> OpeningResult {
        if let other = owner.begin(.opening, on: adapter) {
            return OpeningResult(.busy, reason: "hci\(adapter) \(other.text)")
        }
        openings += 1
        defer {
            owner.end(on: adapter)
            openings -= 1
        }
        changed(.connecting)
        let place = Place(adapter: adapter, address: address)
        await waiters.wait { !self.leaving.contains(place) }
        do throws(LinkFailure) {
            let link = try connector.link(to: address, adapter: adapter)
            defer { leave(link, place) }
            try await link.establish(within: timeouts.connect)
            changed(.connected)
            return await Self.converse(link, credentials, timeouts, changed)
        } catch {
            switch error {
            case .timedOut: return OpeningResult(.timedOut, reason: "the reader was not connected in time")
            case .late(let reason): return OpeningResult(.timedOut, reason: reason)
            case .inUse(let reason): return OpeningResult(.busy, reason: reason)
            case .failed(let reason): return OpeningResult(.bluetoothCommunicationFailed, reason: reason)
            }
        }
    }

    private func leave(_ link: any DoorLink, _ place: Place) {
        leaving.insert(place)
        Task { @Loop in
            await link.disconnect()
            leaving.remove(place)
        }
    }

    private static func converse(
        _ link: any DoorLink,
        _ credentials: [DoorCredential],
        _ timeouts: OpeningTimeouts,
        _ changed: @Loop (OpeningState) -> Void
    ) async -> OpeningResult {
        guard let group = try? Curve.secp256r1.group, let ephemeral = try? ECPrivateKey(on: group) else {
            return OpeningResult(PKOCFailure.cryptography)
        }
        var framing = PKOCFraming()
        var handshake = PKOCHandshake(credentials, ephemeral: ephemeral, now: UInt32(clamping: time(nil)))
        do throws(PKOCFailure) {
            while true {
                let (message, dialect) = try await receive(link, &framing, timeouts)
                switch try handshake.receive(message, dialect) {
                case .send(let message): try await send(message, link, framing, timeouts)
                case .sign(let digest):
                    guard let chosen = handshake.chosen else { throw .unknownSite }
                    changed(.authenticating)
                    let signature = try await sign(digest, chosen, within: timeouts.apdu)
                    try await send(try handshake.signed(signature), link, framing, timeouts)
                case .finished(let answer):
                    var result = OpeningResult(answer)
                    result.key = handshake.chosen?.id
                    return result
                }
            }
        } catch {
            var result = OpeningResult(error)
            result.key = handshake.chosen?.id
            return result
        }
    }

    /// Receives a message with all its pieces. A reader cannot hold the adapter with slow pieces.
    private static func receive(
        _ link: any DoorLink,
        _ framing: inout PKOCFraming,
        _ timeouts: OpeningTimeouts
    ) async throws(PKOCFailure) -> ([UInt8], PKOCFraming.Dialect) {
        let end = Loop.now + timeouts.apdu
        while true {
            let left = max(end - Loop.now, 0)
            let (limit, timeout): (Milliseconds, OpeningStatus) =
                framing.isInside && timeouts.fragment < left
                ? (timeouts.fragment, .readerTimedOutFragment) : (left, .readerTimedOutAPDU)
            let bytes = try await step(timeout, await link.notification(within: limit))
            if let message = try framing.receive(bytes), let dialect = framing.dialect { return (message, dialect) }
        }
    }

    private static func send(
        _ message: [UInt8],
        _ link: any DoorLink,
        _ framing: PKOCFraming,
        _ timeouts: OpeningTimeouts
    ) async throws(PKOCFailure) {
        guard let writes = framing.divide(message, capacity: link.capacity) else {
            let reason: Phrase =
                "the reader takes whole messages only, and its MTU of \(link.capacity + 3) is too small"
            throw .link(.bluetoothCommunicationFailed, reason)
        }
        for bytes in writes {
            try await step(.readerTimedOutBLE, await link.write(bytes, within: timeouts.apdu))
        }
    }

    /// Runs a step of the link; `timeout` is the status when the reader does not answer in time.
    private static func step<T>(
        _ timeout: OpeningStatus,
        _ value: @autoclosure @Loop () async throws(LinkFailure) -> T
    ) async throws(PKOCFailure) -> T {
        do throws(LinkFailure) {
            return try await value()
        } catch {
            switch error {
            case .timedOut, .late: throw .link(timeout, "the reader does not answer")
            case .inUse(let reason): throw .link(.busy, reason)
            case .failed(let reason): throw .link(.bluetoothCommunicationFailed, reason)
            }
        }
    }

    /// Signs a digest with the key. A key that takes longer than `limit` has failed, because the reader stops waiting.
    private static func sign(
        _ digest: [UInt8],
        _ credential: DoorCredential,
        within limit: Milliseconds
    ) async throws(PKOCFailure) -> [UInt8] {
        let key = credential.key
        let result = OneShot<Result<[UInt8], PKOCFailure>>()
        let alarm = Loop.Alarm {
            result.fill(.failure(.link(.deviceTimedOutAPDU, "the key has not signed in time")))
        }
        alarm.set(after: limit)
        defer { alarm.cancel() }
        let signing = Task { @Loop in
            do throws(Failure) {
                result.fill(.success(try await key.sign(digest: digest)))
            } catch {
                result.fill(.failure(.key(error.message)))
            }
        }
        let signature = await result.value(whenCancelled: .failure(.key(nil)))
        signing.cancel()
        return try signature.get()
    }
}

/// A credential that may open doors: a key and the sites that accept it.
package struct DoorCredential: Sendable {
    /// How clients name the key.
    package let id: String
    package let key: any CredentialKey
    package let sites: [DoorSite]
    /// When the credential was last changed, in seconds since 1970. Readers receive this time.
    package let lastUpdate: UInt32

    package init(id: String, key: any CredentialKey, sites: [DoorSite], lastUpdate: UInt32) {
        self.id = id
        self.key = key
        self.sites = sites
        self.lastUpdate = lastUpdate
    }
}

/// Supplies the credentials of a user.
package protocol CredentialProvider: Sendable {
    /// Returns the active credentials of this user that open PKOC readers; with `keyID` only the one with this
    /// identifier.
    /// - Throws: `Failure` if the store cannot be read.
    func credentials(uid: UInt32, keyID: String?) async throws(Failure) -> [DoorCredential]

    /// Records that this key was used at a reader.
    func used(uid: UInt32, keyID: String) async
}
