//===- Recurrent.h - RNN, LSTM and GRU --------------------------------------===//
//
// Formulas, parameters, layouts and initial values are those of PyTorch's modules of the same names
// (torch.nn.RNN, LSTM and GRU, 1.13). Two things are not: sequences are [batch, time, width] unless
// `batchFirst` is false, and states then have the batch first too, since a batch that is not known yet leads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/builder/Module.h"

namespace gpuc::nn {

/// What one step computes of x_t, h and, in an LSTM, c. With a = x_t · weight_ihᵀ + bias_ih and
/// b = h · weight_hhᵀ + bias_hh, whose columns are the gates, one after another:
enum class Cell {
  rnnTanh, ///< h' = tanh(a + b)
  rnnRelu, ///< h' = max(a + b, 0)
  lstm,    ///< i, f, g, o of a + b: c' = σ(f) · c + σ(i) · tanh(g), h' = σ(o) · tanh(c')
  gru,     ///< r, z = σ(a + b), n = tanh(a_n + r · b_n): h' = (1 - z) · n + z · h
};

struct RecurrentOptions {
  int64_t layers = 1; ///< Each takes what the one below gives.
  bool bias = true;
  bool batchFirst = true; ///< [batch, time, width]; else [time, batch, width], of a batch that is known.
  double dropout = 0;     ///< Between layers, in [0, 1); so there must be two.
  bool bidirectional = false;
};

/// What goes into a recurrent module beside the sequences; all of it may be left out.
struct RecurrentInputs {
  /// What the first step finds, zeros if not given: [batch, layers · directions, hidden], or [layers ·
  /// directions, batch, hidden] if the batch is not first. Index 2 · layer + 1 goes in reverse if there are
  /// two directions. An LSTM takes both h0 and c0, or neither.
  Tensor h0 = {}, c0 = {};
  /// i32 or i64 [batch]: how many steps of each row count. A step at or beyond leaves the state as it is and
  /// gives 0, as PyTorch's pack_padded_sequence and pad_packed_sequence; in reverse a row so begins at its
  /// last step. Unlike there a row may have no step at all.
  Tensor lengths = {};
};

/// What comes out: `output` has h of the last layer after each step, [batch, time, directions · hidden];
/// `hn` and an LSTM's `cn` have the states after the last step of each row, in the shape of h0.
struct Recurrence {
  Tensor output, hn, cn;
};

/// Layers of one kind of cell over time, in a loop that is never unrolled. Parameters of layer k, uniform in
/// ±1/√hidden: `weight_ih_lk` [gates · hidden, in], `weight_hh_lk` [gates · hidden, hidden], `bias_ih_lk` and
/// `bias_hh_lk` [gates · hidden]; those of the other direction end in `_reverse`.
class Recurrent : public Module {
public:
  Recurrent(Cell cell, int64_t in, int64_t hidden, const RecurrentOptions &options = {})
      : cell_(cell), in_(in), hidden_(hidden), options_(options) {}
  std::string describe() const override;

  /// x [batch, time, in] or, if the batch is not first, [time, batch, in]. All that is returned is empty
  /// after an error.
  Recurrence operator()(const Tensor &x, const RecurrentInputs &given = {});

private:
  using State = std::vector<Tensor>; // h, and an LSTM's c: (batch, hidden)

  int64_t directions() const { return options_.bidirectional ? 2 : 1; }
  int64_t timeDim() const { return options_.batchFirst ? 1 : 0; }
  int64_t batchDim() const { return options_.batchFirst ? 0 : 1; }
  bool check(const Tensor &x, const RecurrentInputs &given) const;
  bool checkOptions(detail::Graph &graph) const;
  bool checkState(const Tensor &x, const Tensor &state, const char *name) const;
  State initialState(const Tensor &x, const RecurrentInputs &given, int64_t index) const;
  std::vector<Tensor> parametersOf(const Tensor &x, int64_t layer, bool reverse);
  Recurrence run(const Tensor &x, const RecurrentInputs &given);
  Tensor runLayer(const Tensor &x, const RecurrentInputs &given, const Tensor &counts, int64_t layer,
                  std::vector<State> &finals);

  Cell cell_;
  int64_t in_, hidden_;
  RecurrentOptions options_;
};

/// h' = tanh(a + b), or max(a + b, 0) with `relu` [Elman 1990].
class RNN : public Recurrent {
public:
  RNN(int64_t in, int64_t hidden, const RecurrentOptions &options = {}, bool relu = false)
      : Recurrent(relu ? Cell::rnnRelu : Cell::rnnTanh, in, hidden, options) {}
};

/// Gates i, f, g, o [Hochreiter and Schmidhuber 1997].
class LSTM : public Recurrent {
public:
  LSTM(int64_t in, int64_t hidden, const RecurrentOptions &options = {})
      : Recurrent(Cell::lstm, in, hidden, options) {}
};

/// Gates r, z, n [Cho et al. 2014], with bias_hh's part of n inside of r's product, as cuDNN has it.
class GRU : public Recurrent {
public:
  GRU(int64_t in, int64_t hidden, const RecurrentOptions &options = {})
      : Recurrent(Cell::gru, in, hidden, options) {}
};

} // namespace gpuc::nn
