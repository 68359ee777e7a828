#include "runtime/generate/generator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/base/file.h"
#include "runtime/base/integer_range.h"
#include "runtime/base/warn.h"
#include "runtime/generate/prompt.h"
#include "runtime/weights/variable_store.h"

namespace gpuc {
namespace {

template <typename Float>
void copyLogits(const void* data, size_t first, std::vector<double>& destination) {
  const Float* row = static_cast<const Float*>(data) + first;
  std::copy(row, row + destination.size(), destination.begin());
}

Result<size_t> findX(const ProgramInfo& predict) {
  for (size_t i = 0; i < predict.inputs.size(); ++i) {
    const TensorSpec& spec = predict.inputs[i].spec;
    if (spec.name != "x") continue;
    if (spec.shape.size() != 2 || (spec.type != DataType::i32 && spec.type != DataType::i64))
      return Status::error("predict's input x is " + spec.str() +
                           ", but text needs tokens: i32 or i64 of [batch, length]");
    return i;
  }
  return Status::error("predict has no input x, which is what takes tokens: this is no model of text");
}

Status checkLogits(const ProgramInfo& predict, const TensorSpec& x) {
  if (predict.outputs.empty()) return Status::error("predict has no output");
  const TensorSpec& logits = predict.outputs[0];
  bool is_float = logits.type == DataType::f32 || logits.type == DataType::f64;
  if (is_float && logits.shape.size() == 3 && logits.shape[0] == x.shape[0] && logits.shape[1] == x.shape[1])
    return okStatus();
  return Status::error("predict's output " + logits.name + " is " + logits.str() +
                       ", but text needs logits for each token of x (" + x.str() +
                       "): f32 or f64 of [batch, length, vocabulary]");
}

Status flushStdout() { return std::fflush(stdout) == 0 ? okStatus() : systemError("write", "stdout"); }

Status writeToken(int64_t token, bool as_text, bool first) {
  if (as_text)
    std::putchar(static_cast<int>(token));
  else
    std::printf(first ? "%lld" : " %lld", static_cast<long long>(token));
  return flushStdout();
}

/// One line, in as far as it comes.
Status writeTokens(Generator& generator, const std::vector<int64_t>& prompt, int64_t tokens, bool as_text) {
  for (size_t i = 0; i < prompt.size(); ++i) {
    generator.append(prompt[i]);
    GPUC_RETURN_IF_ERROR(writeToken(prompt[i], as_text, i == 0));
  }
  for (int64_t i = 0; i < tokens; ++i) {
    GPUC_ASSIGN_OR_RETURN(int64_t token, generator.next());
    GPUC_RETURN_IF_ERROR(writeToken(token, as_text, false));
  }
  return okStatus();
}

}  // namespace

Generator::Generator(Session& session, ProgramId predict, const SamplingOptions& options)
    : session_(&session), predict_(predict), sampler_(options) {}

Result<Generator> Generator::create(Session& session, const SamplingOptions& options) {
  GPUC_ASSIGN_OR_RETURN(ProgramId id, session.program("predict"));
  const ProgramInfo& predict = session.plan().info().programs[id.index];
  Generator generator(session, id, options);
  GPUC_ASSIGN_OR_RETURN(generator.x_, findX(predict));
  const TensorSpec& x = predict.inputs[generator.x_].spec;
  GPUC_RETURN_IF_ERROR(checkLogits(predict, x));
  GPUC_ASSIGN_OR_RETURN(generator.states_, findStates(predict));
  generator.length_ = x.shape[1];
  generator.vocabulary_ = predict.outputs[0].shape[2];
  generator.logits_.resize(static_cast<size_t>(generator.vocabulary_));
  for (const InputInfo& input : predict.inputs)
    generator.inputs_.emplace_back(static_cast<size_t>(input.spec.sizeBytes()));
  return generator;
}

Result<std::vector<Generator::CarriedState>> Generator::findStates(const ProgramInfo& predict) {
  std::vector<CarriedState> states;
  for (size_t i = 0; i < predict.inputs.size(); ++i) {
    const TensorSpec& before = predict.inputs[i].spec;
    if (before.name.size() < 2 || before.name.back() != '0') continue;
    const std::string name = before.name.substr(0, before.name.size() - 1) + "n";
    for (size_t j = 0; j < predict.outputs.size(); ++j) {
      const TensorSpec& after = predict.outputs[j];
      if (after.name != name) continue;
      if (after.type != before.type || after.shape != before.shape)
        return Status::error("predict takes the state " + before.name + ", " + before.str() + ", but gives " +
                             name + ", " + after.str() + ": a state goes out as it comes in");
      states.push_back({i, j});
    }
  }
  return states;
}

/// Puts the text that the model has not left behind at the start of the window; what follows is zeros, which
/// no earlier position sees. Returns how many tokens it is.
size_t Generator::fillWindow() {
  const auto length = static_cast<size_t>(length_);
  if (states_.empty() && text_.size() > length) begin_ = text_.size() - length;
  size_t count = std::min(text_.size() - begin_, length);
  std::fill(inputs_[x_].begin(), inputs_[x_].end(), std::byte{0});
  const DataType type = session_->plan().info().programs[predict_.index].inputs[x_].spec.type;
  for (size_t i = 0; i < count; ++i)
    storeInteger(inputs_[x_].data(), type, static_cast<int64_t>(i), text_[begin_ + i]);
  return count;
}

Status Generator::runPredict() {
  const ProgramInfo& predict = session_->plan().info().programs[predict_.index];
  std::vector<HostTensorView> views;
  for (size_t i = 0; i < inputs_.size(); ++i) views.emplace_back(inputs_[i].data(), predict.inputs[i].spec);
  GPUC_RETURN_IF_ERROR(session_->run(predict_, views));
  return session_->wait();
}

/// Leaves behind a window that was full: what the model knows of it is in its states.
void Generator::carryStates() {
  for (const CarriedState& state : states_)
    std::memcpy(inputs_[state.input].data(), session_->output(predict_, state.output).data,
                inputs_[state.input].size());
  begin_ += static_cast<size_t>(length_);
}

void Generator::readLogits(size_t position) {
  HostTensorView output = session_->output(predict_, 0);
  size_t first = position * logits_.size();
  if (output.type == DataType::f64)
    copyLogits<double>(output.data, first, logits_);
  else
    copyLogits<float>(output.data, first, logits_);
}

Result<int64_t> Generator::next() {
  for (bool ends = false; !ends;) {
    size_t count = fillWindow();
    GPUC_RETURN_IF_ERROR(runPredict());
    ends = begin_ + count == text_.size();
    if (ends) readLogits(count - 1);
    if (!states_.empty() && count == static_cast<size_t>(length_)) carryStates();
  }
  GPUC_ASSIGN_OR_RETURN(int64_t token, sampler_.draw(logits_));
  append(token);
  return token;
}

Status generate(const GenerateOptions& options) {
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::load(options.plan));
  GPUC_ASSIGN_OR_RETURN(
      Session session,
      Session::create(plan, {.device = options.device, .threads = static_cast<int>(options.threads)}));
  for (const std::string& warning : session.warnings()) warn(warning);
  GPUC_ASSIGN_OR_RETURN(Generator generator, Generator::create(session, options.sampling));
  bool as_text = options.prompt_tokens.empty();
  GPUC_ASSIGN_OR_RETURN(std::vector<int64_t> prompt,
                        as_text ? tokensOfText(options.prompt, generator.vocabulary())
                                : tokensOfNumbers(options.prompt_tokens, generator.vocabulary()));
  GPUC_RETURN_IF_ERROR(VariableStore(session).startFrom(options.variables));

  // What was written ends its line before an error begins its own.
  const Status written = writeTokens(generator, prompt, options.tokens, as_text);
  std::putchar('\n');
  const Status flushed = flushStdout();
  return written.ok() ? flushed : written;
}

}  // namespace gpuc
