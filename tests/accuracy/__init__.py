"""What etmem says against what is known: closed forms, the kernel, and the program without it."""
