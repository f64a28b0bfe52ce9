/* The records of a trace, which the agent shares with etmem/recorder.hpp. */
#pragma once

#include "../include/etmem/trace_format.h"
