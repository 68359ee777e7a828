#include "runtime/generate/prompt.h"

#include "runtime/base/parse.h"
#include "runtime/base/quote.h"

namespace gpuc {
namespace {

constexpr int64_t kBytes = 256;

Status beyondVocabulary(const std::string& what, size_t position, int64_t vocabulary) {
  return errorf("prompt: %s at position %zu is no token of the model's vocabulary of %lld", what.c_str(),
                position, static_cast<long long>(vocabulary));
}

}  // namespace

Result<std::vector<int64_t>> tokensOfText(const std::string& text, int64_t vocabulary) {
  if (vocabulary > kBytes)
    return errorf(
        "the model has a vocabulary of %lld tokens, which are not bytes: give the prompt as numbers, with "
        "--prompt-tokens=12,7,…",
        static_cast<long long>(vocabulary));
  if (text.empty()) return Status::error("prompt: there must be something to go on from");
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < text.size(); ++i) {
    int64_t token = static_cast<uint8_t>(text[i]);
    if (token >= vocabulary)
      return beyondVocabulary("byte " + std::to_string(token) + " (" + inQuotes(text.substr(i, 1)) + ")", i,
                              vocabulary);
    tokens.push_back(token);
  }
  return tokens;
}

Result<std::vector<int64_t>> tokensOfNumbers(const std::string& text, int64_t vocabulary) {
  std::vector<int64_t> tokens;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    Result<int64_t> token = parseInt64(item);
    if (!token.ok())
      return Status::error("prompt: expected token numbers as in 12,7,400; found " + inQuotes(item));
    if (*token < 0 || *token >= vocabulary)
      return beyondVocabulary("token " + std::to_string(*token), tokens.size(), vocabulary);
    tokens.push_back(*token);
    begin = end + 1;
  }
  return tokens;
}

}  // namespace gpuc
