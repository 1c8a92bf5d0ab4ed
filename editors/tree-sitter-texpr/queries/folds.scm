[(block) (schedule) (instruction) (parameters)] @fold
