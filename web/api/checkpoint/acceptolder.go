package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// errRewritten says that a record was changed, not only that it is older than what was signed. Such
// a record is never accepted.
func errRewritten(object, what string) error {
	return wire.NewProblem(http.StatusConflict, wire.CodeConflict, fmt.Sprintf(
		"the record of %s was rewritten or truncated in the database, which a restored backup cannot cause: %s; such a record is never accepted: restore an intact backup, and accept that one before anything is written to it",
		object, what))
}

// errNotOlder says why there is nothing to accept.
func errNotOlder(why string) error {
	return wire.NewProblem(http.StatusConflict, wire.CodeConflict, why)
}

type acceptInput struct {
	Body wire.AcceptanceRequest
}

// acceptOlder requests to accept a record that is older than the newest checkpoints, or approves
// such a request. That happens after a backup was restored. Once two people have agreed, each
// storage gets a signed checkpoint that lists the gaps, who accepted them, and why. A repeat after
// a kill continues with the storages that have no such checkpoint yet.
func (s *Service) acceptOlder(ctx context.Context, in *acceptInput) (*endpoint.Output[wire.Acceptance], error) {
	if s.Chains == nil {
		return nil, errNotOlder("this process does not sign checkpoints; send the request to a Registry")
	}
	if reason := strings.TrimSpace(in.Body.Reason); (reason == "") != in.Body.Approve {
		return nil, endpoint.Invalid("nothing was requested", wire.Fault{Location: "body.reason", Message: "give either a reason, to make a request, or approve, to approve one"})
	}
	older, of, err := s.olderThan(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.allWhole(ctx); err != nil {
		return nil, err
	}
	asks := registry.Acceptance{Of: of, Reason: strings.TrimSpace(in.Body.Reason)}
	decided, err := s.Chains.AcceptOlder(ctx, asks, in.Body.Approve, in.Body.AgreesTo, access.Actor(ctx))
	if err != nil {
		return nil, err
	}
	out := wire.Acceptance{Acceptance: decided, Lost: []wire.Lost{}, Written: []string{}}
	for _, c := range older {
		out.Lost = append(out.Lost, c.lost)
	}
	if in.Body.Approve && decided.ApprovedBy == "" {
		return nil, showLost(decided, out.Lost)
	}
	s.Log.WarnContext(ctx, "accepting a record that is older than its checkpoints", "checkpoints", of, "asked_by", decided.AskedBy,
		"approved_by", decided.ApprovedBy, "reason", decided.Reason)
	if decided.ApprovedBy == "" {
		out.ExpiresAt = decided.AskedAt.Add(registry.AskingLasts)
		return &endpoint.Output[wire.Acceptance]{Body: out}, nil
	}
	for _, c := range older {
		c.accept.AskedBy, c.accept.ApprovedBy, c.accept.Reason = decided.AskedBy, decided.ApprovedBy, decided.Reason
		name := acceptedName(c.accept.At) + ".jsonl"
		made, err := c.write(ctx, name, c.accept.At)
		if err != nil {
			return nil, fmt.Errorf("write the checkpoint for storage %q: %w", c.root.Name, err)
		}
		if made {
			out.Written = append(out.Written, c.root.Name+" "+name)
		}
	}
	return &endpoint.Output[wire.Acceptance]{Body: out}, nil
}

// acceptedName is the name, without extension, of a checkpoint that accepts a gap. It sorts after
// the checkpoint of its day and before that of the next day.
func acceptedName(at time.Time) string { return at.UTC().Format("2006-01-02T150405Z") }

// olderThan returns the checkpoints to write: one for each storage whose newest checkpoint is newer
// than the record. It also returns the names of these newest checkpoints. It returns an error if
// there are none, or if the record differs in another way.
func (s *Service) olderThan(ctx context.Context) (older []*checkpointing, of []string, err error) {
	for _, root := range s.Objects {
		a, err := Audit(ctx, s.Chains, root, "")
		switch {
		case err != nil:
			return nil, nil, err
		case a.Valid:
			continue
		case a.Damage != "":
			return nil, nil, errNotOlder(fmt.Sprintf("checkpoint %s in storage %s is invalid, so the earlier record is unknown: %s", a.Name, root.Name, a.Damage))
		case a.Rewritten > 0:
			i := max(0, slices.IndexFunc(a.Faults, func(f wire.CheckpointFault) bool { return f.Rewritten }))
			return nil, nil, errRewritten(a.Faults[i].ObjectID, a.Faults[i].Message)
		}
		if err := s.prefixOfEarlier(ctx, root); err != nil {
			return nil, nil, err
		}
		now := s.Now().UTC().Truncate(time.Second)
		if acceptedName(now) <= a.Name { // it would not be the newest
			return nil, nil, errNotOlder(fmt.Sprintf("the newest checkpoint in storage %s, %s, is from the future; correct the clock of this machine", root.Name, a.Name))
		}
		lost, err := lostSince(ctx, s.Chains, root, a.Name, func(receipt.Gap) error { return nil })
		if err != nil {
			return nil, nil, err
		}
		older = append(older, &checkpointing{Chains: s.Chains, root: root, from: a.Name, accept: &receipt.Accepted{At: now, Checkpoint: a.Name, Heads: a.Heads}, lost: lost})
		of = append(of, root.Name+" "+a.Name+" "+a.Heads+" lost "+lost.Digest)
	}
	if len(older) == 0 {
		return nil, nil, errNotOlder("the record is not older than any checkpoint, so there is nothing to accept")
	}
	return older, of, nil
}

// showLost returns the problem that shows the approver what an approval would accept.
func showLost(asked registry.Acceptance, lost []wire.Lost) error {
	p := wire.NewProblem(http.StatusConflict, wire.CodeConfirm, "an approval cannot be undone; read what is lost, and confirm it to approve")
	p.AgreesTo = asked.Request()
	p.Consequences = []string{fmt.Sprintf("%s requested it at %s: %s", asked.AskedBy, asked.AskedAt.UTC().Format(time.DateTime), asked.Reason)}
	if asked.Replaces != "" {
		p.Consequences = append(p.Consequences, "this replaces a request of "+asked.Replaces)
	}
	for _, l := range lost {
		p.Consequences = append(p.Consequences, l.Text()...)
	}
	return p
}

// allWhole verifies every chain, also those that agree with the newest checkpoint. A chain that is
// invalid, or shorter than a receipt in the same database says, was changed in that database: a
// backup has complete chains with their receipts.
func (s *Service) allWhole(ctx context.Context) error {
	for after := ""; ; {
		page, err := s.All.Objects(ctx, registry.ObjectQuery{After: after, Limit: endpoint.StreamRows})
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			o, err := s.All.Object(ctx, row.ID)
			if err != nil {
				return err
			}
			switch report, err := s.auditChain(ctx, o); {
			case err != nil:
				return err
			case !report.Valid:
				return errRewritten(o.ID, fmt.Sprintf("event %d: %s", report.Faults[0].Event, report.Faults[0].Message))
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// lostSince compares the record with a checkpoint and calls one with each gap. It returns an error
// if an event differs from the signed one, or if a chain is invalid.
func lostSince(ctx context.Context, r Record, root ocfl.Named, name string, one func(receipt.Gap) error) (wire.Lost, error) {
	lost, sum := wire.Lost{Storage: root.Name, Checkpoint: name, Gaps: []wire.Gap{}}, sha256.New()
	_, err := readCheckpoint(ctx, r, root, name, receipt.CheckpointLines{End: func(e receipt.ChainEnd) error {
		state, fault, err := compareEnd(ctx, r, e)
		if err != nil || state == endSame || state == endBuried {
			return err
		} else if state == endRewritten {
			return errRewritten(e.Object, fault.Message)
		}
		last, err := wholeChain(ctx, r, e.Object)
		if err != nil {
			return err
		}
		gap := receipt.Gap{Object: e.Object, After: last, To: e.Seq, Hash: e.Hash}
		lost.Objects, lost.Events = lost.Objects+1, lost.Events+gap.To-gap.After
		if len(lost.Gaps) < mostCheckpointFaults {
			lost.Gaps = append(lost.Gaps, wire.Gap{ObjectID: gap.Object, First: gap.After + 1, Last: gap.To})
		}
		_, _ = fmt.Fprintf(sum, "%q %d %d %s\n", gap.Object, gap.After, gap.To, gap.Hash)
		return one(gap)
	}})
	lost.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return lost, err
}

// prefixOfEarlier compares the record with the checkpoints before the newest one, back to the last
// one that accepted a gap. Each event that the record has must be the signed one.
func (s *Service) prefixOfEarlier(ctx context.Context, root ocfl.Named) error {
	there, err := root.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for i := len(there) - 1; i >= 0; i-- {
		c, last := there[i], false
		signed, err := readCheckpoint(ctx, s.Chains, root, c, receipt.CheckpointLines{End: func(e receipt.ChainEnd) error {
			state, fault, err := compareEnd(ctx, s.Chains, e)
			if err == nil && state == endRewritten {
				err = errRewritten(e.Object, "by checkpoint "+c+": "+fault.Message)
			}
			return err
		}, Accepted: func(a receipt.Accepted) error {
			last = strings.HasPrefix(c, acceptedName(a.At))
			return nil
		}})
		if errors.Is(err, receipt.ErrCheckpoint) {
			return errNotOlder(fmt.Sprintf("checkpoint %s in storage %s is invalid: %v", c, root.Name, err))
		} else if err != nil {
			return err
		}
		if last || signed.Storage != root.Name {
			break
		}
	}
	return nil
}

// wholeChain returns the number of the last event of an object's chain, 0 if there is none. It
// returns an error if the chain is invalid, and so was more than truncated.
func wholeChain(ctx context.Context, r Record, object string) (last int64, err error) {
	var wrong error
	fault := func(event int64, format string, args ...any) {
		if wrong == nil {
			wrong = errRewritten(object, fmt.Sprintf("event %d: %s", event, fmt.Sprintf(format, args...)))
		}
	}
	err = eachEvent(ctx, r, object, fault, func(seq int64, _ string) { last = seq })
	return last, errors.Join(err, wrong)
}
