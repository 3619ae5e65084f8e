// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import CLinux
import Cards
import Concurrency
import CountryAuthorities
import CredentialFeature
import DocumentFeature
import DoorFeature
import DoorOpening
import DoorReaders
import Drivers
import EIDFeature
import EService
import Glibc
import HTTP
import Host
import KeyFeature
import MPin
import MPinFeature
import MdocFeature
import Readers
import ReadersNFC
import ReadersPCSC
import ReadersRemote
import ReadersVirtual
import RemoteFeature
import ScannerMgmt
import Scanners
import Server
import Store
import Taps
import Text
import Vault
import VirtualDocument
import VirtualEID
import VirtualKeycard
import VirtualTaps
import WalletFeature

/// Runs the daemon from the open socket to SIGTERM.
@Loop final class Daemon {
    private let options: CommandLineOptions
    private let browsers = BrowserPortHealth()
    private let signals: Signals
    private let socket: ListeningSocket
    private let service = ServiceNotification()
    private let registry = ReaderRegistry()
    private var nfc: NFCDriver?
    private let parts: ConfiguredParts
    private var configuration: Configuration { parts.configuration }
    private let anchors: TrustAnchorFolder
    private let documentAnchors: DocumentAnchorFolder
    private let mdocAnchors: MdocAnchorFolder
    /// nil: no list is fetched.
    private let mdocLists: MdocListFetch?
    private let virtualPhones = VirtualMdocKind()
    /// The Bluetooth management socket, opened while the process had the capability; nil without the capability.
    let management: ManagementSocket?
    private let access: AccessControl
    /// The number of SIGHUPs with a right configuration.
    private var reloads = 0
    /// Why the last SIGHUP has changed nothing; nil if its configuration was right.
    private var refusal: StartError?
    private var server: SocketServer?
    private let listed: ListedCredentials
    private let state: DaemonState
    private var radio: Radio?
    /// nil unless readers of this host are shared.
    private var sharing: RemoteSharing?
    private var opener: DoorOpener?
    private var phones: BluetoothPhones?
    private var watched: [Loop.Registration] = []
    private lazy var signs = SignsOfLife(service)

    init(
        _ options: CommandLineOptions,
        _ parts: ConfiguredParts,
        _ signals: Signals,
        _ socket: ListeningSocket,
        management: ManagementSocket?
    ) {
        self.options = options
        self.parts = parts
        self.signals = signals
        self.socket = socket
        self.management = management
        state = DaemonState(parts.configuration)
        listed = ListedCredentials(parts.configuration.credentials.allowList, parts.siteKey)
        var warnings: [String] = []
        access = AccessControl(AccessPolicy(rules: [], warnings: &warnings))
        anchors = TrustAnchorFolder(
            parts.configuration.trustAnchors,
            mayBeMissing: parts.configuration.trustAnchors == Configuration.defaultTrustAnchors,
            warn: { Log.warning("\($0)") }
        )
        documentAnchors = DocumentAnchorFolder(
            parts.configuration.documentAnchors,
            mayBeMissing: parts.configuration.documentAnchors == Configuration.defaultDocumentAnchors,
            requiresRevocationList: parts.configuration.requiresDocumentCRLs,
            warn: { Log.warning("\($0)") }
        )
        let lists =
            parts.mdocLists.isEmpty
            ? nil
            : PublishedListFolder(
                systemEnvironment("STATE_DIRECTORY").flatMap { $0.isEmpty ? nil : "\($0)/mdoc-lists" },
                addresses: parts.mdocLists.map(\.text)
            )
        mdocAnchors = MdocAnchorFolder(
            parts.configuration.mdocAnchors,
            mayBeMissing: parts.configuration.mdocAnchors == Configuration.defaultMdocAnchors,
            lists: lists,
            warn: { Log.warning("\($0)") }
        )
        mdocLists = lists.map { [mdocAnchors] lists in
            MdocListFetch(parts.mdocLists, mdocAnchors, lists, ask: MdocListFetch.ask(parts.network))
        }
        // Reading the folder now puts its warnings at the start of the log.
        anchors.read()
    }

    private func eidCards() throws(Malformed) -> VirtualEIDKind {
        if let trustPoint = parts.trustPoint { try VirtualEIDKind(trustPoint: trustPoint) } else { VirtualEIDKind() }
    }

    /// What is read from cards that people hold to readers. A new kind of reading is one entry here.
    private func tapReaders(_ store: StateStore) -> [any TapReader] {
        (parts.aliro.map { [AliroTapReader($0, store, listed: listed)] } ?? []) + [
            PKOCTapReader(parts.site, today: configuration.certificateDay), TagTapReader(),
        ]
    }

    /// Applies the access rules of a configuration, and logs its warnings.
    private func load(_ configuration: Configuration) async {
        let warnings = await access.load(configuration.access, owner: AccessPolicy.trustedOwner(socket))
        for warning in warnings.prefix(Self.loggedWarnings) { Log.warning("\(warning)") }
        let rest = warnings.count - Self.loggedWarnings
        if rest > 0 { Log.warning("\(rest) more names in [access] are unknown: badged --check-config shows all") }
    }

    private static let loggedWarnings = 20

    func start() async {
        await load(configuration)
        await listed.load(configuration.credentials.allowList, isWatched: configuration.credentials.watchesAllowList)
        // A new driver is one line here and one target.
        let virtualReaders = configuration.isVirtualEnabled ? configuration.virtualReaders : 0
        if virtualReaders > 0 {
            do throws(Malformed) {
                // A new kind of virtual card is one entry here and one target.
                let kinds: [any VirtualCardKind] = [
                    try eidCards(), VirtualKeycardKind(), VirtualPKOCKind(), VirtualAliroKind(),
                    VirtualDocumentKind(), virtualPhones,
                    VirtualTagKind(), RecordedCardKind(),
                ]
                registry.add(VirtualReaders(count: virtualReaders, kinds: kinds))
            } catch {
                Log.error("cannot make the virtual readers: \(error.text)")
                exit(1)
            }
        }
        // The first client may rely on the virtual readers.
        await registry.waitForReaders(virtualReaders)
        if configuration.isPCSCEnabled { registry.add(PCSCBackend()) }
        if configuration.isNFCEnabled {
            let boards = NFCDriver(devices: configuration.nfcDevices)
            nfc = boards
            registry.add(DriverBackend(boards))
        }
        let tpm = configuration.tpm
        let store = StateStore(tpm)
        let vault = Vault(store, tpm: tpm)
        let remote = Remote(configuration.remote, configuration.limits, registry, store)
        if let lenders = remote?.lenders { registry.add(lenders.backend) }
        let owner = RadioOwner()
        if configuration.radio.isEnabled { radio = makeRadio(configuration.radio, owner) }
        opener = makeOpener(configuration.radio, radio, owner)
        phones = makePhones(configuration.radio, owner)
        registry.log = { level, text, reader in Log.write(level, Log.Fields(reader: reader)) { "\(text)" } }

        let wallet = WalletFeature(registry, store, trust: configuration.keycardTrust, antelope: parts.antelope)
        // A feature is one line here and one target.
        let features: [any Feature] = [
            ReaderFeature(registry),
            EIDFeature(
                registry,
                OnlineServices(configuration, anchors, parts.network),
                rootServesAll: configuration.rootServesAll,
                allowsAutomaticPINs: configuration.allowsAutomaticPINs
            ),
            wallet,
            MPinFeature(store, parts.mpin, cards: wallet),
            KeyFeature(vault, parts.issuer),
            CredentialFeature(
                registry,
                parts.site,
                tapReaders(store),
                listed: listed,
                panelReaders: Set(configuration.credentials.panelReaders)
            ),
            DoorPanels(),
            DocumentFeature(registry, documentAnchors),
            MdocAnchorsFeature(mdocAnchors, fetch: mdocLists),
            MdocFeature(
                registry,
                authorities: { [mdocAnchors] time in await mdocAnchors.authorities(at: time) },
                identities: parts.mdocIdentities,
                bluetooth: phones,
                virtualAuthority: { [virtualPhones] in try? virtualPhones.issuer().certificate }
            ),
            DoorFeature(radio, opener: opener, credentials: VaultCredentials(vault), store: store),
            RemoteFeature(remote?.store, remote?.lenders, remote?.sharing),
            browsers,
            state,
            ConfinementFeature(),
            StoreHealth(
                store,
                Vault.recordKinds + MPinFeature.recordKinds + WalletFeature.recordKinds + RemoteStore.recordKinds
                    + CredentialFeature.recordKinds + DoorFeature.recordKinds
            ),
        ]
        registry.kinds = features.compactMap { $0 as? any CardFeature }.flatMap(\.cardKinds)
        let server = SocketServer(
            features: features,
            info: ServerInfo(
                version: Version.current,
                drivers: registry.drivers,
                scanners: radio?.names ?? []
            ),
            limits: configuration.limits,
            permissions: { [access] peer in
                await access.permissions(uid: peer.uid, gid: peer.gid, groups: peer.groups)
            },
            log: { level, text, fields in Log.write(level, fields) { "\(text)" } }
        )
        self.server = server
        // Before the first client is served: systemd calls the service active only after the start.
        await openBrowserPort(server)
        do throws(SystemError) {
            try server.listen(on: socket.descriptor)
            watched.append(try Loop.watch(signals.descriptor, .read) { [self] _ in handleSignals() })
            signs.tell()
        } catch {
            Log.error("cannot start: \(error.description)")
            exit(1)
        }
        sharing = remote?.sharing
        sharing?.start()
        service.ready(status: "serving \(socket.path)")
        Log.info("serving \(socket.path)")
        startLists()
        // Little of the text that the start has used is used again.
        clinux_give_back_text()
    }

    /// Lists are fetched when clients are served already, because a server may hang.
    private func startLists() {
        guard let mdocLists else { return }
        Task { @Loop in
            do throws(SystemError) {
                try await mdocLists.start()
            } catch {
                Log.error("no list of revoked documents is fetched: \(error.description)")
            }
        }
    }

    private func browsersFail(_ cause: Phrase, _ hint: Phrase, missing package: String? = nil) {
        browsers.fault = (cause, hint, package)
        Log.error("browsers are not served: \(cause); hint: \(hint)")
    }

    /// Milliseconds after which the start goes on without the browser port.
    private static let portTimeout: Int64 = 1000

    /// Opens the browser port. A port that is taken is an error in the log; the rest of badged works without it. A
    /// badged-network that hangs does not delay the start for long, and the port is opened later.
    private func openBrowserPort(_ server: SocketServer) async {
        guard configuration.isActivationEnabled else { return }
        // A Debian package of its own contains it.
        guard ChildProcess.path(of: "badged-activation") != nil else {
            let package = "badged-activation"
            return browsersFail("badged-activation is missing", "apt install badged-activation", missing: package)
        }
        browsers.fault = ("the browser port is not open yet", "look again in some seconds", nil)
        let isTried = OneShot<Void>()
        Task { @Loop in
            await listenForBrowsers(server, isTried)
            isTried.fill(())
        }
        let limit = Loop.Alarm { isTried.fill(()) }
        limit.set(after: Self.portTimeout)
        await isTried.value(whenCancelled: ())
        limit.cancel()
    }

    /// Listens at the browser port through badged-network, which is tried again if it does not answer.
    private func listenForBrowsers(_ server: SocketServer, _ isTried: OneShot<Void>) async {
        let (port, network) = (configuration.activationPort, parts.network)
        var backOff = BackOff()
        while true {
            switch await Self.listen(port, network) {
            case .success(let listeners):
                browsers.fault = nil
                browsers.port = BrowserPort(listeners, configuration, server, access)
                return
            case .failure(let error):
                browsersFail(error.messageWords, error.hintWords)
                isTried.fill(())
                guard error.mayPass else { return askOwnerToShowItself(port, network) }
            }
            await Loop.sleep(milliseconds: backOff.next())
        }
    }

    /// Opens the sockets on a thread, because badged-network may hang.
    private static func listen(_ port: UInt16, _ network: Network) async -> Result<[Int32], StartError> {
        let result = OneShot<Result<[Int32], StartError>>()
        let isStarted = startThread("badged-listen") {
            result.fill(Result { () throws(StartError) in try network.listen(port: port) })
        }
        let refusal = StartError(
            saying: Phrase("cannot spawn a thread"),
            hint: Phrase("allow more threads (TasksMax=)"),
            mayPass: true
        )
        if !isStarted { result.fill(.failure(refusal)) }
        return await result.value(whenCancelled: .success([]))
    }

    /// TR-03124-1: a second eID client asks the first one to show its window.
    private func askOwnerToShowItself(_ port: UInt16, _ network: Network) {
        let isStarted = startThread("badged-ask") {
            guard let owner = network.askOwnerToShowItself(port: port) else { return }
            Log.notice("port \(port) belongs to \(owner), which was asked to show itself")
        }
        if !isStarted { Log.warning("cannot spawn a thread to ask the owner of port \(port) to show itself") }
    }

    private func handleSignals() {
        while let signal = signals.next() {
            switch signal {
            case .terminate: Task { @Loop in await self.end() }
            case .reload: Task.immediate { @Loop in await self.reload() }
            }
        }
    }

    /// Reads and checks the whole configuration again, and then applies it in one step. A fault changes nothing. Access
    /// rules, log level, the names of NFC devices and the allow list apply at once; everything else needs a restart.
    /// Also looks for readers that send no event.
    private func reload() async {
        service.reloading()
        do throws(StartError) {
            let configuration = try Configuration(options)
            _ = try ConfiguredParts(configuration)
            // Not before: a reload that waits must not end halfway because of a later one that changes nothing.
            reloads += 1
            let reload = reloads
            refusal = nil
            await listed.load(
                configuration.credentials.allowList,
                isWatched: configuration.credentials.watchesAllowList
            )
            // A later SIGHUP has read the files again.
            guard reload == reloads else { return }
            await load(configuration)
            guard reload == reloads else { return }
            Log.level = configuration.logLevel
            nfc?.sources = configuration.nfcDevices
            anchors.read()
            let waiting = configuration.changes(from: parts.configuration).filter { !Configuration.isLive($0) }
            for setting in waiting { Log.notice("\(setting): applies after a restart") }
            state.reloaded(configuration, waiting: waiting.count, isRight: refusal == nil)
            Log.notice("configuration read again")
            await server?.evaluatePermissions()
            guard reload == reloads else { return }
            registry.rescan()
            if let mdocLists { Task { @Loop in await mdocLists.retry() } }
        } catch {
            refusal = error
            state.refused()
            Log.error("configuration not changed: \(error.message); hint: \(error.hint)")
        }
        service.ready(status: status)
    }

    /// The line of `systemctl status`.
    private var status: String {
        guard let refusal else { return "serving \(socket.path)" }
        return "serving \(socket.path); the configuration was not read again: \(refusal.message)"
    }

    /// Milliseconds in which the clients of workflows that were abandoned get their final messages.
    private static let farewell: Int64 = 100

    /// Cancels the workflows, notifies their clients and releases the cards. A card that does not answer delays the end by
    /// a second at most.
    private func end() async {
        service.stopping()
        let deadline = Loop.Alarm { [self] in
            Log.warning("a card was not released in time")
            server?.abandonWorkflows()
            Task { @Loop in
                await Loop.sleep(milliseconds: Self.farewell)
                await leave()
            }
        }
        deadline.set(after: 900)
        radio?.stop()
        sharing?.stop()
        await server?.stop()
        await registry.stop()
        deadline.cancel()
        await leave()
    }

    /// Waits up to 10 s until the readers that are being opened are disconnected, and until recovery has switched an
    /// adapter on again. No other program would do that.
    private func leave() async -> Never {
        socket.close()
        let deadline = Loop.Alarm {
            Log.warning("a Bluetooth adapter may be switched off or connected; hint: bluetoothctl power on")
            _exit(0)
        }
        deadline.set(after: 10_000)
        await opener?.waitUntilIdle()
        await phones?.waitUntilIdle()
        await radio?.restorePower()
        // _exit, not exit: the exit handlers destroy what threads that still wait in C code use.
        _exit(0)
    }
}
