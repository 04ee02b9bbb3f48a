package ocfl

import "slices"

// Codes returns the codes of all faults, sorted, each once.
func (r *Report) Codes() []string { return codesOf(r.Faults) }

// Codes returns the codes of the root's own faults, sorted, each once.
func (r *RootReport) Codes() []string { return codesOf(r.Faults) }

func codesOf(all []Fault) []string {
	var codes []string
	for _, f := range all {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}
