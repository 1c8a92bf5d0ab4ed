"""The strategies, one file each: `STRATEGY` says which nests it applies to, and what it proposes at what cost."""
