// Which tool has the flag that another one was given. People try the flag where they are: --epochs when they
// compile, --lr when they train, PyTorch's --nproc_per_node anywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuc {

/// A flag and whose it is; a tool that takes all flags of a prefix ("mlir-") has that.
struct ToolFlag {
  std::string_view tool, flag;
};

/// The flags of all tools, as their sources declare them, and the passes of gpuc-opt: read from tools/ and
/// passes/ when this is built (cmake/ToolFlags.cmake).
std::span<const ToolFlag> toolFlags();

/// What other programs call something, and what it is here: flags as one writes them, of which the tool's own
/// is meant before another's, or else a sentence.
struct Habit {
  std::string_view words;  // with blanks between them
  std::vector<std::string_view> flags;
  std::string_view sentence = {};
};
const std::vector<Habit>& habits();

/// What a tool with the flags `own`, to which `name` is unknown, says of it: "did you mean --epochs?", "did
/// you mean --optimizer=adam:lr=… of gpuc-compile?", "--epochs is a flag of gpuc-train".
std::string suggestFlag(const std::vector<std::string>& own, const std::string& name);

}  // namespace gpuc
