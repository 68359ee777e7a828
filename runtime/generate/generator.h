// Token after token out of a plan's predict.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/generate/sampling.h"
#include "runtime/gpuc.h"

namespace gpuc {

/// Runs `predict` of a language model: input `x` [batch, length] of i32 or i64, first output [batch, length,
/// vocabulary] of f32 or f64, in which position i follows from tokens 0 … i alone (nothing here can check
/// that). The first row of the batch is the text; other rows and inputs are zeros.
///
/// An output whose name ends in n, where an input's ends in 0, is what that input is once all of x is read:
/// the states h0 and hn, c0 and cn of an LSTM. They are zeros at the start of the text and carried on from
/// there.
class Generator {
 public:
  /// `session` must outlive the generator; its variables hold the model's weights. Errors name the input or
  /// output that is not there or of another shape.
  static Result<Generator> create(Session& session, const SamplingOptions& options);

  int64_t vocabulary() const { return vocabulary_; }

  /// Adds a token to the text; it lies in [0, vocabulary).
  void append(int64_t token) { text_.push_back(token); }

  /// Draws the token that follows the text (which must not be empty), adds it and returns it. A model without
  /// states sees the last `length` tokens, one with states all of them.
  Result<int64_t> next();

 private:
  Generator(Session& session, ProgramId predict, const SamplingOptions& options);
  size_t fillWindow();
  Status runPredict();
  void readLogits(size_t position);
  void carryStates();

  struct CarriedState {
    size_t input, output;  // of predict
  };
  static Result<std::vector<CarriedState>> findStates(const ProgramInfo& predict);

  Session* session_;
  ProgramId predict_;
  TokenSampler sampler_;
  size_t x_ = 0;  // which of the inputs
  int64_t length_ = 0;
  int64_t vocabulary_ = 0;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<CarriedState> states_;
  std::vector<int64_t> text_;
  size_t begin_ = 0;  // where the window is in the text
  std::vector<double> logits_;
};

struct GenerateOptions {
  std::string plan;
  std::vector<std::string> variables;
  std::string prompt;         // text, or
  std::string prompt_tokens;  // numbers
  int64_t tokens = 0;
  SamplingOptions sampling;
  std::string device = "auto";
  int64_t threads = 0;
};

/// Writes the prompt and `tokens` tokens more to stdout, each as soon as it is there: as bytes after a prompt
/// of text, else as numbers.
Status generate(const GenerateOptions& options);

}  // namespace gpuc
