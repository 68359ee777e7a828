// Modules as text: bytes spell a random graph, or name a test file of the repository and how it is changed:
// its numbers become extreme, its values, types and names change places. The compiler makes a plan of it, or
// says one line. What it makes is fed back as text of its own stage, changed once more.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "dialects/plan/PlanOps.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Compiler.h"
#include "runtime/base/file.h"
#include "test/fuzz/fuzz_check.h"

namespace {

/// The input as a list of choices; zeros once it is used up.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t byte() { return at_ >= size_ ? 0 : data_[at_++]; }
  size_t below(size_t limit) { return (byte() << 8 | byte()) % std::max<size_t>(limit, 1); }
  bool oneOf(size_t many) { return below(many) == 0; }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

//===----------------------------------------------------------------------===//
// Random graphs
//===----------------------------------------------------------------------===//

using Shape = std::vector<int64_t>;

std::string typeText(const Shape& shape, const std::string& element = "f32") {
  std::string text = "tensor<";
  for (int64_t extent : shape) text += (extent < 0 ? "?" : std::to_string(extent)) + "x";
  return text + element + ">";
}

std::string list(const Shape& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

/// Ops of one function, each of earlier values, mostly of late ones that others read too.
class Graph {
 public:
  Graph(Choices& choices, int functions) : choices_(choices), functions_(functions) {}

  std::string text;

  void add(const std::string& name, Shape shape) { values_.push_back({name, std::move(shape)}); }

  void grow(size_t ops) {
    for (size_t i = 0; i < ops; ++i) op();
  }

  /// The last value, as a sum if it has another shape than `shape`.
  std::string resultOf(const Shape& shape) {
    Value value = values_.back();
    if (value.shape == shape) return value.name;
    return sumTo(value, shape);
  }

 private:
  struct Value {
    std::string name;
    Shape shape;
  };

  Value pick() {
    size_t count = values_.size();
    return values_[choices_.oneOf(3) ? choices_.below(count)
                                     : count - 1 - choices_.below(std::min<size_t>(count, 4))];
  }

  std::string fresh() { return "%v" + std::to_string(next_++); }

  void op() {
    Value a = pick();
    std::string type = typeText(a.shape), name = fresh();
    switch (choices_.below(12)) {
      case 0:
      case 1: {
        static const char* const kUnary[] = {"exp", "tanh",    "relu", "neg",
                                             "abs", "sigmoid", "sqrt", "stop_gradient"};
        put(name, std::string(kUnary[choices_.below(std::size(kUnary))]) + " " + a.name + " : " + type,
            a.shape);
        break;
      }
      case 2:
      case 3:
      case 4: {
        static const char* const kBinary[] = {"add", "sub", "mul", "div", "max", "min"};
        Value b = pick();
        if (b.shape != a.shape) b = a;
        put(name,
            std::string(kBinary[choices_.below(std::size(kBinary))]) + " " + a.name + ", " + b.name + " : " +
                type,
            a.shape);
        break;
      }
      case 5:
        if (a.shape.empty()) break;
        {
          size_t dim = choices_.below(a.shape.size());
          Shape left;
          for (size_t d = 0; d < a.shape.size(); ++d)
            if (d != dim) left.push_back(a.shape[d]);
          std::string sum = fresh(), small = typeText(left);
          put(sum, "sum " + a.name + " dims [" + std::to_string(dim) + "] : (" + type + ") -> " + small,
              left);
          Shape dims;
          for (size_t d = 0; d < a.shape.size(); ++d)
            if (d != dim) dims.push_back(static_cast<int64_t>(d));
          put(name, "broadcast " + sum + " dims " + list(dims) + " : " + small + " to " + type, a.shape);
        }
        break;
      case 6: {
        Shape permutation(a.shape.size()), moved(a.shape.size());
        for (size_t d = 0; d < a.shape.size(); ++d) {
          permutation[d] = static_cast<int64_t>(a.shape.size() - 1 - d);
          moved[d] = a.shape[a.shape.size() - 1 - d];
        }
        put(name,
            "transpose " + a.name + " permutation " + list(permutation) + " : (" + type + ") -> " +
                typeText(moved),
            moved);
        break;
      }
      case 7: {
        Shape starts(a.shape.size()), limits(a.shape), strides(a.shape.size(), 1), cut(a.shape);
        for (size_t d = 0; d < a.shape.size(); ++d)
          if (a.shape[d] > 1 && choices_.oneOf(2)) {
            starts[d] = static_cast<int64_t>(choices_.below(2));
            cut[d] = limits[d] - starts[d];
          }
        put(name,
            "slice " + a.name + " starts " + list(starts) + " limits " + list(limits) + " strides " +
                list(strides) + " : (" + type + ") -> " + typeText(cut),
            cut);
        break;
      }
      case 8: {
        Value b = pick();
        if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[1] != b.shape[0]) break;
        Shape shape = {a.shape[0], b.shape[1]};
        put(name,
            "matmul " + a.name + ", " + b.name + " : (" + type + ", " + typeText(b.shape) + ") -> " +
                typeText(shape),
            shape);
        break;
      }
      case 9: {
        if (a.shape.empty()) break;
        Shape shape = a.shape;
        shape[0] *= 2;
        if (shape[0] > 64) break;
        put(name,
            "concat " + a.name + ", " + a.name + " dim 0 : (" + type + ", " + type + ") -> " +
                typeText(shape),
            shape);
        break;
      }
      case 10:
        if (a.shape.empty()) break;
        put(name,
            "softmax " + a.name + " dim " + std::to_string(choices_.below(a.shape.size())) + " : " + type,
            a.shape);
        break;
      case 11:
        if (functions_ == 0 || a.shape != Shape{4, 4}) break;
        text += "  " + name + " = func.call @f" + std::to_string(choices_.below(functions_)) + "(" + a.name +
                ") : (" + type + ") -> " + type + "\n";
        values_.push_back({name, a.shape});
        break;
    }
  }

  void put(const std::string& name, const std::string& op, const Shape& shape) {
    text += "  " + name + " = gpuc." + op + "\n";
    values_.push_back({name, shape});
  }

  std::string sumTo(const Value& value, const Shape& shape) {
    Shape dims(value.shape.size());
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
    std::string sum = fresh(), name = fresh();
    put(sum,
        "sum " + value.name + " dims " + list(dims) + " : (" + typeText(value.shape) + ") -> tensor<f32>",
        {});
    if (shape.empty()) return sum;
    put(name, "broadcast " + sum + " dims [] : tensor<f32> to " + typeText(shape), shape);
    return name;
  }

  Choices& choices_;
  int functions_;
  std::vector<Value> values_;
  int next_ = 0;
};

/// Functions that call one another, a loss over a variable, and a recipe, or only a prediction.
std::string randomModel(Choices& choices) {
  const int functions = static_cast<int>(choices.below(5));
  std::string text = "module {\n  gpuc.variable @w : tensor<4x4xf32> init normal\n";
  for (int f = 0; f < functions; ++f) {
    Graph graph(choices, f);
    graph.add("%x", {4, 4});
    graph.grow(choices.below(8));
    std::string result = graph.resultOf({4, 4});
    text += "func.func private @f" + std::to_string(f) + "(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {\n" +
            graph.text + "  return " + result + " : tensor<4x4xf32>\n}\n";
  }
  const bool trains = choices.oneOf(2);
  Graph graph(choices, functions);
  graph.text = "  %w = gpuc.read @w : tensor<4x4xf32>\n";
  graph.add("%x", {4, 4});
  graph.add("%w", {4, 4});
  graph.grow(4 + choices.below(40));
  std::string result = graph.resultOf(trains ? Shape{} : Shape{4, 4});
  if (!trains)
    return text + "func.func @predict(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {\n" + graph.text +
           "  return " + result + " : tensor<4x4xf32>\n}\n}\n";
  return text + "func.func @loss(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<f32>) {\n" + graph.text +
         "  %one = gpuc.constant 1.0 : tensor<f32>\n  return " + result +
         ", %one : tensor<f32>, tensor<f32>\n}\n" +
         "gpuc.recipe { loss = @loss, batch = 4, optimizer = adam(lr = 0.1) }\n}\n";
}

//===----------------------------------------------------------------------===//
// Changed text
//===----------------------------------------------------------------------===//

/// The cases of the repository's own tests, in the order of their files' names.
const std::vector<std::string>& testCases() {
  static const std::vector<std::string> cases = [] {
    std::vector<std::filesystem::path> files;
    for (const char* folder : {"/passes", "/dialects"})
      for (const auto& entry :
           std::filesystem::recursive_directory_iterator(GPUC_TEST_SOURCE + std::string(folder)))
        if (entry.path().extension() == ".mlir") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<std::string> found;
    for (const auto& file : files) {
      std::string text = *gpuc::readFile(file.string());
      for (size_t begin = 0; begin < text.size();) {
        size_t end = std::min(text.find("// -----", begin), text.size());
        if (end - begin < 20'000) found.push_back(text.substr(begin, end - begin));
        begin = end + 8;
      }
    }
    return found;
  }();
  return cases;
}

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
}

/// Numbers, names of values and symbols, types of tensors, and single characters otherwise.
struct Token {
  enum Kind { kNumber, kValue, kSymbol, kType, kOther } kind;
  std::string text;
};

std::vector<Token> tokensOf(const std::string& text) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    Token::Kind kind = Token::kOther;
    if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (text.compare(at, 7, "tensor<") == 0 && text.find('>', at) != std::string::npos) {
      end = text.find('>', at) + 1;
      kind = Token::kType;
    } else if (text[at] == '%' || text[at] == '@') {
      kind = text[at] == '%' ? Token::kValue : Token::kSymbol;
      while (end < text.size() && isWord(text[end])) ++end;
    } else if (isWord(text[at])) {
      while (end < text.size() && isWord(text[end])) ++end;
      char first = text[at] == '-' && end > at + 1 ? text[at + 1] : text[at];
      if (std::isdigit(static_cast<unsigned char>(first))) kind = Token::kNumber;
    }
    tokens.push_back({kind, text.substr(at, end - at)});
    at = end;
  }
  return tokens;
}

std::string extreme(Choices& choices) {
  static const char* const kNumbers[] = {"0",
                                         "-1",
                                         "1",
                                         "2",
                                         "3",
                                         "7",
                                         "64",
                                         "127",
                                         "1000",
                                         "65536",
                                         "2147483647",
                                         "2147483648",
                                         "4294967296",
                                         "281474976710656",
                                         "1099511627776",
                                         "4611686018427387904",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "18446744073709551615",
                                         "1e300",
                                         "-0.0",
                                         "0x7FF0000000000000",
                                         "0.5"};
  return kNumbers[choices.below(std::size(kNumbers))];
}

std::string oddType(Choices& choices) {
  static const char* const kTypes[] = {"tensor<f32>",
                                       "tensor<4xf32>",
                                       "tensor<?xf32>",
                                       "tensor<0xf32>",
                                       "tensor<4xi1>",
                                       "tensor<4xi64>",
                                       "tensor<4xindex>",
                                       "tensor<4xbf16>",
                                       "tensor<4xi7>",
                                       "i1",
                                       "index",
                                       "f32",
                                       "tuple<>",
                                       "tensor<*xf32>",
                                       "vector<4xf32>",
                                       "memref<4xf32>",
                                       "tensor<4xcomplex<f32>>",
                                       "tensor<4611686018427387904xf32>",
                                       "tensor<2147483648x2147483648x2147483648xf64>",
                                       "!plan.buffer",
                                       "none",
                                       "tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>"};
  return kTypes[choices.below(std::size(kTypes))];
}

/// One to four tokens become others, of the text or extreme.
std::string changed(const std::string& text, Choices& choices) {
  std::vector<Token> tokens = tokensOf(text);
  std::vector<size_t> places;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].kind != Token::kOther || tokens[i].text.size() > 2) places.push_back(i);
  if (places.empty()) return text;
  for (size_t change = 1 + choices.below(4); change > 0; --change) {
    Token& token = tokens[places[choices.below(places.size())]];
    std::vector<size_t> alike;
    for (size_t place : places)
      if (tokens[place].kind == token.kind) alike.push_back(place);
    const std::string other = tokens[alike[choices.below(alike.size())]].text;
    switch (choices.below(4)) {
      case 0:
        token.text = other;
        break;
      case 1:
        if (token.kind == Token::kNumber)
          token.text = extreme(choices);
        else if (token.kind == Token::kType)
          token.text = oddType(choices);
        else
          token.text = other;
        break;
      case 2:
        if (token.kind == Token::kType) {  // another extent
          size_t digit = token.text.find_first_of("0123456789");
          if (digit != std::string::npos) token.text.replace(digit, 1, extreme(choices));
        } else {
          token.text = token.kind == Token::kNumber ? extreme(choices) : other;
        }
        break;
      case 3:
        token.text = choices.oneOf(2) ? "" : token.text + " " + token.text;
        break;
    }
  }
  std::string joined;
  for (const Token& token : tokens) joined += token.text;
  return joined;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

void requireLine(const gpuc::Status& status) {
  if (!status.ok()) gpuc::requireOneLine(status, "");
  gpuc::require(status.ok() || !status.message().empty(), "an error says something");
}

/// The text of the module at `stage`; empty if there was an error.
std::string compile(const std::string& text, gpuc::Stage stage, Choices& choices) {
  gpuc::Compiler compiler;
  auto module = compiler.parse(text, "module.mlir");
  if (!module.ok()) return requireLine(module.status()), "";
  gpuc::CompilerOptions options;
  options.threads = 1;
  options.optLevel = 0;
  options.train.fuse = !choices.oneOf(8);
  options.train.checkNumerics = choices.oneOf(8);
  if (gpuc::stageOf(**module) < gpuc::Stage::commands && choices.oneOf(8)) options.target = "cuda:sm_90";
  gpuc::Status status =
      compiler.advance(**module, stage, options, [](mlir::PassManager&) { return gpuc::okStatus(); });
  if (!status.ok()) return requireLine(status), "";
  std::string made;
  llvm::raw_string_ostream stream(made);
  (*module)->print(stream);
  const bool isHost = options.target == "auto" && made.find("plan.target<cuda") == std::string::npos;
  if (stage == gpuc::Stage::plan && isHost && choices.oneOf(16)) {
    gpuc::Result<std::string> plan = compiler.emit(**module, options);
    if (!plan.ok()) requireLine(plan.status());
  }
  return made;
}

/// How many inputs became something: where none does, nothing is tested.
struct Tally {
  int inputs = 0, stages = 0, again = 0;
  ~Tally() {
    std::printf("of %d modules %d were compiled, and %d of these once more\n", inputs, stages, again);
  }
};

void hang(int) {
  static const char kText[] = "error: the compiler does not come to an end\n";
  (void)!::write(STDERR_FILENO, kText, sizeof kText - 1);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Tally tally;
  std::signal(SIGALRM, hang);
  ::alarm(120);
  Choices choices(data, size);
  const bool random = choices.oneOf(2);
  std::string text = random ? randomModel(choices) : testCases()[choices.below(testCases().size())];
  if (!random || choices.oneOf(4)) text = changed(text, choices);
  const gpuc::Stage stage = choices.oneOf(4) ? gpuc::Stage::trainStep : gpuc::Stage::plan;
  std::string made = compile(text, stage, choices);
  ++tally.inputs;
  tally.stages += !made.empty();
  if (!made.empty()) tally.again += !compile(changed(made, choices), gpuc::Stage::plan, choices).empty();
  ::alarm(0);
  return 0;
}
