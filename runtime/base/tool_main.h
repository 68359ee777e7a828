// What every program of gpuc owes its caller, whatever happens to it: one line on stderr and an exit status.
#pragma once

#include "runtime/base/status.h"

namespace gpuc {

/// Runs `tool` as main: `int main(int argc, char** argv) { return gpuc::runTool(argc, argv, run); }`. What
/// ends in "error: …" and status 1: no memory, a thread that cannot be made, any other exception, in
/// whichever thread; a mapped file that is cut short; output on stdout that cannot be written, be it full or
/// closed. A limit on the size of files is an error of the write that meets it. Standard descriptors that are
/// closed stay so for reading and writing, but no file that is opened takes their numbers.
int runTool(int argc, char** argv, int (*tool)(int, char**));

/// 0; of an error 1, after "error: …" on stderr.
int exitStatus(const Status& status);

}  // namespace gpuc
