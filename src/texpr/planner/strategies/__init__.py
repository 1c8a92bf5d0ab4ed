"""The strategies, one file each: `STRATEGY` says what kind of nest it is for, and what it proposes at what cost."""
