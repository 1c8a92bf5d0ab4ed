"""Changes of loops, each proved: a program under a schedule in, the program with its loops changed out, or a refusal."""
