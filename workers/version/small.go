package version

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/result"
)

// A version that has more files or changes than smallFiles, or whose inventory and changes take more
// than smallBytes, is staged. A smaller one stands in its announcement.
const (
	smallFiles = 32
	smallBytes = 16 << 10
)

// Drafted is a version that is planned, and may not be announced yet.
type Drafted struct {
	result.Plan
	small *smallPlan // nil: it is staged, or was planned by an earlier attempt
}

// smallPlan has the inventory and the changes of a small version.
type smallPlan struct {
	Inventory string           `json:"inventory"`
	Changes   []result.Planned `json:"changes"`

	adds *ocfl.Addition
	text string // the plan as it stands in the announcement
}

// encode sets the plan's texts and returns the digest of its inventory.
func (s *smallPlan) encode(ctx context.Context, p *ocfl.Plan) (digest string, err error) {
	inventory, adds, err := p.InMemory(ctx)
	if err != nil {
		return "", fmt.Errorf("plan inventory: %w", err)
	}
	s.Inventory, s.adds = string(inventory), adds
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode the plan of a small version: %w", err)
	}
	s.text = string(text)
	return adds.Digest(), nil
}

func (s *smallPlan) digest(algorithm string) (string, error) {
	d, err := fixity.NewDigester(algorithm)
	if err != nil {
		return "", err
	}
	d.Write([]byte(s.Inventory)) //nolint:errcheck // it never fails
	return d.Sums()[algorithm], nil
}

// readSmall reads the plan of a small version from its announcement.
func readSmall(p result.Plan, text string) (*smallPlan, error) {
	s := &smallPlan{text: text}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("decode the plan of a small version: %w", err)
	}
	digest, err := s.digest(p.Algorithm)
	if err == nil && digest != p.Digest {
		err = fmt.Errorf("the announced inventory: %w: its digest is %s, not %s", staging.ErrDamaged, digest, p.Digest)
	}
	if err != nil {
		return nil, err
	}
	inv, err := ocfl.ReadInventory(strings.NewReader(s.Inventory), p.Inventory)
	if err != nil {
		return nil, err
	}
	s.adds = inv.Addition()
	return s, nil
}
