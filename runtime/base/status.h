// Errors as values. No gpuc runtime function throws or exits; what can fail returns Status or Result<T>, and
// its message names the culprit and, where there is one, the cure.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/quote.h"

namespace gpuc {

/// Success, or an error with one line of text. What of it came from a file or a command line cannot give
/// orders to a terminal.
class [[nodiscard]] Status {
 public:
  Status() = default;

  static Status error(std::string message) {
    Status status;
    status.message_ = isPrintable(message) ? std::move(message) : printable(message);
    return status;
  }

  bool ok() const { return !message_.has_value(); }

  /// The error's text without a trailing newline; empty on success.
  const std::string& message() const {
    static const std::string none;
    return message_ ? *message_ : none;
  }

 private:
  std::optional<std::string> message_;
};

inline Status okStatus() { return {}; }

/// A value, or the error that kept it from being made.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  const std::string& message() const { return status_.message(); }

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

/// printf-style construction of an error: errorf("%s: %zu bytes, expected %zu", …).
template <typename... Args>
Status errorf(const char* format, Args... args) {
  int length = std::snprintf(nullptr, 0, format, args...);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  std::snprintf(text.data(), text.size() + 1, format, args...);
  return Status::error(std::move(text));
}
inline Status errorf(const char* text) { return Status::error(text); }

}  // namespace gpuc

/// Returns from the enclosing function if `expression` is an error.
#define GPUC_RETURN_IF_ERROR(expression)                                                  \
  do {                                                                                    \
    if (::gpuc::Status gpuc_status = (expression); !gpuc_status.ok()) return gpuc_status; \
  } while (false)

#define GPUC_CONCAT_INNER(a, b) a##b
#define GPUC_CONCAT(a, b) GPUC_CONCAT_INNER(a, b)

/// GPUC_ASSIGN_OR_RETURN(auto file, openFile(path)): binds the value or returns the error.
#define GPUC_ASSIGN_OR_RETURN(declaration, expression) \
  GPUC_ASSIGN_OR_RETURN_IMPL(GPUC_CONCAT(gpuc_result_, __LINE__), declaration, expression)
#define GPUC_ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                       \
  if (!result.ok()) return result.status();                         \
  declaration = *std::move(result)
