package wire

// Health says whether a service works.
type Health struct {
	Status  string            `json:"status"` // ok, limited (it works, but a check failed), or failing
	Version string            `json:"version"`
	Checks  map[string]string `json:"checks,omitempty"` // by part: ok, or the fault
}
