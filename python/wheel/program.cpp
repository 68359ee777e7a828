// A tool of the wheel: its main function lies in libgpuc_compiler.so.
int GPUC_TOOL_MAIN(int argc, char **argv);

int main(int argc, char **argv) { return GPUC_TOOL_MAIN(argc, argv); }
