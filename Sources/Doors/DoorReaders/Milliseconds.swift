// SPDX-License-Identifier: GPL-3.0-or-later

/// A time span, or a moment of one monotonic clock, in milliseconds. This target reads no clock: whoever gives it a
/// report says when it was heard, and whoever asks says what time it is.
package typealias Milliseconds = Int64
