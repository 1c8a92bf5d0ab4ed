"""What a plan asks of a machine, counted before there is machine code: executions, requests, bytes, operations."""
