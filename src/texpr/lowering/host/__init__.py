"""The host's part: an arranged program in; launches, loops and branches out, and bounds on the sizes of the whole plan."""
