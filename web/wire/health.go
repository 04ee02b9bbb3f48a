package wire

// Health says whether the service can do its work.
type Health struct {
	Status  string            `json:"status"` // ok, limited (it works, and a check says what does not), or failing
	Version string            `json:"version"`
	Checks  map[string]string `json:"checks,omitempty"` // by part: ok, or what is wrong
}
