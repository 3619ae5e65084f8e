// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// What badged says in English, in the language of the user. The protocol has one language, so the texts are known here
/// by their form.
enum DaemonWords {
    /// The text in the language of the user. A text that is not known, or a part of it, leaves the whole in English.
    static func text(_ english: String) -> String {
        translated(english, dividedAt: ["; ", ": "]) ?? english
    }

    /// A text of several causes has semicolons between them, and a colon between a cause and its advice.
    private static func translated(_ english: String, dividedAt separators: ArraySlice<String>) -> String? {
        if let known = known(english) { return known }
        guard let separator = separators.first, english.utf8.count <= maximumCount else { return nil }
        let others = separators.dropFirst()
        let parts = english.split(separator: separator).map { translated(String($0), dividedAt: others) }
        if parts.count > 1, !parts.contains(nil) { return parts.compactMap(\.self).joined(separator: separator) }
        return translated(english, dividedAt: others)
    }

    /// A complaint about a file: the file, a colon and the reason.
    static func placed(_ english: String) -> String {
        guard let colon = english.firstRange(of: ": ") else { return text(english) }
        return english[..<colon.upperBound] + text(String(english[colon.upperBound...]))
    }

    /// Longer texts are not looked into.
    private static let maximumCount = 2000

    private static func known(_ english: String) -> String? {
        guard english.utf8.count <= maximumCount, english.isComparable else { return nil }
        return phrases.lazy.compactMap { $0.read(english) }.first.map(tr)
    }

    /// Stands for any value in a form.
    private static let any = ""

    /// The form that fits first counts, so one with more words stands before one with fewer.
    static let phrases: [Phrase] = [
        Phrase("badged runs without the Bluetooth radio"),
        Phrase("set enabled = yes in [ble] of badged.conf, leave out the option --no-ble, and restart badged"),
        Phrase("no country authority is trusted, so every authentication fails"),
        Phrase("the certificate of \(any) was valid until \(any), and no newer one is known"),
        Phrase("import a newer certificate of this authority: \(any)"),
        Phrase(
            """
            install the newest AusweisApp (\(any)), then sudo badgectl anchors import; or log in at a service \
            that sends the link to the next certificate, which badged then keeps
            """
        ),
        Phrase("install the newest AusweisApp (\(any)), then sudo badgectl anchors import"),
        Phrase("AusweisApp 2.5 and later (\(any)) have \(any), valid until \(any): \(any)"),
        Phrase("it is not a certificate of an authority for authentication terminals"),
        Phrase("it has a wrong signature of \(any)"),
        Phrase("it is a root with an unknown fingerprint"),
        Phrase("it is signed by \(any), which is not trusted"),
        Phrase("\(any) holds no new certificate"),
        Phrase("is neither a file nor a folder"),
        Phrase("is nested in too many folders"),
        Phrase("has more files than can be read"),
        Phrase("is too long"),
        Phrase("has too many certificates"),
        Phrase("is nested in too many archives"),
        Phrase("has more content than can be read"),
        Phrase("the folder \(any) is missing, so no mobile document can be called genuine"),
        Phrase("no authority of mobile documents is trusted, so none can be called genuine"),
        Phrase("import the certificates: sudo badgectl mdoc anchors import FILE"),
        Phrase("the folder \(any) is missing, so no document can be called genuine"),
        Phrase("no authority of electronic documents is trusted, so no document can be called genuine"),
        Phrase("import the certificates: sudo badgectl documents anchors import FILE"),
        Phrase("nothing was imported since \(any), for more than six months"),
        Phrase("import a newer master list: sudo badgectl documents anchors import FILE"),
        Phrase("install badged again, and start badged-network.socket; without it no service can be reached"),
        Phrase("load the page again in some seconds: the next connection starts badged-activation"),
        Phrase("badged-activation is missing"),
        Phrase("The store cannot be used: \(any)"),
        Phrase(
            """
            badged-nfc may open every file that badged may open, because Landlock is missing: boot Linux 5.13 or \
            later; lsm= must list landlock, and the unit must allow its system calls
            """
        ),
        Phrase(
            """
            connected but unknown to pcscd: \(any); install libccid or the driver of the reader's maker, then \
            plug the reader in again
            """
        ),
        Phrase(
            """
            pcscd at \(any) does not answer: restart it with 'systemctl restart pcscd'; if that happens again, \
            see 'journalctl -u pcscd' for the driver that hangs
            """
        ),
        Phrase(
            """
            there is no pcscd (\(any) does not exist): install pcscd and start it with 'systemctl enable --now \
            pcscd.socket'
            """
        ),
        Phrase(
            """
            no process listens at \(any): restart pcscd with 'systemctl restart pcscd.socket pcscd'; in a \
            container mount the folder of the socket, not the socket
            """
        ),
        Phrase("pcscd at \(any) closed the connection: see 'journalctl -u pcscd', then restart it"),
        Phrase("pcscd at \(any) answered \(any): see 'journalctl -u pcscd', then restart it"),
        Phrase(
            """
            pcscd denies access to the cards: allow org.debian.pcsc-lite.access_pcsc and \
            org.debian.pcsc-lite.access_card to user id \(any) with a rule in /etc/polkit-1/rules.d, then \
            restart this service
            """
        ),
        Phrase(
            """
            pcscd denies access (\(any)): allow org.debian.pcsc-lite.access_pcsc and \
            org.debian.pcsc-lite.access_card to user id \(any) with a rule in /etc/polkit-1/rules.d, then \
            restart this service
            """
        ),
        Phrase("libnfc cannot be started: the system has no memory or threads left"),
        Phrase(
            """
            the device stopped answering and is tried again every second: check power and cable, or switch its \
            power off and on
            """
        ),
        Phrase("there is no \(any): plug the board in, or correct [nfc] devices"),
        Phrase("libnfc cannot open \(any): plug it in again"),
        Phrase("device busy: another program uses \(any): end it, then plug the device in again"),
        Phrase(
            """
            badged cannot read and write \(any) (\(any)): install the udev rule 94-badged.rules, then plug the \
            device in again
            """
        ),
        Phrase("UDP port \(any) cannot be shared: end AusweisApp on this host, or set [remote] enabled = no"),
        Phrase("UDP port \(any): \(any)"),
        Phrase("nothing was received: open the remote reader on the phone, and let the firewall pass UDP port \(any)"),
        Phrase("the device refuses this host: it has probably removed the pairing"),
        Phrase(
            """
            '\(any)' refuses this host: remove the pairing (badgectl remote forget \(any)), then pair again \
            (badgectl remote pair)
            """
        ),
        Phrase("badged-remote does not answer"),
        Phrase("badged-remote has ended unexpectedly"),
        Phrase("see the log of badged and badged-remote"),
        Phrase("there is no Bluetooth adapter"),
        Phrase("plug one in"),
        Phrase("the Bluetooth adapter is switched off"),
        Phrase("bluetoothd does not run"),
        Phrase("bluetoothd does not answer"),
        Phrase("bluetoothd has ended"),
        Phrase("bluetoothd refuses to scan"),
        Phrase("bluetoothd refuses to scan with \(any)"),
        Phrase("systemctl restart bluetooth; journalctl -u bluetooth may have the reason"),
        Phrase("the D-Bus denies access to bluetoothd"),
        Phrase("allow user badged to talk to org.bluez in /etc/dbus-1/system.d"),
        Phrase("bluetoothd loses long values, so phones that connect to this host may not be read"),
        Phrase("phones find this host slowly"),
        Phrase("bluetoothd keeps a file about each phone in /var/lib/bluetooth"),
        Phrase("to read phones over Bluetooth, write into \(any): \(any); then restart bluetooth"),
        Phrase("No credential is accepted, because no issuer is set: set [credentials] issuers"),
        Phrase("You must provide \(any) - \(any) digits"),
        Phrase("You must provide \(any) digits"),
        Phrase("You must provide \(any) - \(any) ASCII characters"),
        Phrase("The document refuses this CAN: compare it with the document"),
        Phrase("The document refuses this MRZ: compare it with the document"),
        Phrase("The check digit of the document number is wrong: compare the machine readable zone with the document"),
        Phrase("The check digit of the date of birth is wrong: compare the machine readable zone with the document"),
        Phrase("The check digit of the date of expiry is wrong: compare the machine readable zone with the document"),
        Phrase("The date of birth is no day: compare the machine readable zone with the document"),
        Phrase("The date of expiry is no day: compare the machine readable zone with the document"),
        Phrase("The document refuses the MRZ or CAN"),
        Phrase("The card has no application for documents"),
        Phrase("The document was reset again and again, and could not be read to its end"),
        Phrase("end other programs that use the reader, and try again"),
        Phrase("The card does not answer"),
        Phrase("The card was removed"),
        Phrase("The question was not answered in time"),
        Phrase("Reader '\(any)' is busy in another client's workflow: wait for its end or use another reader"),
        Phrase(
            """
            Reader '\(any)' is busy: '\(any)' uses it over the network. End the use there, wait, or use another \
            reader
            """
        ),
        Phrase("Another program holds the card in reader '\(any)': wait until it is done, or close that program"),
        Phrase("The card in reader '\(any)' does not answer: take it out and put it in again"),
        Phrase("Reader '\(any)' does not support extended length, which this workflow needs: use another reader"),
        Phrase("There is no reader '\(any)': plug it in, or name another one"),
        Phrase(
            """
            The card in reader '\(any)' is not an eID card: put in an eID card. If it is one, take it out and \
            put it in again
            """
        ),
        Phrase(
            """
            The online identification function of the card in reader '\(any)' is deactivated: use another card, \
            or have the authority that issued it activate the function
            """
        ),
        Phrase(
            """
            The card in reader '\(any)' is inoperative because its PUK is used up: use another card, or have the \
            authority that issued it set a new PIN
            """
        ),
        Phrase("The service does not accept the kind of eID in reader '\(any)': use another card"),
        Phrase(
            """
            The card in reader '\(any)' is not an electronic document: use a passport, an identity card or a \
            residence permit. If it is one, take it out and put it in again
            """
        ),
        Phrase(
            """
            The card in reader '\(any)' is not a Keycard: put in a Keycard. If it is one, take it out and put it \
            in again
            """
        ),
        Phrase("The card in reader '\(any)' is no phone: hold the phone to the reader"),
        Phrase(
            """
            The phone in reader '\(any)' shows no document: unlock it, open the wallet, and hold it to the \
            reader again. If it is no phone, take it away
            """
        ),
        Phrase("What lies on reader '\(any)' is a tag: hold the phone to the reader"),
        Phrase("The phone in reader '\(any)' was read before: take it away, and hold it to the reader again"),
        Phrase("bluetoothctl power on"),
        Phrase("[ble] adapters names \(any) for scans, but this computer has \(any)"),
        Phrase("[ble] adapters names \(any), but this computer has \(any)"),
        Phrase("correct [ble] adapters in badged.conf, or plug the adapter in"),
        Phrase("install libsystemd0"),
        Phrase("systemctl start dbus"),
        Phrase("systemctl start bluetooth"),
        Phrase("systemctl restart bluetooth"),
        Phrase("restart badged.service"),
        Phrase("modprobe bluetooth"),
        Phrase("see journalctl -k -g Bluetooth"),
        Phrase("bluetoothd answers in an unknown format"),
        Phrase("report this with its version"),
        Phrase("\(any) reports each sender only once in about ten seconds, so no reader comes into range"),
        Phrase(
            """
            use [ble] backend = mgmt, or start bluetoothd with the option -E, so that repeated advertisements \
            are not dropped
            """
        ),
        Phrase("there is no management socket for Bluetooth"),
        Phrase("systemctl restart badged; badged.service needs badged-bluetooth as ExecStartPre="),
        Phrase("the kernel adds no advertisement monitor to \(any): \(any)"),
        Phrase("systemctl restart bluetooth; if this does not help, unplug the adapter, then plug it in"),
        Phrase("the kernel's Bluetooth is gone"),
        Phrase("the kernel's Bluetooth does not answer"),
        Phrase("the kernel does not list its adapters"),
        Phrase("the kernel refuses to scan"),
        Phrase("the kernel does not support advertisement monitors"),
        Phrase("set [ble] backend = bluez, or boot Linux 5.8 or later"),
        Phrase("the reader \(any) is connected to \(any), but not by badged"),
        Phrase("while it is connected, its door opens for nobody else: bluetoothctl disconnect \(any)"),
        Phrase("\(any) does not receive on the coded PHY"),
        Phrase(
            """
            it needs [ble] backend = mgmt and an adapter whose btmgmt phy shows LECODEDRX; without it: coded_phy \
            = no
            """
        ),
        Phrase("badged may not write to \(any), so it cannot reset this adapter"),
        Phrase("give the device to group badged-devices by a udev rule: docs/door-readers.md, Faults and recovery"),
        Phrase("no advertisement was received for \(any) s: check that a reader is near and that the adapter works"),
        Phrase("\(any) received nothing for \(any) s, but other adapters did: unplug it, then plug it in"),
        Phrase("a flood of connections, most of them from \(any): \(any) came to nothing"),
        Phrase("a flood of \(any) datagrams a second or more, most of them from \(any)"),
        Phrase("find the host with the address \(any) in this network, or block it in the firewall"),
        Phrase("\(any) is this host: end the program that causes it, which sudo ss \(any) --processes shows"),
        Phrase(
            """
            this is not a connection string of libnfc; examples for [nfc] devices: \
            pn532_uart:/dev/ttyUSB0:115200, pn53x_usb
            """
        ),
        Phrase(
            """
            libnfc's driver \(any) has no free device: plug the device in; a CCID reader is free while pcscd \
            does not run
            """
        ),
        Phrase(
            """
            another program uses \(any) (ModemManager, brltty, a login on the serial console): end it or exclude \
            the line in its configuration
            """
        ),
        Phrase("\(any) is not a serial line: correct [nfc] devices"),
        Phrase(
            """
            no answer on \(any) at any speed: check power, that TX and RX are crossed, and that the switches of \
            the board say UART (HSU)
            """
        ),
        Phrase(
            """
            the board answers on \(any), but libnfc cannot use it: switch its power off and on, then reload this \
            service
            """
        ),
        Phrase("copies of deleted values may still be in the store: \(any)"),
        Phrase("make room on the disk"),
        Phrase("check the folder and the disk"),
        Phrase("\(any) is used by another process"),
        Phrase("end the other badged"),
        Phrase("\(any) is open to other users"),
        Phrase("chown it to the user of badged, and chmod go= it"),
        Phrase("the key \(any) is missing"),
        Phrase("restore it from a backup, or remove the store"),
        Phrase("the key \(any) does not open the store"),
        Phrase("restore the right key, or remove the store"),
        Phrase("a later version of badged has written the store"),
        Phrase("install that version"),
        Phrase("no connection to the system's D-Bus"),
        Phrase("libsystemd is not installed"),
        Phrase("there is no state folder ($STATE_DIRECTORY)"),
        Phrase("badged cannot use its store"),
        Phrase("\(any) is not a database"),
        Phrase("restore it from a backup"),
        Phrase("the value '\(any)' in the store is damaged"),
        Phrase("delete it, or restore the store from a backup"),
        Phrase("the TPM that sealed the store was cleared, or is in another computer"),
        Phrase("remove the store to start again"),
        Phrase("the record '\(any)' is damaged, or a later version of badged wrote it"),
        Phrase("install that version, restore the store from a backup, or delete the record"),
        Phrase("there is no endpoint"),
        Phrase("there is no such key"),
        Phrase("the program \(any) cannot be started"),
        Phrase("the program \(any) did not answer; it is started again in \(any) s"),
        Phrase("the program \(any) ended unexpectedly; it is started again in \(any) s"),
        Phrase("the program that reported it has gone"),
        Phrase("systemctl status badged-osdp. One that osdp.conf no longer has is forgotten when badged starts"),
        Phrase("a flood of connections, most of them from \(any): \(any) came to nothing"),
        Phrase("Remote readers are off"),
        Phrase("set [remote] enabled = yes"),
        Phrase("set [remote] enabled = yes or share = yes"),
        Phrase("set [remote] share = yes"),
        Phrase("No such device announces itself"),
        Phrase("open its pairing mode, and check that it is in this network"),
        Phrase("The device does not announce itself any more"),
        Phrase("Another device has answered"),
        Phrase("somebody in this network may pose as the device"),
        Phrase("Three wrong codes were entered"),
        Phrase("No reader is shared"),
        Phrase("No device has paired in time"),
        Phrase("There is no pairing with this device"),
        Phrase("correct [ble] replay in badged.conf"),
        Phrase("badgectl capture creates one"),
        Phrase("badgectl capture creates a file with records"),
        Phrase("there is no reader of this name"),
        Phrase("there is no card in this reader"),
        Phrase("it is no NFC board of badged-nfc"),
        Phrase("the board does not answer"),
        Phrase("the board cannot be opened"),
        Phrase("the board said too much"),
        Phrase("the reader is gone"),
        Phrase("the number of the card cannot be replaced"),
        Phrase("this libnfc logs no frames"),
        Phrase("badged-nfc has sent no recording"),
        Phrase("The data of the document do not fit into one message"),
        Phrase("ask for fewer groups, or without raw"),
        Phrase("Developer mode is off"),
        Phrase("set developer_mode = yes in [eid] of badged.conf, and restart badged"),
        Phrase("The question was not answered in time, and another user waits for the card"),
        Phrase(
            """
            an invitation is XXXX-XXXX-XXXX-XXXX in capital letters and digits, an enrolment file, or an address \
            of the issuer
            """
        ),
        Phrase("no issuer is configured; set [keys] issuer"),
        Phrase("the address is not that of [keys] issuer"),
        Phrase("the issuer is not trusted; to trust it: [keys] issuer_keys = \(any)"),
        Phrase("the issuer does not know this invitation, or it was used before"),
        Phrase("the issuer has sent an invalid file"),
        Phrase("the address of the issuer cannot be used"),
        Phrase("the issuer refuses this invitation"),
        Phrase("the issuer cannot answer now (\(any))"),
        Phrase("the issuer has answered with HTTP status \(any)"),
        Phrase("the issuer has sent the file of another invitation"),
        Phrase("the enrolment file is for a key that this user does not have"),
        Phrase("the issuer has no file for this key"),
        Phrase("this pass is saved already"),
        Phrase("another command for this endpoint is running: wait until it has ended"),
        Phrase("a secret for one-time codes is not exported"),
        Phrase("badged uses no card readers, so no card can seal the token"),
        Phrase("the card does not open the token"),
        Phrase("the check digit of the access number is wrong"),
        Phrase("badged knows no browser session of this user"),
        Phrase("a login with an access number begins one"),
        Phrase("the user has no M-Pin id: register again"),
        Phrase("the service has asked for a new identity twice"),
        Phrase("the identity of the user is lost: delete the user and register again"),
        Phrase("the user cannot sign: send MPIN_START_DVS and MPIN_FINISH_DVS first"),
        Phrase("there is no client secret: send MPIN_START_DVS with a new token"),
        Phrase("the identity of the user is lost: send MPIN_START_DVS with a new token"),
        Phrase("the registration is incomplete: send MPIN_RESTART_REGISTRATION"),
        Phrase("confirm the identity first, or send MPIN_RESTART_REGISTRATION if it was confirmed"),
        Phrase("there is no such user at this backend"),
        Phrase("send MPIN_MAKE_USER first"),
        Phrase("there is no such user"),
        Phrase("another dialogue with this user is running: wait until it has ended"),
        Phrase("the user exists already at this backend"),
        Phrase("there can be \(any) users at most"),
        Phrase("delete one"),
        Phrase("the server names an address that is not http or https"),
        Phrase("the address must be an http or https address"),
        Phrase("\(any) is not reached by https: use an https address"),
        Phrase("\(any) is not reached by https"),
        Phrase("\(any) is not in a trusted domain"),
        Phrase(
            """
            \(any) is on this computer or in a private network: to allow it, set private_servers = yes in [mpin] \
            of badged.conf, and restart badged
            """
        ),
        Phrase("the answer of the server is not a JSON object"),
        Phrase("the answer of the server has no usable member '\(any)'"),
        Phrase("the page describes no login service"),
        Phrase("the service uses another curve than BN254CX"),
        Phrase("the time permit is of another day: compare the clock of this computer"),
        Phrase("the one-time code is not six digits"),
        Phrase("the relying party accepts no one-time codes: it sent no times"),
        Phrase("The card does not answer: take it out and try again"),
        Phrase("The duress PIN must differ from the PIN"),
        Phrase("The card has no PIN yet: set it up first (SETUP_DEVICE, badgectl wallet setup)"),
        Phrase("This computer is not paired with the card, so there is nothing to give back"),
        Phrase("A card of this version needs no pairing: use it without"),
        Phrase("The card returned no key: start again"),
        Phrase("No node is configured: set [wallet] node in badged.conf(5)"),
        Phrase("The card is not the one that seals the token of the user: put in that card"),
        Phrase("The words cannot be read from a card: use the written copy"),
        Phrase("The words do not match"),
        Phrase("The request has expired: ask the dapp for a new one"),
        Phrase("The transaction is too large"),
        Phrase("\(any) has no token \(any)"),
        Phrase("until there is one, nobody is listed"),
        Phrase("make it a file that user badged can read"),
        Phrase("list fewer credentials"),
        Phrase("check the disk"),
        Phrase("the list \(any) cannot be fetched: \(any); the last one counts until \(any)"),
        Phrase(
            """
            the list \(any) cannot be fetched: \(any); documents that it is about are not checked for revocation
            """
        ),
        Phrase("the list \(any) is being fetched"),
        Phrase("the list \(any) is over"),
        Phrase("the last one counts until \(any)"),
        Phrase("documents that it is about are not checked for revocation"),
        Phrase(
            """
            correct [mdoc] lists, the authorities or the network, then: systemctl reload badged; or import the \
            list: sudo badgectl mdoc anchors import FILE
            """
        ),
        Phrase("\(any) messages could not be read: report this with the versions of Linux and BlueZ"),
        Phrase(
            """
            \(any) senders look like readers only in later fragments of their advertisements, and are ignored; \
            the kernel does not join fragments: let the readers send shorter advertisements, with the service \
            first
            """
        ),
        Phrase("the ports are opened again in \(any) s"),
        Phrase("correct [remote] in badged.conf(5)"),
        Phrase("The code is wrong: type the digits that the device shows"),
        Phrase("You must provide \(any) words"),
        Phrase("No such file or directory"),
        Phrase("File exists"),
        Phrase("Permission denied"),
        Phrase("Is a directory"),
        Phrase("Not a directory"),
        Phrase("No space left on device"),
        Phrase("Read-only file system"),
        Phrase("it is not a plain file"),
        Phrase("it is no certificate and no list"),
        Phrase("the file is too long"),
        Phrase("\(any) cannot be read"),
        Phrase("\(any) is not a certificate of an authority for authentication terminals"),
        Phrase("\(any) cannot be used: \(any)"),
        Phrase("a certificate of \(any) in \(any) has a wrong signature"),
        Phrase("\(any) is not trusted"),
        Phrase("\(any) is of no trusted authority"),
        Phrase("\(any) is no authority"),
        Phrase("import the authorities of the document's country: badgectl documents anchors import FILE"),
        Phrase("import a current revocation list of the country: badgectl documents anchors import FILE.crl"),
        Phrase("import the certificates of the country's signers: badgectl documents anchors import FILE.ldif"),
        Phrase("import the authority of the issuer: badgectl mdoc anchors import FILE"),
        Phrase("import the status list of the issuer: badgectl mdoc anchors import FILE"),
        Phrase("ask the issuer whether the document is revoked: badged does not know how it says so"),
        Phrase("check the date and time of this computer"),
        Phrase("The phone gives nothing: its holder has declined, or has no such document"),
        Phrase("nobody can tell which; ask the holder"),
        Phrase("The wallet refuses this reader"),
        Phrase("its requests need a certificate that the wallet trusts: see [mdoc] in badged.conf(5)"),
        Phrase("The session with the phone has failed: \(any): begin again"),
        Phrase(
            """
            No phone has shown a mobile document: none came within \(any) s: unlock the phone, open the document, and \
            hold it to the reader, or scan its QR code
            """
        ),
        Phrase("No phone has shown a mobile document: \(any)"),
        Phrase("unlock the phone, open the document, and hold it to the reader, or scan its QR code"),
        Phrase("What the phone sends breaks its form: \(any)"),
        Phrase("badged cannot talk to this phone: it offers no way that badged knows"),
        Phrase("badged cannot talk to this phone: it offers only ways that the command excludes"),
        Phrase("badged cannot talk to this phone: \(any)"),
        Phrase("no NFC reader is connected"),
        Phrase("No NFC reader is connected: connect one, or scan the QR code of the phone"),
        Phrase("connect one"),
        Phrase("the Bluetooth adapter cannot advertise"),
        Phrase("use another one"),
        Phrase("The answer of the phone is longer than 2 MiB"),
        Phrase("The values of the document do not fit into one message of 1 MiB"),
        Phrase("The connection to the phone is lost: it was taken away and not put back: begin again"),
        Phrase("The connection to the phone is lost: the phone has ended the session: begin again"),
        Phrase("The connection to the phone is lost: the phone refuses to go on: \(any): begin again"),
        Phrase("The connection to the phone is lost: \(any): begin again"),
        Phrase("No connection to the phone: \(any): begin again"),
        Phrase("begin again"),
        Phrase("ask for fewer elements"),
        Phrase("ask for fewer elements, or without raw"),
        Phrase("use another card"),
        Phrase("give the MRZ instead of the CAN"),
        Phrase("allow BAC with allowBAC"),
        Phrase("use what is printed on the document"),
        Phrase("The document offers no access that is supported and allowed with the \(any)"),
        Phrase("compare it with the document; chips wait longer after each wrong value"),
        Phrase("PACE has failed, and BAC is not tried after it"),
        Phrase("The document refuses to begin BAC with \(any)"),
        Phrase("The document refuses \(any) with \(any)"),
        Phrase("The document breaks the protocol"),
        Phrase("the issuer has revoked this key"),
        Phrase("the key cannot sign"),
        Phrase("the key is not active"),
        Phrase("the key makes no codes"),
        Phrase("the pass of this key is not saved yet"),
        Phrase("the server did not answer in time"),
        Phrase("the server cannot be reached: \(any)"),
        Phrase("the server cannot be trusted: \(any)"),
        Phrase("the server gave no complete answer: \(any)"),
        Phrase("the server is on this computer or in a private network"),
        Phrase("the proxy cannot be reached: \(any)"),
        Phrase("the proxy refused the credentials"),
        Phrase("the proxy asks for a login: name its file in [eid] proxy_credentials"),
    ]
}
