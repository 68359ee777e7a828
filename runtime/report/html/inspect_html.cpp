// A page that needs nothing else: what a plan holds, as pictures. The training step comes first.
#include <vector>

#include "runtime/report/html/markup.h"
#include "runtime/report/html/memory_picture.h"
#include "runtime/report/html/page_files.h"
#include "runtime/report/html/roofline_picture.h"
#include "runtime/report/html/streams_picture.h"
#include "runtime/report/html/tradeoff_picture.h"
#include "runtime/report/inspect.h"
#include "runtime/report/programs.h"

namespace gpuc {
namespace {

std::string headOf(const PlanInfo& info) {
  const std::string name = html::escaped(info.name);
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width\">"
         "<meta name=\"color-scheme\" content=\"light dark\"><title>" +
         name + "</title>\n<style>\n" + html::kPageCss + "</style></head><body>\n<h1>" + name + " for " +
         nameOf(info.target) + " (" + html::escaped(info.target_name) + "), batch " +
         std::to_string(info.batch) + "</h1>\n<p>One arena of " + html::bytesText(info.arena_bytes) +
         ". From left to right: the commands of a run. From bottom to top: MiB of the arena.</p>\n";
}

void drawProgram(const fb::Plan& plan, const fb::Program& program, bool is_first,
                 const std::vector<Residual>& residuals, const PageFiles& files, const TextSink& sink) {
  const Timeline timeline(plan, program);
  sink(std::string(is_first ? "<details open>" : "<details>") + "<summary><h2>" +
       html::escaped(textOf(program.name())) + "</h2> " + html::countText(timeline.length(), "command") +
       " that touch memory, needs " + html::bytesText(program.peak_bytes()) + "</summary>\n");
  html::drawMemory(plan, program, timeline, residuals, sink);
  if (countOf(program.streams()) > 1) html::drawStreams(plan, program, timeline, sink);
  if (files.report) html::drawRoofline(*files.report, textOf(program.name()), sink);
  if (is_first && !files.tradeoff.empty()) html::drawTradeoff(files.tradeoff, sink);
  sink("</details>\n");
}

}  // namespace

void inspectHtml(const Plan& plan, const PageFiles& files, const TextSink& sink) {
  const fb::Plan& root = plan.root();
  sink(headOf(plan.info()) + html::memoryKey());
  const std::vector<Residual> residuals = residualsOf(root);
  const std::vector<const fb::Program*> programs = trainStepFirst(root);
  for (const fb::Program* program : programs)
    drawProgram(root, *program, program == programs.front(), residuals, files, sink);
  sink(std::string("<script>\n") + html::kPageScript + "</script></body></html>\n");
}

std::string inspectHtml(const Plan& plan, const PageFiles& files) {
  std::string text;
  inspectHtml(plan, files, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace gpuc
