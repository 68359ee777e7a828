//===- Updates.h - Launches that make new values of variables ---------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "passes/codegen/Codegen.h"

namespace gpuc {

/// Whether the launch, of a kernel of this body, computes new values of variables, one at least from its old,
/// element by element.
bool isUpdate(plan::LaunchOp launch, mlir::Block &body);

/// The tiles in which the host computes the product, if it can hand them to an update.
std::optional<ProductTiles> tilesForUpdate(plan::ProductOpInterface product);

/// Whether the product makes a gradient that would not be stored if nobody but an update read it.
bool canUpdateInProduct(plan::ProductOpInterface product);

/// How often plan-group-launches has looked, in this process, whether a launch can stand where a group does,
/// for tests: it must grow as the number of launches does.
uint64_t launchGroupLooks();

} // namespace gpuc
