"""Structure-aware fuzzing: seeds of known cases, changed at random; anything but success or an error of qbdt fails."""
