package work

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// PositionBits are what registry.StateOf looks at beside action, stage and status, as bits with
// their conditions. Every state's condition is made by asking StateOf about all combinations, so
// that it cannot say anything else than what items show.
var PositionBits = []string{
	"i.attempt > 0",
	"i.blocker_count > 0",
	"i.closing > 1",
	HeldBy,
}

// Of positionBits.
const (
	AllBits = 1<<4 - 1
	HeldBit = 1 << 3
)

// PositionOf is the position of a row with some of PositionBits.
func PositionOf(a registry.Action, stage registry.Stage, status registry.Status, bits int) registry.Position {
	p := registry.Position{Action: a, Stage: stage, Status: status, Held: bits&HeldBit != 0}
	if bits&1 != 0 {
		p.Attempt = 1
	}
	if bits&2 != 0 {
		p.Open = 1
	}
	if bits&4 != 0 {
		p.Closing = 2
	}
	return p
}

// Place is a stage and a status there.
type Place struct {
	Stage  registry.Stage
	Status registry.Status
}

// Places are all that a known item may have, whether or not it can come there.
func Places() []Place {
	var out []Place
	for _, stage := range registry.Stages() {
		for _, status := range registry.Statuses() {
			out = append(out, Place{stage, status})
		}
	}
	return out
}

// BitsOf returns with which bits an item at a place is in one of the states, whose names are
// compared without regard to case.
func BitsOf(at Place, states []string) (bits []int) {
	action, _ := registry.ActionOf(at.Stage)
	for b := 0; b <= AllBits; b++ {
		state := registry.StateOf(PositionOf(action, at.Stage, at.Status, b))
		if slices.ContainsFunc(states, state.Equal) {
			bits = append(bits, b)
		}
	}
	return bits
}

// StateCond is true for the rows i of work_item that show one of the states.
func StateCond(states []string) string {
	var conds []string
	for _, status := range registry.Statuses() {
		// Stages where the same bits decide share a condition.
		stagesOf, order := map[string][]registry.Stage{}, []string{}
		for _, stage := range registry.Stages() {
			cond := bitsCond(BitsOf(Place{stage, status}, states))
			if len(stagesOf[cond]) == 0 {
				order = append(order, cond)
			}
			stagesOf[cond] = append(stagesOf[cond], stage)
		}
		for _, cond := range order {
			if cond == "" {
				continue
			}
			text := "i.status = '" + string(status) + "'"
			if len(order) > 1 {
				text += " AND i.stage IN " + sqldb.Names(stagesOf[cond])
			}
			if cond != always {
				text += " AND " + cond
			}
			conds = append(conds, "("+text+")")
		}
	}
	if len(conds) == 0 {
		return "(1 = 0)"
	}
	return "(" + strings.Join(conds, " OR ") + ")"
}

const always = "always"

// bitsCond is true for rows with one of some combinations of bits; "" for none, always for all of
// them.
func bitsCond(bits []int) string {
	if len(bits) == 0 {
		return ""
	}
	which := 0
	for i := range PositionBits {
		bit := 1 << i
		if slices.ContainsFunc(bits, func(b int) bool { return !slices.Contains(bits, b^bit) }) {
			which |= bit
		}
	}
	if which == 0 {
		return always
	}
	var codes []string
	for _, b := range bits {
		if code := strconv.Itoa(b & which); !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return "(" + BitsSum(which) + " IN (" + strings.Join(codes, ", ") + "))"
}

// BitsSum adds up those of some bits that a row i of work_item has.
func BitsSum(which int) string {
	var sum []string
	for i, cond := range PositionBits {
		if bit := 1 << i; which&bit != 0 {
			sum = append(sum, fmt.Sprintf("CASE WHEN %s THEN %d ELSE 0 END", cond, bit))
		}
	}
	return strings.Join(sum, " + ")
}
