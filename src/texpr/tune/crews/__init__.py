"""Who measures: processes of this machine (`here`), or a cluster (`cluster`)."""
