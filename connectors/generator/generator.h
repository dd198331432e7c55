/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONNECTORS_GENERATOR_GENERATOR_H
#define CONNECTORS_GENERATOR_GENERATOR_H

#include <weir/source.h>

extern const weir_source_ops weir_generator_source_ops;

#endif
