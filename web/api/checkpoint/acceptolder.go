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

// errRewritten says that a record is not only older than what was signed, and can never be
// accepted.
func errRewritten(object, what string) error {
	return wire.NewProblem(http.StatusConflict, wire.CodeConflict, fmt.Sprintf(
		"the record of %s was rewritten or cut off in the database, which no restored backup explains: %s; this is never accepted: restore a backup that holds, and accept that one before anything is written to it",
		object, what))
}

// errNotOlder says that there is nothing to accept.
func errNotOlder(why string) error {
	return wire.NewProblem(http.StatusConflict, wire.CodeConflict, why)
}

type acceptInput struct {
	Body wire.AcceptanceRequest
}

// acceptOlder asks, or agrees, that the record is taken for right although it is older than the
// newest checkpoints, as after a backup was restored. Once two people have agreed, each storage
// gets a signed checkpoint that names the gaps, who accepted them and why. A repeat after a kill
// goes on with the storages that have none yet.
func (s *Service) acceptOlder(ctx context.Context, in *acceptInput) (*endpoint.Output[wire.Acceptance], error) {
	if s.Chains == nil {
		return nil, errNotOlder("this process does not sign checkpoints: ask a Registry")
	}
	if reason := strings.TrimSpace(in.Body.Reason); (reason == "") != in.Body.Approve {
		return nil, endpoint.Invalid("nothing was asked", wire.Fault{Location: "body.reason", Message: "give either the reason, to ask, or approve, to agree"})
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
	s.Log.WarnContext(ctx, "the record is to be accepted although it is older than its checkpoints", "checkpoints", of, "asked_by", decided.AskedBy,
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

// acceptedName is the name, without its ending, of a checkpoint that accepts a gap: it comes after
// the one of its day, and before the next day's.
func acceptedName(at time.Time) string { return at.UTC().Format("2006-01-02T150405Z") }

// olderThan returns what is to be written into the storages whose newest checkpoint the record is
// older than, and the names of these checkpoints. It is an error when there is none, and when the
// record is anything else than older.
func (s *Service) olderThan(ctx context.Context) (older []*checkpointing, of []string, err error) {
	for _, root := range s.Objects {
		a, err := Audit(ctx, s.Chains, root, "")
		switch {
		case err != nil:
			return nil, nil, err
		case a.Valid:
			continue
		case a.Damage != "":
			return nil, nil, errNotOlder(fmt.Sprintf("checkpoint %s in storage %s does not hold, so nobody can say what the record was: %s", a.Name, root.Name, a.Damage))
		case a.Rewritten > 0:
			i := max(0, slices.IndexFunc(a.Faults, func(f wire.CheckpointFault) bool { return f.Rewritten }))
			return nil, nil, errRewritten(a.Faults[i].ObjectID, a.Faults[i].Message)
		}
		if err := s.prefixOfEarlier(ctx, root); err != nil {
			return nil, nil, err
		}
		now := s.Now().UTC().Truncate(time.Second)
		if acceptedName(now) <= a.Name { // it would not be the newest
			return nil, nil, errNotOlder(fmt.Sprintf("the newest checkpoint in storage %s, %s, is of a later time than it is now: see to the clock", root.Name, a.Name))
		}
		lost, err := lostSince(ctx, s.Chains, root, a.Name, func(receipt.Gap) error { return nil })
		if err != nil {
			return nil, nil, err
		}
		older = append(older, &checkpointing{Chains: s.Chains, root: root, from: a.Name, accept: &receipt.Accepted{At: now, Checkpoint: a.Name, Heads: a.Heads}, lost: lost})
		of = append(of, root.Name+" "+a.Name+" "+a.Heads+" lost "+lost.Digest)
	}
	if len(older) == 0 {
		return nil, nil, errNotOlder("the record is not older than any checkpoint: there is nothing to accept")
	}
	return older, of, nil
}

// showLost says what an approval agrees to: who approves has to see it first.
func showLost(asked registry.Acceptance, lost []wire.Lost) error {
	p := wire.NewProblem(http.StatusConflict, wire.CodeConfirm, "what was asked for cannot be undone once it is approved: look at what is lost, and confirm it to go on")
	p.AgreesTo = asked.Request()
	p.Consequences = []string{fmt.Sprintf("%s asked for it at %s: %s", asked.AskedBy, asked.AskedAt.UTC().Format(time.DateTime), asked.Reason)}
	if asked.Replaces != "" {
		p.Consequences = append(p.Consequences, "this took the place of what "+asked.Replaces+" had asked for")
	}
	for _, l := range lost {
		p.Consequences = append(p.Consequences, l.Text()...)
	}
	return p
}

// allWhole looks at every chain, also at those that end as the newest checkpoint says. One that
// does not hold by itself, or does not reach what a receipt in the same database says, was changed
// in that database: a backup has whole chains, with their receipts.
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

// lostSince goes through what a record lacks of what the checkpoint of a name has, and hands each
// gap to one. The record is an error when it has another event than was signed, or a chain that
// does not hold by itself.
func lostSince(ctx context.Context, r Record, root ocfl.Named, name string, one func(receipt.Gap) error) (wire.Lost, error) {
	lost, sum := wire.Lost{Storage: root.Name, Checkpoint: name, Gaps: []wire.Gap{}}, sha256.New()
	_, err := readCheckpoint(ctx, r, root, name, receipt.CheckpointLines{End: func(e receipt.ChainEnd) error {
		state, fault, err := compareEnd(ctx, r, e)
		if err != nil || state == endSame {
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
// one at which a gap was accepted: an event that it has must be the one that was signed.
func (s *Service) prefixOfEarlier(ctx context.Context, root ocfl.Named) error {
	there, err := checkpointsIn(ctx, root)
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
			return errNotOlder(fmt.Sprintf("checkpoint %s in storage %s does not hold: %v", c, root.Name, err))
		} else if err != nil {
			return err
		}
		if last || signed.Storage != root.Name {
			break
		}
	}
	return nil
}

// wholeChain returns the number of the last event of an object's chain, 0 when there is none. A
// chain that does not hold by itself was not only cut off.
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
