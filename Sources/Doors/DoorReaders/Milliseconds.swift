// SPDX-License-Identifier: GPL-3.0-or-later

/// A duration, or a time of one monotonic clock, in milliseconds. This target reads no clock: callers pass the time.
package typealias Milliseconds = Int64
