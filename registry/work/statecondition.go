package work

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// PositionBits are the SQL conditions that registry.StateOf needs beside action, stage and status.
// Each is one bit. The condition of a state is made by calling StateOf with all combinations, so
// that it always agrees with what items show.
var PositionBits = []string{
	"i.attempt > 0",
	"i.blocker_count > 0",
	"i.closing > 1",
	HeldBy,
}

// Masks of PositionBits.
const (
	AllBits = 1<<4 - 1
	HeldBit = 1 << 3
)

// PositionOf returns the position of a row for which some of the PositionBits hold.
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

// Place is a stage with a status.
type Place struct {
	Stage  registry.Stage
	Status registry.Status
}

// Places returns all combinations of stage and status, also those that no item can reach. All
// functions of a family are one stage here: [Place.Cond] covers them.
func Places() []Place {
	var out []Place
	for _, stage := range registry.AllStages() {
		for _, status := range registry.Statuses() {
			out = append(out, Place{stage, status})
		}
	}
	return out
}

// Cond returns the SQL condition that row i of work_item is at the place. The indexes that contain
// the stage contain the status behind it. Items of functions are found by the index of all items
// that are no jobs.
func (p Place) Cond() string {
	status := " AND i.status = '" + string(p.Status) + "'"
	if a, _ := registry.ActionOf(p.Stage); slices.Contains(functionActions, a) {
		return "i.action = '" + string(a) + "' AND i.action <> 'ingest'" + status
	}
	return "i.stage = '" + string(p.Stage) + "'" + status
}

// InStages returns the SQL condition that row i of work_item is in one of the stages. A family
// stands for all its functions.
func InStages(stages []registry.Stage) string {
	var actions []registry.Action
	var own []registry.Stage
	for _, s := range stages {
		if a, _ := registry.ActionOf(s); s.Function() == "" && slices.Contains(functionActions, a) {
			actions = append(actions, a)
		} else {
			own = append(own, s)
		}
	}
	switch {
	case len(actions) == 0:
		return "i.stage IN " + sqldb.Names(own)
	case len(own) == 0:
		return "i.action IN " + sqldb.Names(actions)
	}
	return "(i.stage IN " + sqldb.Names(own) + " OR i.action IN " + sqldb.Names(actions) + ")"
}

// BitsOf returns the bit combinations with which an item at a place is in one of the states. The
// case of states' names does not matter.
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

// StateCond returns the SQL condition that row i of work_item is in one of the states.
func StateCond(states []string) string {
	var conds []string
	for _, status := range registry.Statuses() {
		// Stages with the same combinations share a condition.
		stagesOf, order := map[string][]registry.Stage{}, []string{}
		for _, stage := range registry.AllStages() {
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
				text += " AND " + InStages(stagesOf[cond])
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

// bitsCond returns the SQL condition that a row has one of the bit combinations: "" for none of
// them, always for all.
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

// BitsSum returns the SQL sum of those bits of the mask whose conditions hold for row i of work_item.
func BitsSum(which int) string {
	var sum []string
	for i, cond := range PositionBits {
		if bit := 1 << i; which&bit != 0 {
			sum = append(sum, fmt.Sprintf("CASE WHEN %s THEN %d ELSE 0 END", cond, bit))
		}
	}
	return strings.Join(sum, " + ")
}
