package registry

// Query is a parsed query (design section 8): terms, all of which must match. The zero value matches everything. It is
// made by [ParseQuery] and told by String, which ParseQuery takes back unchanged.
type Query struct {
	Terms []Term `json:"terms"`
}

// Term is one condition.
type Term struct {
	Field string `json:"field"` // "" is free text
	Value string `json:"value"`
	Not   bool   `json:"not"`
}
