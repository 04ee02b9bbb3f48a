package cli

import (
	"strings"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// Requirements parses the values of a flag that names required items.
func Requirements(flag string, values []string) ([]registry.Requirement, error) {
	var all []registry.Requirement
	for _, v := range values {
		id, wait, _ := strings.Cut(v, ":")
		r := registry.Requirement{ItemID: strings.TrimSpace(id), WaitFor: registry.WaitFor(wait)}
		if r.ItemID == "" || wait != "" && r.WaitFor != registry.WaitSettled && r.WaitFor != registry.WaitSuccess {
			return nil, exit.Usagef("%s %s: expected the ID of an item, or ID:settled", flag, v)
		}
		all = append(all, r)
	}
	return all, nil
}
