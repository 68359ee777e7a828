//===- Json.h - JSON from files that may be anyone's --------------------------===//
#pragma once

#include "runtime/base/status.h"

#include "llvm/Support/JSON.h"

namespace gpuc {

/// Errors, to be put behind a file's name: "not JSON", "nested more than 64 deep". LLVM's parser recurses,
/// and so many brackets as fit into a file would end the process.
Result<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace gpuc
