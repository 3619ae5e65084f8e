/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <eac/eac.h>
#include <eac/ca.h>
#include <eac/cv_cert.h>
#include <eac/objects.h>
#include <eac/pace.h>
#include <eac/ri.h>
#include <eac/ta.h>
