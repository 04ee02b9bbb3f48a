package registry

import "fmt"

// Priorities: lower goes first. Every point is worth a minute of waiting, so that age wins over any priority in the end.
const (
	// DefaultPriority is that of a batch for which neither its submission nor its collection's profile asks for another.
	DefaultPriority = 5
	// LeastPriority is the lowest an operator can give. Below 0 an item is express: it goes before everything else in its
	// stage, of all collections, the lowest number first, and does not age.
	LeastPriority = -1_000_000
	// MostPriority is the highest: nearly two years of waiting.
	MostPriority = 1_000_000
)

// PriorityError refuses a priority that is out of bounds. Only an operator's command may give one below 0.
type PriorityError struct {
	Given, Least, Most int
}

// Error names the bounds.
func (e *PriorityError) Error() string {
	return fmt.Sprintf("priority %d is not between %d and %d", e.Given, e.Least, e.Most)
}

// CheckPriority returns a *[PriorityError] unless p is what a submission or a profile may ask for; nil asks for nothing.
func CheckPriority(p *int) error {
	return checkPriority(p, 0)
}

// CheckExpress returns a *[PriorityError] unless p is what an operator may ask for; nil asks for nothing.
func CheckExpress(p *int) error {
	return checkPriority(p, LeastPriority)
}

func checkPriority(p *int, least int) error {
	if p == nil || *p >= least && *p <= MostPriority {
		return nil
	}
	return &PriorityError{Given: *p, Least: least, Most: MostPriority}
}
