// What gpuc-inspect shows of a plan: a table, JSON, or a page of pictures.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/report/compiler_files.h"

namespace gpuc {

/// Takes a text piece by piece. All of it may be many times as long as the plan: each operand brings its
/// buffer's name.
using TextSink = std::function<void(std::string_view)>;

/// Programs with their inputs and outputs, and the plan's size. `variables` and `activations` add a table of
/// each.
void inspectText(const Plan& plan, bool variables, bool activations, const TextSink& sink);
std::string inspectText(const Plan& plan, bool variables, bool activations);

/// {target, libraries, variables: [{name, shape, dtype, kind, bytes, offset}], entries: {NAME: {inputs:
/// [{name, shape, dtype, range}], outputs: [{name, shape, dtype}], peak_bytes}}, buffers, commands}; hidden
/// inputs are not listed.
void inspectJson(const Plan& plan, const TextSink& sink);
std::string inspectJson(const Plan& plan);

/// What gpuc-compile told of a plan, as far as it is at hand.
struct PageFiles {
  std::optional<CompilerReport> report;
  std::vector<TradeoffPoint> tradeoff;
};

/// A page that needs nothing else: for each program the arena over time, the training step first; its
/// streams, if there are several; of what is in `files` a roofline, and what memory could have been traded
/// for.
void inspectHtml(const Plan& plan, const PageFiles& files, const TextSink& sink);
std::string inspectHtml(const Plan& plan, const PageFiles& files = {});

}  // namespace gpuc
