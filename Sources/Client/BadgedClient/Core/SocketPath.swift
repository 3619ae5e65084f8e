// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The paths at which badged listens.
public enum SocketPath {
    /// The socket of the system, which systemd or a badged started by root makes.
    public static let system = "/run/badged/badged.sock"

    /// `$BADGED_SOCKET` if it is set; `system` if it exists; else the socket of a badged that runs as this user:
    /// `$XDG_RUNTIME_DIR/badged/badged.sock`. Without that variable `system`.
    public static var standard: String {
        if let path = getenv("BADGED_SOCKET"), path[0] != 0 { return String(cString: path) }
        if access(system, F_OK) == 0 { return system }
        guard let directory = getenv("XDG_RUNTIME_DIR"), directory[0] != 0 else { return system }
        return String(cString: directory) + "/badged/badged.sock"
    }
}
