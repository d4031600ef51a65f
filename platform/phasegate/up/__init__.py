"""Everything on one machine: what `phasegate-manage up` prepares, starts, watches and ends."""
