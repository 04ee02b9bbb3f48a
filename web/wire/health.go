package wire

// Health says whether a service works.
type Health struct {
	Status  string `json:"status"` // ok, limited (it works, but a check failed), or failing
	Version string `json:"version"`
	// Registry is the permanent identifier of the Registry that answers; "" for other processes, and
	// for a Registry of an older version.
	Registry string            `json:"registry,omitempty"`
	Checks   map[string]string `json:"checks,omitempty"` // by part: ok, or the fault
}
