//===- ReduceGraph.h - Makes a module that shows a defect smaller -------------===//
#pragma once

namespace gpuc {

/// Registers the pass `reduce-graph`, with the option `test`: a program that is given a file, and exits with
/// something else than 0 if the module in it is interesting, as MLIR's reduction-tree asks its own. MLIR's
/// erases ops whose results are used, and can then only shrink what stands side by side, as functions do.
/// This one leaves out functions, variables and a recipe's entries, and replaces what ops give by a constant
/// or by one of their operands, until nothing more can go.
void registerReduceGraphPass();

} // namespace gpuc
