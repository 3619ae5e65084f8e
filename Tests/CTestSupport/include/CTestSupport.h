/* SPDX-License-Identifier: GPL-3.0-or-later
 * Makes a write to a closed pipe or socket an error in every test, before the first of them runs. */
#pragma once
void ctestsupport_link(void);
