#include "runtime/train/progress.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>

#include "runtime/base/quote.h"

namespace gpuc {
namespace {

constexpr std::chrono::milliseconds kRedrawEvery{100};
constexpr int64_t kLogEvery = 100;
constexpr double kLeastWaitSeconds = 1, kLeastWaitShare = 0.2;  // of which the end speaks
constexpr std::string_view kClearLine = "\r\x1b[K";

/// One line of bounded length, put together by printf.
class Line {
 public:
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int count = std::vsnprintf(text_.data() + length_, text_.size() - length_, format, arguments);
    va_end(arguments);
    if (count > 0) length_ = std::min(length_ + static_cast<size_t>(count), text_.size() - 1);
  }

  /// "nan", whatever its sign bit: that says nothing, and is another one on each machine.
  void addNumber(const char* name, double value) {
    add("  %s %.4f", name, std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value);
  }

  std::string_view text() const { return {text_.data(), length_}; }

 private:
  std::array<char, 512> text_;
  size_t length_ = 0;
};

void addDuration(Line& line, double seconds) {
  int64_t whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 1e12));
  if (whole >= 3600)
    line.add("%" PRId64 ":%02d:%02d", whole / 3600, int(whole / 60 % 60), int(whole % 60));
  else
    line.add("%d:%02d", int(whole / 60), int(whole % 60));
}

}  // namespace

ProgressOptions ProgressOptions::forDescriptor(int descriptor) {
  ProgressOptions options;
  options.descriptor = descriptor;
  options.is_terminal = ::isatty(descriptor) == 1;
  winsize size = {};
  if (options.is_terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.columns = size.ws_col;
  return options;
}

Progress::Progress(const ProgressOptions& options) : options_(options), start_(Clock::now()) {
  if (!options_.log_every) options_.log_every = options_.is_terminal ? 0 : kLogEvery;
}

Progress::~Progress() { clearBar(); }

void Progress::step(const StepEvent& event, double step_s, int64_t rows) {
  if (event.loss) {
    window_.loss_sum += *event.loss;
    ++window_.losses;
    if (!std::isfinite(*event.loss) && !event.skipped) noteLostLoss(event);
  }
  window_.rows += static_cast<double>(rows);
  window_.seconds += step_s;
  stepped_s_ += step_s;
  waited_s_ += event.data_us / 1e6;
  int64_t every = *options_.log_every;
  if (every > 0 && (event.step % every == 0 || event.step == options_.last_step)) writeStepLine(event);
  if (options_.is_terminal && Clock::now() - last_draw_ >= kRedrawEvery) drawBar(event);
}

/// Once: from there on there is mostly nothing else.
void Progress::noteLostLoss(const StepEvent& event) {
  if (told_of_loss_) return;
  told_of_loss_ = true;
  Line line;
  line.add("note: the loss of step %" PRId64
           " is %s; compiled with --check-numerics, training stops there and names the op",
           event.step, std::isnan(*event.loss) ? "nan" : "infinite");
  note(line.text());
}

/// The loss is the mean since the last such line, the speed that of the steps alone.
void Progress::writeStepLine(const StepEvent& event) {
  Line line;
  line.add("epoch %" PRId64 "  step %" PRId64 " of %" PRId64, event.epoch, event.step, options_.last_step);
  if (window_.losses > 0) line.addNumber("loss", window_.loss_sum / static_cast<double>(window_.losses));
  if (event.lr) line.add("  lr %.3g", event.lr->value);
  line.add("  %.0f samples/s  ", window_.rows / std::max(window_.seconds, 1e-9));
  addDuration(line, secondsLeft(event.step));
  line.add(" left");
  note(line.text());
  window_ = {};
}

void Progress::drawBar(const StepEvent& event) {
  constexpr int kCells = 12;  // the whole line then fits into 80 columns
  int64_t in_epoch = event.step - (event.epoch - 1) * options_.steps_per_epoch;
  int filled = static_cast<int>(kCells * in_epoch / options_.steps_per_epoch);
  int64_t epochs = (options_.last_step - 1) / options_.steps_per_epoch + 1;
  Line line;
  line.add("epoch %" PRId64 "/%" PRId64 " [%.*s%*s] ", event.epoch, epochs, filled,
           "============", kCells - filled, "");
  line.add("%" PRId64 "/%" PRId64, in_epoch, options_.steps_per_epoch);
  if (window_.losses > 0) line.addNumber("loss", window_.loss_sum / static_cast<double>(window_.losses));
  line.add("  %.0f samples/s  ", window_.rows / std::max(window_.seconds, 1e-9));
  addDuration(line, secondsLeft(event.step));
  line.add(" left");
  put(kClearLine);
  // The last column stays empty: a cursor behind it would wrap.
  put(line.text().substr(0, static_cast<size_t>(std::max(options_.columns - 1, 0))));
  bar_is_drawn_ = true;
  last_draw_ = Clock::now();
}

void Progress::put(std::string_view text) {
  while (!text.empty() && error_ == 0) {
    ssize_t count = ::write(options_.descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {  // whoever started this made the descriptor so
      pollfd writable = {options_.descriptor, POLLOUT, 0};
      if (::poll(&writable, 1, -1) > 0) continue;
    }
    if (count < 0) error_ = errno;
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
}

Status Progress::status() const {
  bool went_away = error_ == EPIPE || (error_ == EIO && options_.is_terminal);
  if (error_ == 0 || went_away) return okStatus();
  return errorf("cannot write %s: %s", options_.descriptor == STDERR_FILENO ? "stderr" : "stdout",
                std::strerror(error_));
}

void Progress::clearBar() {
  if (bar_is_drawn_) put(kClearLine);
  bar_is_drawn_ = false;
}

double Progress::secondsLeft(int64_t step) const {
  double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  double done = static_cast<double>(std::max<int64_t>(1, step - options_.first_step));
  return elapsed / done * static_cast<double>(options_.last_step - step);
}

void Progress::evaluation(const EvalEvent& event) {
  Line line;
  line.add("epoch %" PRId64 "  evaluation after step %" PRId64 ":", event.epoch, event.step);
  if (event.loss) line.addNumber("loss", *event.loss);
  if (event.accuracy) line.addNumber("accuracy", *event.accuracy);
  note(line.text());
  window_ = {};
}

void Progress::end(const EndEvent& event) {
  Line line;
  line.add("done: %" PRId64 " steps, %" PRId64 " whole epochs; this run took %.1f s", event.steps,
           event.epochs, event.wall_s);
  if (event.samples_per_s > 0) line.add(" at %.0f samples/s", event.samples_per_s);
  if (event.loss) line.addNumber("loss", *event.loss);
  if (event.accuracy) line.addNumber("accuracy", *event.accuracy);
  note(line.text());
  noteWaiting();
}

/// Where more threads could make the run shorter, and by how much at most.
void Progress::noteWaiting() {
  if (waited_s_ < kLeastWaitSeconds || waited_s_ < kLeastWaitShare * stepped_s_) return;
  Line line;
  line.add(
      "note: steps waited for data in %.1f s of their %.1f s; --workers loads it on more threads than "
      "%" PRId64,
      waited_s_, stepped_s_, options_.workers);
  note(line.text());
}

void Progress::note(std::string_view text) {
  clearBar();
  if (isPrintable(text))
    put(text);  // a step allocates nothing
  else
    put(printable(text));
  put("\n");
}

}  // namespace gpuc
