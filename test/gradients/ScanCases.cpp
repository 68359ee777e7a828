//===- ScanCases.cpp - Loops over time ---------------------------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {
namespace {

/// A scan as text, with its region's arguments and types in one place.
struct ScanText {
  std::string head;                                          // "over(%x0) carry(%x1)", and flags
  std::vector<std::pair<std::string, std::string>> operands; // type outside, "%name: type" inside
  std::vector<std::string> results;                          // types
  std::string body;                                          // up to its gpuc.yield

  std::string text(const std::string &names) const {
    std::string outside, inside, types;
    for (const auto &[type, argument] : operands) {
      outside += (outside.empty() ? "" : ", ") + tensor(type);
      inside += (inside.empty() ? "" : ", ") + argument;
    }
    for (const std::string &type : results)
      types += (types.empty() ? "" : ", ") + tensor(type);
    return names + " = gpuc.scan " + head + " : (" + outside + ") -> (" + types + ") {\n^bb0(" + inside +
           "):\n" + body + "\n}";
  }
};

std::string argument(const std::string &name, const std::string &shape) {
  return name + ": " + tensor(real(shape));
}

/// h ← tanh(x · w + h · u), as torch.nn.RNN: batch 2, 3 features, 4 hidden.
Case rnn(const std::string &name, int64_t steps, const std::string &flags, bool finalOnly) {
  std::string t = std::to_string(steps);
  ScanText scan{"over(%x0) carry(%x1) captures(%x2, %x3) " + flags,
                {{real(t + "x2x3"), argument("%x", "2x3")},
                 {real("2x4"), argument("%h", "2x4")},
                 {real("3x4"), argument("%w", "3x4")},
                 {real("4x4"), argument("%u", "4x4")}},
                {real("2x4"), real(t + "x2x4")},
                "%a = gpuc.matmul %x, %w : (tensor<2x3x$T>, tensor<3x4x$T>) -> tensor<2x4x$T>\n"
                "%b = gpuc.matmul %h, %u : (tensor<2x4x$T>, tensor<4x4x$T>) -> tensor<2x4x$T>\n"
                "%c = gpuc.add %a, %b : tensor<2x4x$T>\n"
                "%next = gpuc.tanh %c : tensor<2x4x$T>\n"
                "gpuc.yield %next, %next : tensor<2x4x$T>, tensor<2x4x$T>"};
  Output final{"%n", real("2x4")}, all{"%y", real(t + "x2x4")};
  return {"gpuc.scan",
          name,
          {{real(t + "x2x3")}, {real("2x4")}, {real("3x4")}, {real("4x4")}},
          scan.text("%n, %y"),
          finalOnly ? std::vector<Output>{final} : std::vector<Output>{all, final}};
}

/// torch.nn.LSTM without biases of h: gates i, f, g, o from one product each of x and h, and a bias.
Case lstm(const std::string &name, int64_t steps, const std::string &flags) {
  std::string t = std::to_string(steps);
  auto gate = [](const std::string &name, int64_t start, const std::string &function) {
    return "%" + name + "s = gpuc.slice %s starts [0, " + std::to_string(start) + "] limits [2, " +
           std::to_string(start + 4) + "] strides [1, 1] : (tensor<2x16x$T>) -> tensor<2x4x$T>\n%" + name +
           " = gpuc." + function + " %" + name + "s : tensor<2x4x$T>\n";
  };
  std::string square = " : tensor<2x4x$T>\n", wide = " : tensor<2x16x$T>\n";
  ScanText scan{"over(%x0) carry(%x1, %x2) captures(%x3, %x4, %x5) " + flags,
                {{real(t + "x2x3"), argument("%x", "2x3")},
                 {real("2x4"), argument("%h", "2x4")},
                 {real("2x4"), argument("%c", "2x4")},
                 {real("3x16"), argument("%w", "3x16")},
                 {real("4x16"), argument("%u", "4x16")},
                 {real("16"), argument("%b", "16")}},
                {real("2x4"), real("2x4"), real(t + "x2x4")},
                "%p = gpuc.matmul %x, %w : (tensor<2x3x$T>, tensor<3x16x$T>) -> tensor<2x16x$T>\n"
                "%q = gpuc.matmul %h, %u : (tensor<2x4x$T>, tensor<4x16x$T>) -> tensor<2x16x$T>\n"
                "%r = gpuc.add %p, %q" +
                    wide +
                    "%d = gpuc.broadcast %b dims [1] : tensor<16x$T> to tensor<2x16x$T>\n"
                    "%s = gpuc.add %r, %d" +
                    wide + gate("i", 0, "sigmoid") + gate("f", 4, "sigmoid") + gate("g", 8, "tanh") +
                    gate("o", 12, "sigmoid") + "%k = gpuc.mul %f, %c" + square + "%m = gpuc.mul %i, %g" +
                    square + "%cn = gpuc.add %k, %m" + square + "%ct = gpuc.tanh %cn" + square +
                    "%hn = gpuc.mul %o, %ct" + square +
                    "gpuc.yield %hn, %cn, %hn : tensor<2x4x$T>, tensor<2x4x$T>, tensor<2x4x$T>"};
  return {"gpuc.scan",
          name,
          {{real(t + "x2x3")}, {real("2x4")}, {real("2x4")}, {real("3x16")}, {real("4x16")}, {real("16")}},
          scan.text("%hs, %cs, %y"),
          {{"%y", real(t + "x2x4")}, {"%hs", real("2x4")}, {"%cs", real("2x4")}}};
}

/// Nothing comes in from outside but what is carried: x ← sin(x) · w.
Case counted() {
  ScanText scan{"count 3 carry(%x0) captures(%x1)",
                {{real("5"), argument("%x", "5")}, {real("5"), argument("%w", "5")}},
                {real("5"), real("3x5")},
                "%s = gpuc.sin %x : tensor<5x$T>\n%n = gpuc.mul %s, %w : tensor<5x$T>\n"
                "gpuc.yield %n, %x : tensor<5x$T>, tensor<5x$T>"};
  return {"gpuc.scan",
          "count",
          {{real("5")}, {real("5")}},
          scan.text("%z, %y"),
          {{"%y", real("3x5")}, {"%z", real("5")}}};
}

/// No carry at all: each iteration for itself, over two inputs.
Case mapped() {
  ScanText scan{"over(%x0, %x1) captures(%x2)",
                {{real("4x3"), argument("%a", "3")},
                 {real("4x3"), argument("%b", "3")},
                 {real("3"), argument("%w", "3")}},
                {real("4x3"), real("4")},
                "%p = gpuc.mul %a, %b : tensor<3x$T>\n%q = gpuc.mul %p, %w : tensor<3x$T>\n"
                "%s = gpuc.sum %q dims [0] : (tensor<3x$T>) -> tensor<$T>\n"
                "gpuc.yield %q, %s : tensor<3x$T>, tensor<$T>"};
  return {"gpuc.scan",
          "map",
          {{real("4x3")}, {real("4x3")}, {real("3")}},
          scan.text("%y, %z"),
          {{"%y", real("4x3")}, {"%z", real("4")}}};
}

/// Two values that change places in each iteration, while one of them grows.
Case swapped() {
  ScanText scan{"over(%x0) carry(%x1, %x2)",
                {{real("3x4"), argument("%x", "4")},
                 {real("4"), argument("%a", "4")},
                 {real("4"), argument("%b", "4")}},
                {real("4"), real("4")},
                "%s = gpuc.mul %x, %a : tensor<4x$T>\n%t = gpuc.tanh %s : tensor<4x$T>\n"
                "gpuc.yield %b, %t : tensor<4x$T>, tensor<4x$T>"};
  return {"gpuc.scan",
          "swap",
          {{real("3x4")}, {real("4")}, {real("4")}},
          scan.text("%y, %z"),
          {{"%y", real("4")}, {"%z", real("4")}}};
}

/// Both values at once: neither may be overwritten before the other has it.
Case exchanged() {
  ScanText scan{"count 3 carry(%x0, %x1)",
                {{real("4"), argument("%a", "4")}, {real("4"), argument("%b", "4")}},
                {real("4"), real("4")},
                "gpuc.yield %b, %a : tensor<4x$T>, tensor<4x$T>"};
  return {"gpuc.scan",
          "exchange",
          {{real("4")}, {real("4")}},
          scan.text("%y, %z"),
          {{"%y", real("4")}, {"%z", real("4")}}};
}

/// A reader of the carried value behind who computes the next one.
Case lateReader() {
  ScanText scan{"over(%x0) carry(%x1)",
                {{real("3x2x2"), argument("%x", "2x2")}, {real("2x2"), argument("%a", "2x2")}},
                {real("2x2"), real("3x2x2")},
                "%n = gpuc.matmul %x, %a : (tensor<2x2x$T>, tensor<2x2x$T>) -> tensor<2x2x$T>\n"
                "%y = gpuc.matmul %n, %a : (tensor<2x2x$T>, tensor<2x2x$T>) -> tensor<2x2x$T>\n"
                "gpuc.yield %n, %y : tensor<2x2x$T>, tensor<2x2x$T>"};
  return {"gpuc.scan",
          "late_reader",
          {{real("3x2x2")}, {real("2x2")}},
          scan.text("%z, %y"),
          {{"%y", real("3x2x2")}, {"%z", real("2x2")}}};
}

/// Integers and conditions go through a scan, too; only the floating-point part has a derivative.
Case masked() {
  ScanText scan{
      "over(%x0, %x1) carry(%x2) reverse",
      {{real("4x3"), argument("%x", "3")}, {"4x3xi1", "%m: tensor<3xi1>"}, {real("3"), argument("%h", "3")}},
      {real("3"), real("4x3")},
      "%p = gpuc.mul %x, %h : tensor<3x$T>\n"
      "%n = gpuc.select %m, %p, %h : tensor<3xi1>, tensor<3x$T>\n"
      "gpuc.yield %n, %p : tensor<3x$T>, tensor<3x$T>"};
  return {"gpuc.scan",
          "mask",
          {{real("4x3")}, {"4x3xi1", 0, 1}, {real("3")}},
          scan.text("%z, %y"),
          {{"%y", real("4x3")}, {"%z", real("3")}}};
}

/// A scan in a scan: rows from left to right, and what comes out of them from top to bottom.
Case nested() {
  ScanText inner{"over(%row) carry(%s) captures(%v)",
                 {{real("2x3"), argument("%x", "3")},
                  {real("3"), argument("%h", "3")},
                  {real("3"), argument("%u", "3")}},
                 {real("3"), real("2x3")},
                 "%p = gpuc.mul %h, %u : tensor<3x$T>\n%q = gpuc.add %p, %x : tensor<3x$T>\n"
                 "%t = gpuc.tanh %q : tensor<3x$T>\ngpuc.yield %t, %t : tensor<3x$T>, tensor<3x$T>"};
  ScanText outer{"over(%x0) carry(%x1) captures(%x2)",
                 {{real("4x2x3"), argument("%row", "2x3")},
                  {real("3"), argument("%s", "3")},
                  {real("3"), argument("%v", "3")}},
                 {real("3"), real("4x2x3")},
                 inner.text("%n, %all") + "\ngpuc.yield %n, %all : tensor<3x$T>, tensor<2x3x$T>"};
  return {"gpuc.scan",
          "nested",
          {{real("4x2x3")}, {real("3")}, {real("3")}},
          outer.text("%z, %y"),
          {{"%y", real("4x2x3")}, {"%z", real("3")}}};
}

} // namespace

void addScanCases(Cases &cases) {
  for (int64_t steps : {1, 2, 5}) {
    cases.push_back(rnn("rnn_" + std::to_string(steps), steps, "", false));
    cases.push_back(lstm("lstm_" + std::to_string(steps), steps, ""));
  }
  cases.push_back(rnn("rnn_reverse", 5, "reverse", false));
  cases.push_back(rnn("rnn_final", 5, "", true));
  cases.push_back(rnn("rnn_recompute", 5, "recompute", false));
  cases.push_back(lstm("lstm_reverse", 3, "reverse"));
  cases.push_back(lstm("lstm_recompute", 3, "reverse recompute"));
  for (Case described : {counted(), mapped(), swapped(), exchanged(), lateReader(), masked(), nested()})
    cases.push_back(described);
}

} // namespace gpuc::gradients
