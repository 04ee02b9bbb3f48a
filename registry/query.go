package registry

// Query is a parsed query (design section 8): terms, all of which must match. The zero value matches everything. It is
// made by [ParseQuery] and told by String, which ParseQuery takes back unchanged.
type Query struct {
	Terms []Term
}

// Term is one condition.
type Term struct {
	Field string // "" is free text
	Value string
	Not   bool
}
