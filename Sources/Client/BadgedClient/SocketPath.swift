// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Where badged listens.
public enum SocketPath {
    /// The system's socket, made by systemd or by badged as root or service user.
    public static let system = "/run/badged/badged.sock"

    /// `system` when it exists, else that of a badged which runs as this user: `$XDG_RUNTIME_DIR/badged/badged.sock`.
    /// Without that variable it is `system` in any case.
    public static var standard: String {
        if access(system, F_OK) == 0 { return system }
        guard let directory = getenv("XDG_RUNTIME_DIR"), directory[0] != 0 else { return system }
        return String(cString: directory) + "/badged/badged.sock"
    }
}
