//===- OptionHelp.h - What --help of MLIR's tools leaves out -----------------===//
#pragma once

namespace gpuc {

/// LLVM's libraries register options of every code generator that was built into them. Called first in main,
/// before MLIR and gpuc have registered theirs, this leaves them out of --help; --help-hidden still lists
/// them.
void hideOptionsOfLibraries();

} // namespace gpuc
