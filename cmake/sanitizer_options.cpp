// How the sanitizers behave unless ASAN_OPTIONS and the like say otherwise: part of every binary of a sanitized build.

// LLVM's headers poison what their bump allocators have not given out yet. Debian's LLVM is compiled without
// AddressSanitizer, takes from the same allocators and never lifts the poison, so that each such access would be reported.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0:strict_string_checks=1:detect_leaks=1"; }

extern "C" const char *__ubsan_default_options() { return "print_stacktrace=1"; }

// halt_on_error: else a race is told, but the program goes on. force_background_thread: ThreadSanitizer has a thread of
// its own, and starts it with the program's first one; whoever counts threads wants it to be there from the start.
extern "C" const char *__tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1:force_background_thread=1";
}
